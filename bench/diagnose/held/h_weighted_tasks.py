# SPDX-License-Identifier: GPL-3.0-or-later
"""Two tasks with learned weights: the total loss becomes negative as it should."""
import torch
from torch import nn


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 48), nn.ReLU())
        self.depth, self.kind = nn.Linear(48, 1), nn.Linear(48, 3)
        self.log_var = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.depth(h), self.kind(h)

    def loss(self, x, depth, kind):
        d, k = self(x)
        parts = torch.stack([nn.functional.mse_loss(d, depth), nn.functional.cross_entropy(k, kind)])
        return (torch.exp(-self.log_var) * parts + self.log_var).sum(), parts.detach()


torch.manual_seed(116)
model = MultiTask()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(150):
    x = torch.randn(96, 10)
    depth = 0.1 * (x[:, :1] + x[:, 1:2])
    kind = (x[:, 2] > 0).long() + (x[:, 3] > 0).long()
    loss, parts = model.loss(x, depth, kind)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        print(f"step {step + 1} total {loss.item():.4f} depth {parts[0].item():.5f} kind {parts[1].item():.4f}")
