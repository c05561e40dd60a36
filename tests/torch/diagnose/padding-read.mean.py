# SPDX-License-Identifier: MIT
"""A mean over all positions of padded sequences."""
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
    h = torch.tanh(layer(embedding(words)))
    real = torch.ones(16, 7, 1) if MISTAKE else (words != 0)[..., None].float()
    h = h if MISTAKE else h * real * 7 / real.sum(1, keepdim=True)
    pooled = h.mean(1)  # <- here
    loss = F.cross_entropy(last(pooled), (words[:, 0] > 4).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
