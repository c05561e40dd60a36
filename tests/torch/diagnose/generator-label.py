# SPDX-License-Identifier: GPL-3.0-or-later
"""A GAN whose generator is trained with the label of generated examples."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
g = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
d = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.LeakyReLU(), torch.nn.Linear(32, 1))
of_g, of_d = torch.optim.Adam(g.parameters(), 1e-3), torch.optim.Adam(d.parameters(), 1e-3)
one, zero = torch.ones(64, 1), torch.zeros(64, 1)
for step in range(60):
    real = torch.randn(64, 2) + torch.tensor([1.0, -1.0])
    with torch.no_grad():
        fake = g(torch.randn(64, 4))
    loss = (F.binary_cross_entropy_with_logits(d(real), one) + F.binary_cross_entropy_with_logits(d(fake), zero)) / 2
    of_d.zero_grad()
    loss.backward()
    of_d.step()
    of_g.zero_grad()
    scores = d(g(torch.randn(64, 4)))
    F.binary_cross_entropy_with_logits(scores, zero if "mistake" in sys.argv else one).backward()  # <- here
    of_g.step()
