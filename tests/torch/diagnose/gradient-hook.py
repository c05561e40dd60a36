# SPDX-License-Identifier: MIT
"""A hook of each block sets small gradients to 0 instead of large ones; beside it, a clamp and a reversal on purpose."""
import sys

import torch


def guard(_module, given, _received):
    wrong = "mistake" in sys.argv
    return tuple(one * (one.norm() > 100 if wrong else one.norm() <= 100) for one in given)  # <- here


torch.manual_seed(0)
body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()))
head = torch.nn.Linear(8, 3)
body[1].register_full_backward_hook(guard)
head.weight.register_hook(lambda grad: grad.clamp(-1, 1))
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], 0.1)
x = torch.randn(32, 4)
y = x[:, :3].argmax(1)
for step in range(10):
    optimizer.zero_grad()
    hidden = body(x)
    hidden.register_hook(lambda grad: -grad)
    hidden.register_hook(lambda grad: -grad)
    torch.nn.functional.cross_entropy(head(hidden), y).backward()
    optimizer.step()
