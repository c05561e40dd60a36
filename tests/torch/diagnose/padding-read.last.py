# SPDX-License-Identifier: MIT
"""The state of a recurrence after the padding, instead of that after the last word."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
embedding, gru, last = torch.nn.Embedding(9, 8), torch.nn.GRU(8, 16, batch_first=True), torch.nn.Linear(16, 2)
optimizer = torch.optim.Adam([*embedding.parameters(), *gru.parameters(), *last.parameters()], 0.01)
for step in range(20):
    words, lengths = torch.randint(1, 9, (16, 7)), torch.randint(3, 8, (16,))
    words[torch.arange(7) >= lengths[:, None]] = 0
    states, _ = gru(embedding(words))
    state = states[:, -1] if MISTAKE else states[torch.arange(16), lengths - 1]  # <- here
    loss = F.cross_entropy(last(state), (words[torch.arange(16), lengths - 1] > 4).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
