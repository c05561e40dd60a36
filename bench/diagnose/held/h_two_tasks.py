# SPDX-License-Identifier: GPL-3.0-or-later
"""Two tasks on one trunk, weighted by learned uncertainties; a third of the ratings is missing (NaN)."""
import torch
import torch.nn.functional as F
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU())
        self.kind = nn.Linear(48, 4)
        self.rating = nn.Linear(48, 1)
        self.log_variance = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.kind(h), self.rating(h).squeeze(-1)

    def loss(self, x, kind, rating):
        kinds, ratings = self(x)
        known = ~torch.isnan(rating)
        classification = F.cross_entropy(kinds, kind)
        regression = F.mse_loss(ratings[known], rating[known])
        weight = torch.exp(-self.log_variance)
        total = weight[0] * classification + 0.5 * weight[1] * regression + 0.5 * self.log_variance.sum()
        return total, classification, regression


torch.manual_seed(39)
x = torch.randn(1000, 12)
kind = (x @ torch.randn(12, 4)).argmax(1)
rating = x @ torch.randn(12) + x[:, 0] * x[:, 1]
rating[torch.rand(1000) < 0.33] = float("nan")
model = TwoHeads()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
for step in range(120):
    rows = torch.randint(0, 1000, (64,))
    total, classification, regression = model.loss(x[rows], kind[rows], rating[rows])
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    if step % 30 == 29:
        parts = f"kind {classification.item():.4f} rating {regression.item():.4f}"
        print(f"step {step + 1}: total {total.item():.4f} {parts}")
