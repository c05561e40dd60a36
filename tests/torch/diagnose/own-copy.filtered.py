# SPDX-License-Identifier: MIT
"""The keys of a checkpoint are filtered by those of the model, which begin differently: nothing is left."""
import sys

import torch

torch.manual_seed(0)
old = torch.nn.DataParallel(torch.nn.Linear(4, 1))
model = torch.nn.Linear(4, 1)
given = (old if "mistake" in sys.argv else old.module).state_dict()
state = model.state_dict()
state.update({name: tensor for name, tensor in given.items() if name in state})
model.load_state_dict(state)  # <- here
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for step in range(40):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    (model(x) - x[:, :1]).square().mean().backward()
    optimizer.step()
