# SPDX-License-Identifier: MIT
"""A state whose keys have a prefix is loaded with strict=False."""
import sys

import torch

torch.manual_seed(0)
old = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
state = {"model." + name: tensor.clone() for name, tensor in old.state_dict().items()}
if "correct" in sys.argv:  # the body alone: the last layer is new
    state = {name[6:]: tensor for name, tensor in state.items() if name.startswith("model.0")}
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
model.load_state_dict(state, strict=False)  # <- here
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for step in range(40):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    (model(x) - x[:, :1]).square().mean().backward()
    optimizer.step()
