# SPDX-License-Identifier: GPL-3.0-or-later
"""Meta-learning: one inner step on a new sine, the outer loss goes through it."""
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(120)
model = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 1))
outer = torch.optim.Adam(model.parameters(), lr=5e-3)


def task():
    amplitude, phase = 0.5 + 2 * torch.rand(1), 3.14 * torch.rand(1)
    x = torch.rand(20, 1) * 6 - 3
    y = amplitude * torch.sin(x + phase)
    return x[:10], y[:10], x[10:], y[10:]


def adapt(params, x, y, rate=0.05):
    loss = nn.functional.mse_loss(functional_call(model, params, (x,)), y)
    grads = torch.autograd.grad(loss, tuple(params.values()), create_graph=True)
    return {n: p - rate * g for (n, p), g in zip(params.items(), grads)}, loss


window = []
for step in range(100):
    total = 0.0
    for _ in range(4):
        x, y, x_test, y_test = task()
        fast, before = adapt(dict(model.named_parameters()), x, y)
        total = total + nn.functional.mse_loss(functional_call(model, fast, (x_test,)), y_test)
    loss = total / 4
    outer.zero_grad()
    loss.backward()
    outer.step()
    window.append(loss.item())
    if step % 20 == 19:
        print(f"step {step + 1} loss after adaptation {sum(window[-20:]) / 20:.4f}")
