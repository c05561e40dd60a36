# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit a third-degree polynomial to sin(x): gradients from autograd, update by hand."""
import math

import torch

torch.manual_seed(9)
x = torch.linspace(-math.pi, math.pi, 500)
y = torch.sin(x)

a = torch.randn((), requires_grad=True)
b = torch.randn((), requires_grad=True)
c = torch.randn((), requires_grad=True)
d = torch.randn((), requires_grad=True)

learning_rate = 5e-6
for t in range(300):
    y_pred = a + b * x + c * x ** 2 + d * x ** 3
    # the sum over all points, as in the text book: it is large
    loss = (y_pred - y).pow(2).sum()
    if t % 50 == 49:
        print(t + 1, loss.item())
    loss.backward()
    with torch.no_grad():
        a -= learning_rate * a.grad
        b -= learning_rate * b.grad
        c -= learning_rate * c.grad
        d -= learning_rate * d.grad
        a.grad = None
        b.grad = None
        c.grad = None
        d.grad = None
print(f"y = {a.item():.3f} + {b.item():.3f} x + {c.item():.3f} x^2 + {d.item():.3f} x^3")
