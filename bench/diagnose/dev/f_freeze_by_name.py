# SPDX-License-Identifier: GPL-3.0-or-later
"""Fine-tune a text classifier: the pretrained embedding stays, the rest is trained."""
import torch
from torch import nn

VOCAB, CLASSES = 50, 4


class Sentences(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, width)
        self.emb_proj = nn.Linear(width, width)
        self.emb_mixer = nn.GRU(width, width, batch_first=True)
        self.top = nn.Linear(width, CLASSES)

    def forward(self, ids):
        h = torch.tanh(self.emb_proj(self.emb(ids)))
        _, last = self.emb_mixer(h)
        return self.top(last[0])


def freeze(model, pattern):
    for name, p in model.named_parameters():
        if name.startswith(pattern):
            p.requires_grad = False


def batch_of(gen, n):
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    ids = torch.randint(0, VOCAB, (n, 12), generator=gen)
    key = torch.rand(n, 12, generator=gen) < 0.3
    return torch.where(key, y[:, None] + 10, ids), y


def train(steps=200):
    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(2)
    model = Sentences()
    freeze(model, "emb")
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=3e-3)
    for step in range(steps):
        ids, y = batch_of(gen, 64)
        loss = nn.functional.cross_entropy(model(ids), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.3f}")


train()
