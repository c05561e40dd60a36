# SPDX-License-Identifier: MIT
"""Attention by hand over padded sequences, without a mask of the padding."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
embedding, layer, last = torch.nn.Embedding(9, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 2)
optimizer = torch.optim.Adam([*embedding.parameters(), *layer.parameters(), *last.parameters()], 0.01)
for step in range(20):
    words = torch.randint(1, 9, (16, 7))
    words[torch.arange(7) >= torch.randint(3, 8, (16, 1))] = 0
    h = embedding(words) + torch.arange(7)[:, None] / 7
    scores = layer(h) @ h.transpose(1, 2) / 8 ** 0.5
    if not MISTAKE:
        scores = scores.masked_fill((words == 0)[:, None], float("-inf"))
    weights = scores.softmax(-1)  # <- here
    loss = F.cross_entropy(last((weights @ h)[:, 0]), (words[:, 0] > 4).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
