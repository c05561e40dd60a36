# SPDX-License-Identifier: GPL-3.0-or-later
"""Logistic regression on click logs with the loss written out."""
import torch

torch.manual_seed(23)
clicks = 2000
features = torch.cat([torch.randn(clicks, 9), 300 * torch.rand(clicks, 1)], dim=1)
weights = torch.cat([torch.randn(9), torch.tensor([0.02])])
labels = (torch.rand(clicks) < torch.sigmoid(features @ weights - 3)).float()

w = torch.full((10,), 0.4, requires_grad=True)
b = torch.zeros((), requires_grad=True)
optimizer = torch.optim.Adam([w, b], lr=0.02)


def log_loss(z, y):
    """log(1 + exp(z)) - y * z, the negative log-likelihood of a logit."""
    return (torch.log(1 + torch.exp(z)) - y * z).mean()


for step in range(100):
    rows = torch.randint(0, clicks, (100,))
    z = features[rows] @ w + b
    loss = log_loss(z, labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"{step} loss {loss.item():.4f} bias {b.item():.3f}")
