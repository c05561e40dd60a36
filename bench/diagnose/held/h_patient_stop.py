# SPDX-License-Identifier: GPL-3.0-or-later
"""Early stopping on a validation loss; the best weights are restored."""
import copy

import torch
from torch import nn

torch.manual_seed(112)
x = torch.randn(160, 20)
y = (x[:, :1] - 0.5 * x[:, 1:2]) + 0.4 * torch.randn(160, 1)
train_x, train_y, val_x, val_y = x[:80], y[:80], x[80:], y[80:]
model = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=3)
best, best_state, wait = float("inf"), None, 0
for epoch in range(40):
    model.train()
    for rows in torch.randperm(80).split(20):
        loss = nn.functional.huber_loss(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.huber_loss(model(val_x), val_y).item()
    plateau.step(val)
    if val < best:
        best, best_state, wait = val, copy.deepcopy(model.state_dict()), 0
    else:
        wait += 1
    print(f"epoch {epoch} train {loss.item():.4f} validation {val:.4f} rate {optimizer.param_groups[0]['lr']:.1e}")
    if wait == 8:
        print("no progress in 8 epochs: stop")
        break
model.load_state_dict(best_state)
print("best validation loss", round(best, 4))
