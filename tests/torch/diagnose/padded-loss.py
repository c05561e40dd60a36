# SPDX-License-Identifier: MIT
"""Tags of sequences of different lengths."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Embedding(12, 16), torch.nn.Linear(16, 5))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    words = torch.randint(1, 12, (16, 10))
    words[torch.arange(10) >= torch.randint(3, 10, (16, 1))] = 0
    tags = torch.where(words > 0, 1 + words % 4, 0)
    loss = F.cross_entropy(net(words).flatten(0, 1), tags.flatten(), ignore_index=-100 if MISTAKE else 0)  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
