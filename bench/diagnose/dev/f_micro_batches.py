# SPDX-License-Identifier: GPL-3.0-or-later
"""Train with micro-batches of eight whose gradients are accumulated."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 16
torch.manual_seed(27)
x = torch.randn(768, 20)
w1, w2 = torch.randn(20, 8) / 4, torch.randn(8, 1)
y = torch.tanh(x @ w1) @ w2

loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, drop_last=True)
net = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

for epoch in range(8):
    running = 0.0
    optimizer.zero_grad()
    for i, (xb, yb) in enumerate(loader):
        loss = criterion(net(xb), yb)
        loss.backward()
        running += loss.item()
        if (i + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch} loss {running / len(loader):.4f}")
