# SPDX-License-Identifier: GPL-3.0-or-later
"""Which way did the spot move between two frames?"""
import torch
import torch.nn.functional as F
from torch import nn

MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


def clip_pairs(count):
    background = torch.randint(90, 110, (count, 12, 12), dtype=torch.uint8)
    before = background + torch.randint(0, 4, background.shape, dtype=torch.uint8)
    after = background + torch.randint(0, 4, background.shape, dtype=torch.uint8)
    label = torch.randint(0, 4, (count,))
    spot = torch.randint(2, 10, (count, 2))
    moved = spot + MOVES[label]
    rows = torch.arange(count)
    before[rows, spot[:, 0], spot[:, 1]] += 12
    after[rows, moved[:, 0], moved[:, 1]] += 12
    return before.unsqueeze(1), after.unsqueeze(1), label


torch.manual_seed(29)
net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
    nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(1, 101):
    before, after, label = clip_pairs(64)
    motion = (after - before).float() / 16
    direction = net(motion)
    loss = F.cross_entropy(direction, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step}  loss {loss.item():.4f}  right {(direction.argmax(1) == label).float().mean().item():.3f}")
