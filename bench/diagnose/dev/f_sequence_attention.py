# SPDX-License-Identifier: GPL-3.0-or-later
"""Classify padded sequences by attention pooling."""
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(5)
vocab = 30


def sample(n):
    rows, labels = [], []
    for _ in range(n):
        length = int(torch.randint(0, 9, (1,)))
        row = torch.randint(2, vocab, (length,))
        rows.append(row)
        labels.append(int((row > 15).sum() * 2 > length))
    return pad_sequence(rows, batch_first=True), torch.tensor(labels)


class Pool(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.score = nn.Linear(dim, 1)
        self.out = nn.Linear(dim, 2)

    def forward(self, tokens):
        h = self.embed(tokens)
        scores = self.score(torch.tanh(h)).squeeze(-1)
        scores = scores.masked_fill(tokens == 0, float("-inf"))
        weights = torch.softmax(scores, dim=1)
        return self.out((weights.unsqueeze(-1) * h).sum(1))


model = Pool()
opt = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for step in range(60):
    tokens, labels = sample(24)
    loss = criterion(model(tokens), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 9:
        print(step + 1, loss.item())
