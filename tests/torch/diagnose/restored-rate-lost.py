# SPDX-License-Identifier: GPL-3.0-or-later
"""A scheduler that is made again after the optimizer's state was loaded."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9 ** step)


def train(steps):
    for _ in range(steps):
        inputs = torch.randn(32, 8)
        loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()


train(20)
saved = optimizer.state_dict(), scheduler.state_dict()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
if mistake:
    optimizer.load_state_dict(saved[0])
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9 ** step)  # <- here
else:
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9 ** step)
    optimizer.load_state_dict(saved[0])
    scheduler.load_state_dict(saved[1])
train(20)
