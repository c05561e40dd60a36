# SPDX-License-Identifier: MIT
"""A student that is compared by probabilities where their logarithms are expected."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
teacher = torch.nn.Linear(4, 3)
net = torch.nn.Linear(4, 3)
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    x = torch.randn(32, 4)
    with torch.no_grad():
        wanted = F.softmax(teacher(x), 1)
    scores = net(x)
    given = F.softmax(scores, 1) if MISTAKE else F.log_softmax(scores, 1)
    loss = F.kl_div(given, wanted, reduction="batchmean")  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
