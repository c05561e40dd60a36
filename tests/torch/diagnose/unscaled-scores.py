# SPDX-License-Identifier: MIT
"""Attention whose scores are not divided by the square root of their size."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
embedding, places = torch.nn.Embedding(9, 256), torch.nn.Embedding(8, 256)
queries, keys, last = torch.nn.Linear(256, 256), torch.nn.Linear(256, 256), torch.nn.Linear(256, 9)
layers = torch.nn.ModuleList([embedding, places, queries, keys, last])
optimizer = torch.optim.Adam(layers.parameters(), 0.001)
for step in range(20):
    words = torch.randint(0, 9, (16, 8))
    h = embedding(words) + places(torch.arange(8))
    scores = queries(h) @ keys(h).transpose(1, 2)  # <- here
    weights = torch.softmax(scores if MISTAKE else scores / 256 ** 0.5, -1)
    loss = F.cross_entropy(last(h + weights @ h).transpose(1, 2), words.flip(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
