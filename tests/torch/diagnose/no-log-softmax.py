# SPDX-License-Identifier: MIT
"""A negative log likelihood of raw scores."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    x = torch.randn(32, 4)
    scores = net(x)
    scores = scores if MISTAKE else F.log_softmax(scores, 1)
    loss = F.nll_loss(scores, x[:, :3].argmax(1))  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
