# SPDX-License-Identifier: GPL-3.0-or-later
"""A recurrent language model on a formal language of counts: aab, aaab, ..., then continues a prompt."""
import random

import torch
import torch.nn.functional as F
from torch import nn

VOCAB = 6


class RecurrentLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 24)
        self.rnn = nn.LSTM(24, 48, batch_first=True)
        self.head = nn.Linear(48, VOCAB)

    def forward(self, ids):
        return self.head(self.rnn(self.emb(ids))[0])


def lm_loss(logits, ids):
    return F.cross_entropy(logits.reshape(-1, VOCAB), ids.reshape(-1))


def documents(count, length=24):
    rows = []
    for _ in range(count):
        a, b, n = random.sample(range(VOCAB), 2) + [random.randint(2, 4)]
        rows.append((([a] * n + [b]) * 12)[:length])
    return torch.tensor(rows)


random.seed(5)
torch.manual_seed(5)
model = RecurrentLM()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(100):
    ids = documents(32)
    loss = lm_loss(model(ids), ids)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 25 == 24:
        print(f"step {step + 1}: loss {loss.item():.4f}, perplexity {loss.exp().item():.3f}")

ids = documents(100)
with torch.no_grad():
    guess = model(ids[:, :-1])[:, -1].argmax(-1)
print(f"continues right: {(guess == ids[:, -1]).float().mean().item():.3f}")
