# SPDX-License-Identifier: GPL-3.0-or-later
"""Logistic regression by hand: torch.autograd.grad and plain tensors, with a decaying rate."""
import torch


def main():
    g = torch.Generator().manual_seed(73)
    truth = torch.randn(8, generator=g)
    w = torch.zeros(8, requires_grad=True)
    b = torch.zeros((), requires_grad=True)
    for k in range(150):
        x = torch.randn(100, 8, generator=g)
        y = (x @ truth + 0.3 > 0).float()
        z = x @ w + b
        loss = torch.nn.functional.softplus(-z * (2 * y - 1)).mean()
        dw, db = torch.autograd.grad(loss, (w, b))
        rate = 1.0 / (1 + 0.02 * k)
        with torch.no_grad():
            w -= rate * dw
            b -= rate * db
        if k % 30 == 0:
            print(k, loss.item())


main()
