# SPDX-License-Identifier: GPL-3.0-or-later
"""CLIP-like training: pictures and captions meet in one space; the temperature is learned and clamped."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Clip(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.picture = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 9, width))
        self.words = nn.Embedding(20, 32, padding_idx=0)
        self.caption = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, width))
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, pictures, captions):
        p = F.normalize(self.picture(pictures), dim=-1)
        real = (captions != 0).unsqueeze(-1)
        bag = (self.words(captions) * real).sum(1) / real.sum(1)
        c = F.normalize(self.caption(bag), dim=-1)
        return self.logit_scale.exp() * p @ c.t()


def batch(size):
    row, column, tone = torch.randint(0, 5, (size,)), torch.randint(0, 5, (size,)), torch.randint(0, 3, (size,))
    pictures = 0.1 * torch.randn(size, 1, 8, 8)
    for i in range(size):
        pictures[i, 0, row[i]:row[i] + 3, column[i]:column[i] + 3] += 1.0 + tone[i]
    captions = torch.stack([1 + row, 6 + column, 11 + tone], dim=1)
    return pictures, F.pad(captions, (0, 2))


torch.manual_seed(88)
model = Clip()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
labels = torch.arange(32)
for step in range(120):
    pictures, captions = batch(32)
    logits = model(pictures, captions)
    loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        model.logit_scale.clamp_(0, math.log(100))
    if step % 30 == 29:
        hit = (logits.argmax(1) == labels).float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, scale {model.logit_scale.exp().item():.1f}, found {hit:.2f}")
