# SPDX-License-Identifier: GPL-3.0-or-later
"""Classify signals by a code: an encoder, and a classifier on top of it, trained together."""
import torch
from torch import nn

torch.manual_seed(16)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 6, 7, padding=3)
        self.squeeze = nn.Linear(6 * 8, 3)

    def forward(self, x):
        h = torch.relu(self.conv(x))
        h = nn.functional.max_pool1d(h, 8)
        return torch.tanh(self.squeeze(h.flatten(1)))


def signals(n):
    label = torch.randint(0, 5, (n,))
    t = torch.arange(64).float()
    wave = torch.sin(t * (0.15 + 0.2 * label[:, None]) + torch.rand(n, 1) * 6.28)
    return wave[:, None] + 0.2 * torch.randn(n, 1, 64), label


encoder = Encoder()
classifier = nn.Linear(3, 5)
optimizer = torch.optim.Adam([*encoder.parameters(), *classifier.parameters()], lr=0.02)
for step in range(80):
    x, y = signals(64)
    code = encoder(x).detach()
    logits = classifier(code)
    loss = nn.functional.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 16 == 15:
        print(f"step {step + 1} loss {loss.item():.3f} accuracy {(logits.argmax(1) == y).float().mean().item():.2f}")
