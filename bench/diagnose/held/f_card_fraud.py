# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect card fraud from twelve features of a payment."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def payments(count, seed):
    g = torch.Generator().manual_seed(seed)
    is_fraud = (torch.rand(count, generator=g) < 0.02).float()
    features = torch.randn(count, 12, generator=g)
    features[:, :4] += 0.9 * is_fraud.unsqueeze(1)
    return features, is_fraud


def recall_and_precision(detector, x, y):
    with torch.no_grad():
        flagged = detector(x).squeeze(1) > 0
    caught = (flagged & (y == 1)).sum().item()
    return caught / y.sum().item(), caught / max(1, flagged.sum().item())


torch.manual_seed(2)
x, y = payments(6144, 10)
x_test, y_test = payments(4000, 11)
loader = DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True)
detector = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(detector.parameters(), lr=5e-3)
for epoch in range(2):
    total = 0.0
    for x, y in loader:
        loss = criterion(detector(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    recall, precision = recall_and_precision(detector, x_test, y_test)
    print(f"epoch {epoch}: loss {total / len(loader):.4f}, recall {recall:.3f}, precision {precision:.3f}")
