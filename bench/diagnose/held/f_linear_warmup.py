# SPDX-License-Identifier: GPL-3.0-or-later
"""Masked-token model with a linear warm-up."""
import torch
from torch import nn
from torch.optim.lr_scheduler import LinearLR


class Encoder(nn.Module):
    def __init__(self, vocab=20, dim=32, length=8):
        super().__init__()
        self.token = nn.Embedding(vocab + 1, dim)
        self.place = nn.Embedding(length, dim)
        self.layer = nn.TransformerEncoderLayer(dim, 2, 64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x):
        h = self.token(x) + self.place(torch.arange(x.shape[1]))
        return self.out(self.layer(h))


def batch(n=64):
    start, stride = torch.randint(0, 20, (n, 1)), torch.randint(1, 3, (n, 1))
    clean = (start + stride * torch.arange(8)) % 20
    hidden = torch.rand(n, 8) < 0.15
    hidden[:, 3] = True
    return clean.masked_fill(hidden, 20), clean.masked_fill(~hidden, -100)


torch.manual_seed(57)
model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
warmup = LinearLR(optimizer, start_factor=1e-4, total_iters=20)
for step in range(100):
    x, y = batch()
    loss = nn.functional.cross_entropy(model(x).transpose(1, 2), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
