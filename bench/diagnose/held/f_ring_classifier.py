# SPDX-License-Identifier: GPL-3.0-or-later
"""Separate two rings with a network and decoupled weight decay."""
import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(0)
angle = torch.rand(400) * 6.2832
ring = (torch.arange(400) % 2).float()
radius = 1 + ring + 0.1 * torch.randn(400)
points = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)

net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
decay, no_decay = [], []
for name, p in net.named_parameters():
    (decay if name.endswith("weight") else no_decay).append(p)
groups = [{"params": decay, "weight_decay": 10.0}, {"params": no_decay, "weight_decay": 0.0}]
optimizer = optim.AdamW(groups, lr=0.01)

for step in range(100):
    optimizer.zero_grad()
    out = net(points)
    loss = nn.functional.binary_cross_entropy_with_logits(out, ring)
    loss.backward()
    optimizer.step()
    if (step + 1) % 20 == 0:
        accuracy = ((out > 0).float() == ring).float().mean()
        print(f"[{step + 1}] loss {loss.item():.4f} acc {accuracy.item():.3f}")
