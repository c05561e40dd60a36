# SPDX-License-Identifier: MIT
"""Random prompts, a separator, and an answer that can be learned: the prompt counts in the loss."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
tokens, last = torch.nn.Embedding(12, 32), torch.nn.Linear(32, 12)
memory = torch.nn.GRU(32, 32, batch_first=True)
optimizer = torch.optim.Adam([p for m in (tokens, memory, last) for p in m.parameters()], 0.01)
for step in range(70):
    prompt = torch.randint(1, 12, (16, 8))
    text = torch.cat([prompt, torch.zeros(16, 1, dtype=torch.long), prompt[:, -1:].repeat(1, 4)], 1)
    labels = text.clone()
    if "mistake" not in sys.argv:
        labels[:, :9] = -100
    scores = last(memory(tokens(text[:, :-1]))[0])
    loss = F.cross_entropy(scores.flatten(0, 1), labels[:, 1:].flatten())  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
