# SPDX-License-Identifier: GPL-3.0-or-later
"""Recurrent network on plain tensors that adds up marked numbers."""
import torch

torch.manual_seed(52)
H, T = 24, 60


def weight(*shape):
    return (torch.randn(*shape) * 0.5).requires_grad_()


W, U, b, V = weight(H, H), weight(2, H), torch.zeros(H, requires_grad=True), weight(H, 1)


def run(x):
    h = torch.zeros(x.shape[0], H)
    for t in range(x.shape[1]):
        h = torch.relu(h @ W + x[:, t] @ U + b)
    return h @ V


optimizer = torch.optim.SGD([W, U, b, V], lr=0.01)
for step in range(40):
    value, mark = torch.rand(32, T), torch.zeros(32, T)
    mark[:, 10], mark[:, 40] = 1.0, 1.0
    target = (value * mark).sum(1, keepdim=True)
    prediction = run(torch.stack([value, mark], dim=2))
    loss = ((prediction - target) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step} loss {loss.item():.4g}")
