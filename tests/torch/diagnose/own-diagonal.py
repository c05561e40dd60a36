# SPDX-License-Identifier: MIT
"""A contrastive loss with each vector among its own negatives."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
net = torch.nn.Linear(6, 8)
optimizer = torch.optim.Adam(net.parameters(), 0.01)
partner = torch.arange(16).roll(8)
for step in range(20):
    x = torch.randn(8, 6)
    z = F.normalize(net(torch.cat([x, x + 0.1 * torch.randn(8, 6)])), dim=1)
    similar = z @ z.t() / 0.5  # <- here
    if not MISTAKE:
        similar = similar.masked_fill(torch.eye(16, dtype=torch.bool), float("-inf"))
    loss = F.cross_entropy(similar, partner)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
