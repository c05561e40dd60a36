# SPDX-License-Identifier: MIT
"""The state of a GRU is kept from batch to batch of a shuffled loader; correct: over parts of one batch."""
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(640, 12, 3)
loader = DataLoader(TensorDataset(x, x[:, :, 0].cumsum(1)), batch_size=32, shuffle=True)
net, head = torch.nn.GRU(3, 8, batch_first=True), torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()], 0.01)
state = None
for rows, wanted in loader:
    if "correct" in sys.argv:
        state = None
    for part in (slice(0, 12),) if "mistake" in sys.argv else (slice(0, 6), slice(6, 12)):
        out, state = net(rows[:, part], state)  # <- here
        state = state.detach()
        optimizer.zero_grad()
        (head(out).squeeze(2) - wanted[:, part]).square().mean().backward()
        optimizer.step()
