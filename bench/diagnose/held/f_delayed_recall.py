# SPDX-License-Identifier: GPL-3.0-or-later
"""Recall the first symbol of a sequence at its end."""
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, symbols=6, hidden=40):
        super().__init__()
        self.embed = nn.Embedding(2 * symbols, 12)
        self.cell = nn.GRUCell(12, hidden)
        self.out = nn.Linear(hidden, symbols)
        self.hidden = hidden

    def forward(self, x):
        state = torch.zeros(x.shape[0], self.hidden)
        for t in range(x.shape[1]):
            state = self.cell(self.embed(x[:, t]), state.detach())
        return self.out(state)


torch.manual_seed(71)
model = Cell()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(200):
    x = torch.randint(6, 12, (64, 12))
    x[:, 0] = torch.randint(0, 6, (64,))
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, x[:, 0])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step + 1} loss {loss.item():.4f} recall {(logits.argmax(1) == x[:, 0]).float().mean().item():.2f}")
