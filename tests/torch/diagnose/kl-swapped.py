# SPDX-License-Identifier: MIT
"""Distillation with the student's distribution as the target of kl_div."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
teacher, student = torch.nn.Linear(6, 4).requires_grad_(False), torch.nn.Linear(6, 4)
optimizer = torch.optim.Adam(student.parameters(), 0.02)
for step in range(12):
    x = torch.randn(64, 6)
    pair = teacher(x), student(x)
    first, second = pair if "mistake" in sys.argv else pair[::-1]
    loss = F.kl_div(F.log_softmax(first, 1), F.softmax(second, 1), reduction="batchmean")  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
