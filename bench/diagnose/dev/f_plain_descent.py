# SPDX-License-Identifier: GPL-3.0-or-later
"""Two-layer network on plain tensors, updated by hand."""
import torch

torch.manual_seed(30)
x = torch.randn(300, 5)
y = (x.prod(1, keepdim=True) > 0).float() + x[:, :1]

shapes = [(5, 40), (40,), (40, 1), (1,)]
params = [torch.randn(s) * (0.4 if len(s) == 2 else 0.0) for s in shapes]
for p in params:
    p.requires_grad_(True)
speeds = [torch.zeros_like(p) for p in params]


def forward(x):
    w1, b1, w2, b2 = params
    return torch.relu(x @ w1 + b1) @ w2 + b2


for step in range(60):
    loss = (forward(x) - y).abs().mean()
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
        for p, v, g in zip(params, speeds, grads):
            v.mul_(0.9).add_(g)
            p.add_(v, alpha=0.02)
    if step % 10 == 0:
        print(f"step {step}: mean absolute error {loss.item():.4f}")
