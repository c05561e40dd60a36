# SPDX-License-Identifier: MIT
"""A router whose bias sends everything to one expert."""
import sys

import torch

torch.manual_seed(0)
router = torch.nn.Linear(6, 3)
experts = torch.nn.ModuleList(torch.nn.Linear(6, 2) for _ in range(3))
if "mistake" in sys.argv:
    router.bias.data[1] = 9
optimizer = torch.optim.SGD([*router.parameters(), *experts.parameters()], 0.02)
for step in range(10):
    x = torch.randn(60, 6)
    weight, chosen = router(x).softmax(-1).topk(1)  # <- here
    made = torch.stack([expert(x) for expert in experts], 1)
    made = made.gather(1, chosen.unsqueeze(-1).expand(-1, 1, 2)).squeeze(1) * weight
    optimizer.zero_grad()
    (made - x[:, :2].abs()).square().mean().backward()
    optimizer.step()
