# SPDX-License-Identifier: GPL-3.0-or-later
"""House prices: standardised columns and targets, Huber loss per element, a plateau scheduler, early stopping."""
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(80)
area, rooms, year = 40 + 160 * torch.rand(1000), torch.randint(1, 8, (1000,)).float(), 1900 + 120 * torch.rand(1000)
price = 2500 * area + 9000 * rooms + 400 * (year - 1900) + 1500 * torch.randn(1000)
table = torch.stack([area, rooms, year], dim=1)
mean, std = table[:800].mean(0), table[:800].std(0)
table = (table - mean) / std
scale = price[:800].std()
target = ((price - price[:800].mean()) / scale).unsqueeze(1)

model = nn.Sequential(nn.Linear(3, 32), nn.Mish(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=1)
element_loss = nn.HuberLoss(reduction="none")
best, kept, waited = float("inf"), None, 0
for epoch in range(12):
    for x, y in DataLoader(TensorDataset(table[:800], target[:800]), batch_size=80, shuffle=True):
        loss = element_loss(model(x), y).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        error = (model(table[800:]) - target[800:]).abs().mean().item()
    plateau.step(error)
    if error < best:
        best, kept, waited = error, copy.deepcopy(model.state_dict()), 0
    else:
        waited += 1
    rate = optimizer.param_groups[0]["lr"]
    print(f"epoch {epoch}: loss {loss.item():.5f}, error {error * scale.item():.0f}, lr {rate:.3f}")
    if waited == 4:
        break
model.load_state_dict(kept)
