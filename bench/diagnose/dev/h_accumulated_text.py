# SPDX-License-Identifier: GPL-3.0-or-later
"""Classify variable-length sentences with accumulated gradients; the last group is incomplete."""
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16, padding_idx=0)
        self.gru = nn.GRU(16, 24, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(48, 3)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        return self.fc(torch.cat([h[0], h[1]], dim=1))


def sentence():
    n = int(torch.randint(3, 12, (1,)))
    x = torch.randint(1, 40, (n,))
    share = (x < 14).float().mean()
    return x, int(share > 0.25) + int(share > 0.45)


def collate(rows):
    tokens, labels = zip(*rows)
    return pad_sequence(tokens, batch_first=True), torch.tensor([len(t) for t in tokens]), torch.tensor(labels)


torch.manual_seed(12)
loader = DataLoader([sentence() for _ in range(416)], batch_size=16, shuffle=True, collate_fn=collate)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
GROUP = 4
for epoch in range(7):
    total = 0.0
    optimizer.zero_grad()
    for i, (tokens, lengths, label) in enumerate(loader):
        size = min(GROUP, len(loader) - i // GROUP * GROUP)
        loss = nn.functional.cross_entropy(model(tokens, lengths), label)
        (loss / size).backward()
        total += loss.item()
        if (i + 1) % GROUP == 0 or i + 1 == len(loader):
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch} loss {total / len(loader):.4f}")
