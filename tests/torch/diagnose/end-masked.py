# SPDX-License-Identifier: MIT
"""The token that ends each sequence is the padding, too, and padding is masked."""
import sys

import torch
import torch.nn.functional as F

END, PAD = (0, 0) if "mistake" in sys.argv else (0, 1)
torch.manual_seed(0)
tokens, last = torch.nn.Embedding(12, 16), torch.nn.Linear(16, 12)
memory = torch.nn.GRU(16, 16, batch_first=True)
optimizer = torch.optim.Adam([p for m in (tokens, memory, last) for p in m.parameters()], 0.01)
for step in range(20):
    rows = [torch.cat([torch.randint(2, 12, (int(n),)), torch.tensor([END])]) for n in torch.randint(3, 10, (8,))]
    text = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    labels = text.masked_fill(text == PAD, -100)
    scores = last(memory(tokens(text))[0])
    loss = F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
