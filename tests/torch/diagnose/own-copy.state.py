# SPDX-License-Identifier: MIT
"""The best state is kept, as references."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(32, 4)
best = {}
for step in range(12):
    optimizer.zero_grad()
    (net(x) - x[:, :2]).square().mean().backward()
    optimizer.step()
    if step == 5:
        best = net.state_dict()
        if "mistake" not in sys.argv:
            best = {name: value.clone() for name, value in best.items()}
optimizer.zero_grad()
net.load_state_dict(best)  # <- here
(net(x) - x[:, :2]).square().mean().backward()
optimizer.step()
