# SPDX-License-Identifier: GPL-3.0-or-later
"""Tag the words of sentences of very different lengths with a bidirectional GRU."""
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

VOCAB, TAGS = 60, 9


class Sentences(Dataset):
    def __init__(self, count):
        rng = random.Random(4)
        self.items = []
        for i in range(count):
            length = 48 if i % 16 == 0 else rng.randint(2, 7)
            words = torch.tensor([rng.randint(1, VOCAB - 1) for _ in range(length)])
            before = torch.cat([torch.zeros(1, dtype=torch.long), words[:-1]])
            self.items.append((words, 1 + (words + before % 2) % (TAGS - 1)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(pairs):
    words = pad_sequence([w for w, _ in pairs], batch_first=True)
    tags = pad_sequence([t for _, t in pairs], batch_first=True)
    return words, tags


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24, padding_idx=0)
        self.rnn = nn.GRU(24, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, TAGS)

    def forward(self, words):
        return self.out(self.rnn(self.embed(words))[0])


torch.manual_seed(2)
loader = DataLoader(Sentences(640), batch_size=32, shuffle=True, collate_fn=collate)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    right = words_seen = 0
    for words, tags in loader:
        scores = model(words)
        loss = F.cross_entropy(scores.reshape(-1, TAGS), tags.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        real = words != 0
        right += (scores.argmax(-1) == tags)[real].sum().item()
        words_seen += real.sum().item()
    print(f"epoch {epoch}: last loss {loss.item():.4f}, right on words {right / words_seen:.3f}")
