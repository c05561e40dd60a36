# SPDX-License-Identifier: GPL-3.0-or-later
"""Fine-tuning of a head, whose loop freezes the head, too: the optimizer holds nothing that is trained."""
import sys

import torch

torch.manual_seed(0)
body = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU())
head = torch.nn.Linear(16, 3)
optimizer = torch.optim.Adam(head.parameters(), 0.01)  # <- here
for name, parameter in [*body.named_parameters(), *head.named_parameters("head")]:
    parameter.requires_grad = name.startswith("1" if "mistake" in sys.argv else "head")
for _ in range(12):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(head(body(inputs)), inputs[:, :3].argmax(1)).backward()
    optimizer.step()
