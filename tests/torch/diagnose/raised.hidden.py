# SPDX-License-Identifier: MIT
"""The state of a recurrent network is kept from chunk to chunk, with its graph."""
import sys

import torch

torch.manual_seed(0)
rnn, head = torch.nn.GRU(1, 8, batch_first=True), torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], 0.01)
series = torch.sin(torch.arange(484.0) / 5).view(4, 121, 1)
state = torch.zeros(1, 4, 8)
for at in range(0, 120, 10):
    made, state = rnn(series[:, at:at + 10], state)  # <- here
    if "mistake" not in sys.argv:
        state = state.detach()
    optimizer.zero_grad()
    (head(made) - series[:, at + 1:at + 11]).square().mean().backward()
    optimizer.step()
