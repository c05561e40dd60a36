# SPDX-License-Identifier: GPL-3.0-or-later
"""A word-level LSTM language model trained by truncated back-propagation with a carried state."""
import math
import random

import torch
from torch import nn

BPTT, BATCH = 12, 8


class RNNModel(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, width, 2, dropout=0.2)
        self.decoder = nn.Linear(width, words)
        self.encoder.weight.data.uniform_(-0.1, 0.1)
        self.decoder.weight.data.uniform_(-0.1, 0.1)
        self.decoder.bias.data.zero_()

    def forward(self, ids, state):
        out, state = self.rnn(self.drop(self.encoder(ids)), state)
        return self.decoder(self.drop(out)), state

    def start(self, batch):
        weight = next(self.parameters())
        return weight.new_zeros(2, batch, 64), weight.new_zeros(2, batch, 64)


def corpus(length):
    rng = random.Random(2)
    subjects, verbs = ["cat", "dog", "girl", "boy"], ["sees", "likes", "feeds"]
    objects = ["fish", "milk", "bread", "him"]
    words = []
    while len(words) < length:
        words += ["the", rng.choice(subjects), rng.choice(verbs), rng.choice(objects), "."]
    vocabulary = sorted(set(words))
    return torch.tensor([vocabulary.index(w) for w in words[:length]]), len(vocabulary)


ids, n_words = corpus(2400)
data = ids.view(BATCH, -1).t().contiguous()
torch.manual_seed(1111)
model = RNNModel(n_words, 64)
criterion = nn.CrossEntropyLoss()
lr = 5.0
best = None
for epoch in range(3):
    model.train()
    total, state = 0.0, model.start(BATCH)
    starts = range(0, data.size(0) - 1, BPTT)
    for i in starts:
        length = min(BPTT, data.size(0) - 1 - i)
        source, target = data[i:i + length], data[i + 1:i + 1 + length]
        state = tuple(s.detach() for s in state)
        model.zero_grad()
        output, state = model(source, state)
        loss = criterion(output.view(-1, n_words), target.reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total += loss.item()
    mean = total / len(starts)
    print(f"epoch {epoch}: loss {mean:.3f}, perplexity {math.exp(mean):.2f}, lr {lr}")
    if best is not None and mean > best:
        lr /= 4.0
    best = mean if best is None else min(best, mean)
