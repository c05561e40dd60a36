# SPDX-License-Identifier: GPL-3.0-or-later
"""The same with squares of errors, the generator first; the correct one takes the negative of the discriminator's."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
sign = 1 if "mistake" in sys.argv else -1
g = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
d = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.LeakyReLU(), torch.nn.Linear(32, 1))
of_g, of_d = torch.optim.Adam(g.parameters(), 1e-3), torch.optim.Adam(d.parameters(), 1e-3)
for step in range(60):
    real, fake = torch.randn(64, 2) + 1, g(torch.randn(64, 4))
    of_g.zero_grad()
    scores = d(fake)
    (sign * F.mse_loss(scores, torch.zeros_like(scores))).backward()  # <- here
    of_g.step()
    good, bad = d(real), d(fake.detach())
    of_d.zero_grad()
    (F.mse_loss(good, torch.ones_like(good)) + F.mse_loss(bad, torch.zeros_like(bad))).backward()
    of_d.step()
