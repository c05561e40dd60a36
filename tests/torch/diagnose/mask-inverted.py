# SPDX-License-Identifier: MIT
"""A padding mask that says the opposite."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
embedding, attention = torch.nn.Embedding(9, 8), torch.nn.MultiheadAttention(8, 2, batch_first=True)
last = torch.nn.Linear(8, 2)
optimizer = torch.optim.Adam([*embedding.parameters(), *attention.parameters(), *last.parameters()], 0.01)
for step in range(20):
    words = torch.randint(1, 9, (16, 7))
    words[torch.arange(7) >= torch.randint(3, 7, (16, 1))] = 0
    h = embedding(words)
    mask = words != 0 if MISTAKE else words == 0
    mixed, _ = attention(h, h, h, key_padding_mask=mask)  # <- here
    seen = (words != 0).unsqueeze(2)
    loss = F.cross_entropy(last((mixed * seen).sum(1) / seen.sum(1)), (words[:, 0] > 4).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
