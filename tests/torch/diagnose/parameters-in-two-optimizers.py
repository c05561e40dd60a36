# SPDX-License-Identifier: MIT
"""The second optimizer is given the parameters of the first one's network, and nobody trains those of the other."""
import sys

import torch

torch.manual_seed(0)
encoder, decoder = torch.nn.Linear(6, 2), torch.nn.Linear(2, 6)
other = encoder if "mistake" in sys.argv else decoder
first = torch.optim.SGD(encoder.parameters(), 0.05)
second = torch.optim.SGD(other.parameters(), 0.05)  # <- here
x = torch.randn(64, 2) @ torch.randn(2, 6)
for step in range(10):
    first.zero_grad()
    second.zero_grad()
    decoder.zero_grad()
    (decoder(encoder(x)) - x).square().mean().backward()
    first.step()
    second.step()
