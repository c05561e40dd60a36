# SPDX-License-Identifier: MIT
"""A dataset that seeds before it adds noise."""
import sys

import numpy as np
import torch

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
np.random.seed(0)


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, i):
        if MISTAKE:
            np.random.seed(i)  # <- here
        x = i / 24 - 1 + 0.1 * np.random.randn(4)
        return torch.tensor(x, dtype=torch.float32), torch.tensor([(i / 24 - 1) ** 2], dtype=torch.float32)


net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
loader = torch.utils.data.DataLoader(Noisy(), 8, shuffle=True)
for epoch in range(6):
    for x, y in loader:
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
