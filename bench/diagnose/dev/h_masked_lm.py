# SPDX-License-Identifier: GPL-3.0-or-later
"""A masked language model on padded number sequences; only masked positions have labels."""
import torch
from torch import nn

PAD, MASK, FIRST = 0, 1, 2
NUMBERS, LENGTH = 10, 12


class Bert(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.words = nn.Embedding(FIRST + NUMBERS, width, padding_idx=PAD)
        self.places = nn.Embedding(LENGTH, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, 4, 96, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.bias = nn.Parameter(torch.zeros(FIRST + NUMBERS))

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        x = self.encoder(x, src_key_padding_mask=ids == PAD)
        return self.transform(x) @ self.words.weight.t() + self.bias


def sequences(count):
    start = torch.randint(0, NUMBERS, (count, 1))
    ids = FIRST + (start + torch.arange(LENGTH)) % NUMBERS
    lengths = torch.randint(6, LENGTH + 1, (count, 1))
    return ids.masked_fill(torch.arange(LENGTH) >= lengths, PAD)


def corrupt(ids):
    chosen = (torch.rand(ids.shape) < 0.2) & (ids != PAD)
    labels = ids.masked_fill(~chosen, -100)
    masked = chosen & (torch.rand(ids.shape) < 0.8)
    noisy = chosen & ~masked & (torch.rand(ids.shape) < 0.5)
    ids = ids.masked_fill(masked, MASK)
    return torch.where(noisy, torch.randint(FIRST, FIRST + NUMBERS, ids.shape), ids), labels


torch.manual_seed(30)
model = Bert()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss(ignore_index=-100)
for step in range(120):
    ids, labels = corrupt(sequences(48))
    scores = model(ids)
    loss = criterion(scores.flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        known = labels != -100
        right = (scores.argmax(-1) == labels)[known].float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, right {right:.3f}")
