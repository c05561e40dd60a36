# SPDX-License-Identifier: MIT
"""A GAN on points of a plane, whose generator gets one noise vector for the whole batch."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
g = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.LeakyReLU(), torch.nn.Linear(32, 2))
d = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.LeakyReLU(), torch.nn.Linear(32, 1))
of_g = torch.optim.Adam(g.parameters(), 1e-3, betas=(0.5, 0.99))
of_d = torch.optim.Adam(d.parameters(), 2e-3, betas=(0.5, 0.99))
one, zero = torch.ones(64, 1), torch.zeros(64, 1)
for step in range(140):
    real = torch.randn(64, 2) + torch.tensor([1.0, -1.0])
    noise = torch.randn(1, 4).expand(64, 4) if "mistake" in sys.argv else torch.randn(64, 4)
    fake = g(noise)  # <- here
    loss = (F.binary_cross_entropy_with_logits(d(real), one)
            + F.binary_cross_entropy_with_logits(d(fake.detach()), zero))
    of_d.zero_grad()
    loss.backward()
    of_d.step()
    of_g.zero_grad()
    F.binary_cross_entropy_with_logits(d(fake), one).backward()
    of_g.step()
