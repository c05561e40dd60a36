# SPDX-License-Identifier: MIT
"""Images that are normalised for training only."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
y = torch.randint(0, 2, (256,))
pixels = (torch.rand(256, 1, 6, 6) + (torch.arange(6.0) / 6 - 0.4) * (2 * y[:, None, None, None] - 1)).clamp(0, 1)
images = (pixels - pixels.mean()) / pixels.std()
net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 2))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for epoch in range(4):
    net.train()
    for rows in torch.randperm(192).split(32):
        loss = F.cross_entropy(net(images[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        scores = net((pixels if MISTAKE else images)[192:])  # <- here
        print(F.cross_entropy(scores, y[192:]).item())
