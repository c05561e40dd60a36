# SPDX-License-Identifier: GPL-3.0-or-later
"""A vector quantizer whose codes start far from what the encoder makes."""
import sys

import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)
encoder = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
decoder = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
codes = torch.nn.Parameter(torch.randn(16, 4) * (20 if "mistake" in sys.argv else 0.3))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), codes], 0.003)
centres = torch.randn(10, 8)
for step in range(140):
    x = centres[torch.randint(0, 10, (64,))] + 0.1 * torch.randn(64, 8)
    z = encoder(x)
    nearest = torch.cdist(z, codes).argmin(1)  # <- here
    chosen = codes[nearest]
    loss = mse_loss(chosen, z.detach()) + 0.25 * mse_loss(z, chosen.detach())
    loss = loss + mse_loss(decoder(z + (chosen - z).detach()), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
