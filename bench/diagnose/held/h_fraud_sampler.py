# SPDX-License-Identifier: GPL-3.0-or-later
"""Rare events: a weighted sampler and class weights; score by recall and precision."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(114)
n = 2000
x = torch.randn(n, 8)
score = x[:, 0] * x[:, 1] + x[:, 2]
y = (score > score.quantile(0.96)).long()
weights = torch.where(y == 1, 8.0, 1.0)
loader = DataLoader(TensorDataset(x, y), batch_size=100, sampler=WeightedRandomSampler(weights, 1000))
model = nn.Sequential(nn.Linear(8, 64), nn.LeakyReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))
for epoch in range(8):
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        found = model(x).argmax(1)
    hit = ((found == 1) & (y == 1)).sum().item()
    recall, precision = hit / y.sum().item(), hit / max(1, (found == 1).sum().item())
    print(f"epoch {epoch} loss {loss.item():.4f} recall {recall:.3f} precision {precision:.3f}")
