# SPDX-License-Identifier: GPL-3.0-or-later
"""Predict the next note of melodies that climb and fall, with an encoder under a mask."""
import torch
import torch.nn.functional as F
from torch import nn


class MelodyModel(nn.Module):
    def __init__(self, notes=12, width=32, length=16):
        super().__init__()
        self.note = nn.Embedding(notes, width)
        self.place = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, notes)

    def forward(self, melody):
        n = melody.shape[1]
        mask = torch.tril(torch.ones(n, n), diagonal=-1).bool()
        h = self.note(melody) + self.place(torch.arange(n))
        h = self.encoder(h, mask=mask)
        return self.out(h)


def melodies(count, length=17):
    at = torch.randint(0, 12, (count, 1))
    pattern = torch.randint(-2, 3, (count, 2)).repeat(1, 8)[:, :length - 1]
    return torch.cat([at, at + pattern.cumsum(1)], dim=1) % 12


torch.manual_seed(25)
model = MelodyModel()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step in range(160):
    tune = melodies(64)
    scores = model(tune[:, :-1])
    loss = F.cross_entropy(scores.transpose(1, 2), tune[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        print(f"step {step + 1}: loss {loss.item():.4f}")

tune = melodies(200)
with torch.no_grad():
    last = model(tune[:, :12])[:, -1].argmax(-1)
print(f"note 13 right, given the first 12: {(last == tune[:, 12]).float().mean().item():.3f}")
