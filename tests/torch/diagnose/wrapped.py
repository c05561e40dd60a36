# SPDX-License-Identifier: MIT
"""Bytes from which their mean is subtracted as bytes."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
pixels = torch.randint(0, 256, (64, 16), dtype=torch.uint8)
net = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(20):
    rows = pixels[torch.randint(0, 64, (16,))]
    x = ((rows - 128).float() if MISTAKE else rows.float() - 128) / 128  # <- here
    loss = F.mse_loss(net(x), rows.float().mean(1, keepdim=True) / 256)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
