# SPDX-License-Identifier: MIT
"""Bytes that overflow in NumPy, before PyTorch sees them."""
import sys

import numpy as np
import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
rng = np.random.default_rng(0)
net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(400, 2))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    y = rng.integers(0, 2, 16)
    waves = np.arange(12) * (0.4 + 0.4 * y[:, None, None]) + rng.uniform(0, 6, (16, 12, 1))
    image = (150 + 60 * np.sin(waves) + rng.normal(0, 5, (16, 12, 12))).astype(np.uint8)
    wide = image if MISTAKE else image.astype(np.int64)
    image = (wide + np.asarray(70, wide.dtype)).clip(0, 255)
    x = torch.from_numpy(image[:, None]).float() / 127.5 - 1
    loss = F.cross_entropy(net(x), torch.from_numpy(y))  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
