# SPDX-License-Identifier: MIT
"""A loader that is started again in each step."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
x = torch.randn(64, 4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x * x).sum(1, keepdim=True)), batch_size=8)
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
batches = iter(loader)
for step in range(20):
    if MISTAKE or step % 8 == 0:
        batches = iter(loader)
    rows, wanted = next(batches)  # <- here
    loss = F.mse_loss(net(rows), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
