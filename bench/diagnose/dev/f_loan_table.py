# SPDX-License-Identifier: GPL-3.0-or-later
"""Who pays back a loan: two layers written with plain tensors."""
import torch

torch.manual_seed(5)
n = 1200
income = 42000 + 15000 * torch.randn(n)
debt = 18000 + 9000 * torch.randn(n)
age = 1 + torch.rand(n)
score = torch.randn(n)
table = torch.stack([income, debt, age, score], dim=1)
paid = ((income - 42000) / 15000 - (debt - 18000) / 9000 + score > 0).float()

w1 = (torch.randn(4, 16) * 0.5).requires_grad_()
b1 = torch.zeros(16, requires_grad=True)
w2 = (torch.randn(16, 1) * 0.25).requires_grad_()
b2 = torch.zeros(1, requires_grad=True)
parameters = [w1, b1, w2, b2]

for step in range(100):
    rows = torch.randint(0, n, (100,))
    h = torch.tanh(table[rows] @ w1 + b1)
    logit = (h @ w2 + b2).squeeze(1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logit, paid[rows])
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.2 * p.grad
            p.grad = None
    if step % 20 == 19:
        right = ((logit > 0).float() == paid[rows]).float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, right {right:.2f}")
