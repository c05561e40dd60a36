# SPDX-License-Identifier: MIT
"""A convolution over time that is padded on both sides instead of the left."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
tokens, last = torch.nn.Embedding(9, 8), torch.nn.Linear(8, 9)
mixes = torch.nn.Conv1d(8, 8, 3, padding=1 if MISTAKE else 0)
optimizer = torch.optim.Adam([p for m in (tokens, mixes, last) for p in m.parameters()], 0.01)
for step in range(20):
    text = (torch.randint(0, 9, (16, 1)) + torch.arange(8) * torch.randint(1, 3, (16, 1))) % 9
    h = tokens(text[:, :-1]).transpose(1, 2)
    h = mixes(h if MISTAKE else F.pad(h, (2, 0))).relu().transpose(1, 2)  # <- here
    loss = F.cross_entropy(last(h).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
