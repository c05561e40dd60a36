# SPDX-License-Identifier: MIT
"""The program catches the exception that ends its training, and prints it. Correct: it leaves out a batch."""
import sys

import torch

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.01)


def train():
    for step in range(20):
        try:
            x = torch.randn(8, 5 if step == 12 else 4)
            loss = (net(x) - x.sum(1, keepdim=True)).square().mean()  # <- here
        except RuntimeError:
            if MISTAKE:
                raise
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


try:
    train()
except RuntimeError as error:
    print("error:", error)
