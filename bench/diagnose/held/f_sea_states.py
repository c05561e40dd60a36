# SPDX-License-Identifier: GPL-3.0-or-later
"""Sea states from wave heights: three classes, a network with dropout."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KEEP = 0.95

torch.manual_seed(92)
typical = torch.randn(3, 30)
state = torch.randint(0, 3, (1024,))
heights = typical[state] + 1.5 * torch.randn(1024, 30)
train = DataLoader(TensorDataset(heights[:768], state[:768]), batch_size=32, shuffle=True)

model = nn.Sequential(
    nn.Linear(30, 48),
    nn.Softplus(),
    nn.Dropout(KEEP),
    nn.Linear(48, 48),
    nn.ReLU(),
    nn.Dropout(KEEP),
    nn.Linear(48, 3),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    model.train()
    for x, y in train:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        guess = model(heights[768:]).argmax(1)
    print(f"epoch {epoch}: train loss {loss.item():.4f}, accuracy {(guess == state[768:]).float().mean().item():.3f}")
