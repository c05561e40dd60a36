# SPDX-License-Identifier: MIT
"""SimSiam without its stop-gradient: the directions of all outputs become the same."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Linear(64, 16))
predictor = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
optimizer = torch.optim.SGD([*net.parameters(), *predictor.parameters()], 0.2, momentum=0.9)
centres = torch.randn(8, 16)
for step in range(65):
    x = centres[torch.randint(0, 8, (64,))]
    a, b = net(x + 0.3 * torch.randn(64, 16)), net(x + 0.3 * torch.randn(64, 16))
    fixed_a, fixed_b = (a, b) if "mistake" in sys.argv else (a.detach(), b.detach())
    p, q = predictor(a), predictor(b)  # <- here
    loss = 2 - F.cosine_similarity(p, fixed_b).mean() - F.cosine_similarity(q, fixed_a).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
