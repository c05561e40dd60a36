# SPDX-License-Identifier: GPL-3.0-or-later
"""Five blobs in 12 dimensions, classified by a small perceptron."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
centres = torch.randn(5, 12) * 1.5
labels = torch.randint(0, 5, (960,))
points = centres[labels] + torch.randn(960, 12)
loader = DataLoader(TensorDataset(points, labels), batch_size=64, shuffle=True)

net = nn.Sequential(
    nn.Linear(12, 48),
    nn.ReLU(),
    nn.Linear(48, 48),
    nn.ReLU(),
    nn.Linear(48, 5),
    nn.Softmax(dim=1),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for epoch in range(4):
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(net(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    with torch.no_grad():
        accuracy = (net(points).argmax(1) == labels).float().mean()
    print(f"epoch {epoch}  loss {total / len(points):.4f}  accuracy {accuracy:.3f}")
