# SPDX-License-Identifier: GPL-3.0-or-later
"""A target network whose moving average is assigned to the loop's own name."""
import copy
import sys

import torch

torch.manual_seed(0)
q = torch.nn.Sequential(torch.nn.Linear(4, 24), torch.nn.ReLU(), torch.nn.Linear(24, 2))
target = copy.deepcopy(q).requires_grad_(False)
optimizer = torch.optim.Adam(q.parameters(), 0.005)
for step in range(40):
    state, following, reward = torch.randn(32, 4), torch.randn(32, 4), torch.randn(32)
    wanted = reward + 0.9 * target(following).amax(1)
    loss = torch.nn.functional.smooth_l1_loss(q(state).gather(1, torch.randint(0, 2, (32, 1)))[:, 0], wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for slow, fast in zip(target.parameters(), q.parameters()):
        if "mistake" in sys.argv:
            slow = torch.lerp(slow.data, fast.data, 0.05)  # <- here
        else:
            slow.data = torch.lerp(slow.data, fast.data, 0.05)
