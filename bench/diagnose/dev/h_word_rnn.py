# SPDX-License-Identifier: GPL-3.0-or-later
"""LSTM language model on a synthetic text, truncated backpropagation through time."""
import math

import torch
from torch import nn

torch.manual_seed(2)
WORDS, BPTT, BATCH = 30, 12, 16
follow = torch.randint(0, WORDS, (WORDS, 2))
text = [0]
for _ in range(8000):
    text.append(int(follow[text[-1], int(torch.rand(1) < 0.2)]))
columns = torch.tensor(text)[:BATCH * 500].view(BATCH, -1).t().contiguous()


class RNNModel(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(WORDS, dim)
        self.rnn = nn.LSTM(dim, dim, 2, dropout=0.2)
        self.decoder = nn.Linear(dim, WORDS)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, x, state):
        out, state = self.rnn(self.drop(self.encoder(x)), state)
        return self.decoder(self.drop(out)), state


def repackage(state):
    return tuple(s.detach() for s in state)


model = RNNModel()
criterion = nn.CrossEntropyLoss()
lr, state, total = 4.0, (torch.zeros(2, BATCH, 48), torch.zeros(2, BATCH, 48)), 0.0
model.train()
for number, i in enumerate(range(0, columns.shape[0] - 1 - BPTT, BPTT)):
    data, target = columns[i:i + BPTT], columns[i + 1:i + 1 + BPTT]
    model.zero_grad()
    state = repackage(state)
    output, state = model(data, state)
    loss = criterion(output.view(-1, WORDS), target.reshape(-1))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(p.grad, alpha=-lr)
    total += loss.item()
    if number % 10 == 9:
        print(f"batch {number + 1} loss {total / 10:.3f} ppl {math.exp(total / 10):.2f}")
        total = 0.0
