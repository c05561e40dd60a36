# SPDX-License-Identifier: GPL-3.0-or-later
"""A recurrent language model trained with gradient accumulation over documents of very different length."""
import torch
import torch.nn.functional as F
from torch import nn

SYMBOLS = 12


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, 24)
        self.rnn = nn.GRU(24, 48, batch_first=True)
        self.out = nn.Linear(48, SYMBOLS)

    def forward(self, ids):
        return self.out(self.rnn(self.embed(ids))[0])


def stories(count):
    start, stride = torch.randint(0, SYMBOLS, (count, 1)), torch.randint(1, 4, (count, 1))
    return (start + stride * torch.arange(31)) % SYMBOLS


def notes(count):
    return torch.randint(0, SYMBOLS, (count, 2))


torch.manual_seed(38)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
for step in range(60):
    micro_batches = [notes(1), notes(1), stories(4), notes(2)]
    optimizer.zero_grad()
    for ids in micro_batches:
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()) / len(micro_batches)
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    if step % 15 == 14:
        with torch.no_grad():
            ids = stories(64)
            per_token = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).item()
        print(f"step {step + 1}: loss per token of new stories {per_token:.4f}")
