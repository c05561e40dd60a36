# SPDX-License-Identifier: GPL-3.0-or-later
"""Windows of a series whose target is their own last value."""
import sys

import torch

torch.manual_seed(0)
ahead = 0 if "mistake" in sys.argv else 1
series = torch.sin(torch.arange(800) * 0.2) + 0.1 * torch.randn(800)
windows = torch.stack([series[start:start + 12] for start in range(780)]).unsqueeze(2)
targets = torch.stack([series[start + 11 + ahead] for start in range(780)])


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = torch.nn.GRU(1, 16, batch_first=True), torch.nn.Linear(16, 1)

    def forward(self, x):
        return self.out(self.gru(x)[1][-1]).squeeze(1)


model = Network()
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 780, (32,))
    optimizer.zero_grad()
    ((model(windows[rows]) - targets[rows]) ** 2).mean().backward()  # <- here
    optimizer.step()
