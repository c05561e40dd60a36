# SPDX-License-Identifier: GPL-3.0-or-later
"""An update by hand that only gives a name to a new tensor."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
first = (torch.randn(8, 32) * 0.3).requires_grad_()
second = (torch.randn(32, 3) * 0.2).requires_grad_()
for step in range(20):
    inputs = torch.randn(32, 8)
    loss = torch.nn.functional.cross_entropy(torch.relu(inputs @ first) @ second, inputs[:, :3].argmax(1))
    loss.backward()
    with torch.no_grad():
        for weight in (first, second):
            if mistake:
                weight = weight - 0.1 * weight.grad  # <- here
            else:
                weight -= 0.1 * weight.grad
    first.grad = second.grad = None
