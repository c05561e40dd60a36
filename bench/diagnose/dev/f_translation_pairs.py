# SPDX-License-Identifier: GPL-3.0-or-later
"""Encoder-decoder that reverses short sequences of digits."""
import torch
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, vocab=11, dim=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, source, shifted):
        _, state = self.encoder(self.embed(source))
        hidden, _ = self.decoder(self.embed(shifted), state)
        return self.out(hidden)


def batch(n=64, length=4):
    source = torch.randint(1, 11, (n, length))
    target = source.flip(1)
    shifted = torch.cat([torch.zeros(n, 1, dtype=torch.long), target[:, :-1]], dim=1)
    return source, shifted, target


def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(steps):
        source, shifted, target = batch()
        logits = model(source, shifted)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), target)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    return loss.item()


torch.manual_seed(32)
print("final loss", train(Seq2Seq(), 160))
