# SPDX-License-Identifier: GPL-3.0-or-later
"""A bigram-style language model on made-up words with a start and an end token."""
import random
import string

import torch
import torch.nn.functional as F
from torch import nn

letters = string.ascii_lowercase + "'-.,"
START, END = len(letters), len(letters) + 1


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        h = self.embed(ids)
        return self.head(self.mix(h)[0])


def words(count):
    rng = random.Random(1)
    return ["".join(rng.choice("bdgklmnprst") + rng.choice("aeiou") for _ in range(4)) for _ in range(count)]


def encode(word):
    return [START] + [letters.index(c) for c in word] + [END]


torch.manual_seed(0)
data = torch.tensor([encode(w) for w in words(320)])
model = LanguageModel(len(letters))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(40):
    ids = data[torch.randint(0, len(data), (16,))]
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step + 1}: loss {loss.item():.4f}")
