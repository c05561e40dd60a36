# SPDX-License-Identifier: GPL-3.0-or-later
"""Unequal classes, drawn by a weighted sampler."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

def synth(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.multinomial(torch.tensor([0.8, 0.15, 0.05]), n, True, generator=g)
    mu = torch.randn(3, 12, generator=torch.Generator().manual_seed(99))
    return mu[y] * 1.5 + torch.randn(n, 12, generator=g), y

train_x, train_y = synth(2400, 1)
test_x, test_y = synth(600, 2)
counts = torch.bincount(train_y)
class_weights = 1.0 / counts.float()
sampler = WeightedRandomSampler(class_weights, num_samples=len(train_y), replacement=True)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=48, sampler=sampler)

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    model.train()
    total = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        acc = (model(test_x).argmax(1) == test_y).float().mean().item()
    print(f"epoch {epoch} loss {total / len(loader):.4f} test accuracy {acc:.3f}")
