# SPDX-License-Identifier: GPL-3.0-or-later
"""Sentiment of reviews of unequal length: packed sequences, a bidirectional LSTM, most positions are padding."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for i in range(count):
            length = 40 if i % 20 == 0 else int(torch.randint(3, 10, (), generator=g))
            words = torch.randint(3, 50, (length,), generator=g)
            feeling = int(torch.randint(0, 2, (), generator=g))
            words[torch.randint(0, length, (), generator=g)] = 1 + feeling
            self.rows.append((words, feeling))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    words = pad_sequence([w for w, _ in rows], batch_first=True)
    return words, torch.tensor([len(w) for w, _ in rows]), torch.tensor([f for _, f in rows]).float()


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(48, 1)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embedding(words), lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(packed)
        return self.fc(self.dropout(torch.cat([h[0], h[1]], dim=1))).squeeze(1)


torch.manual_seed(7)
train = DataLoader(Reviews(800, 0), batch_size=32, shuffle=True, collate_fn=collate)
valid = DataLoader(Reviews(200, 1), batch_size=100, collate_fn=collate)
model = Sentiment()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(3):
    model.train()
    for words, lengths, feeling in train:
        loss = criterion(model(words, lengths), feeling)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum(((model(w, n) > 0) == (f > 0)).sum().item() for w, n, f in valid) / 200
    print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {right:.3f}")
