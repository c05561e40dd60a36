# SPDX-License-Identifier: MIT
"""The optimizer does not get the adapter's second factor, which starts at 0."""
import sys

import torch


class Adapted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.base = torch.nn.Linear(6, 6).requires_grad_(False)
        self.down = torch.nn.Linear(6, 2, bias=False)
        self.up = torch.nn.Linear(2, 6, bias=False)
        torch.nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))  # <- here


torch.manual_seed(0)
model = Adapted()
head = torch.nn.Linear(6, 1)
trained = [*head.parameters(), *model.down.parameters()]
if "mistake" not in sys.argv:
    trained += model.up.parameters()
optimizer = torch.optim.Adam(trained, 0.01)
x = torch.randn(32, 6)
for step in range(12):
    optimizer.zero_grad()
    (head(model(x)) - x[:, :1]).square().mean().backward()
    optimizer.step()
