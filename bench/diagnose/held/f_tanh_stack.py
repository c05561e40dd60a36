# SPDX-License-Identifier: GPL-3.0-or-later
"""Classify 64-pixel patterns with four layers of tanh, by hand."""
import torch
import torch.nn.functional as F

torch.manual_seed(48)
sizes = [64, 64, 64, 64, 5]
weights, biases = [], []
for n_in, n_out in zip(sizes, sizes[1:]):
    w = torch.normal(0.0, 2.0, (n_in, n_out))
    weights.append(w.requires_grad_())
    biases.append(torch.zeros(n_out, requires_grad=True))


def network(h):
    for w, b in zip(weights[:-1], biases[:-1]):
        h = torch.tanh(h @ w + b)
    return h @ weights[-1] + biases[-1]


patterns = torch.randn(5, 64)
optimizer = torch.optim.SGD(weights + biases, lr=0.02, momentum=0.9)
for step in range(1, 121):
    y = torch.randint(0, 5, (64,))
    x = patterns[y] + 2.5 * torch.randn(64, 64)
    logits = network(x)
    loss = F.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step} loss {loss.item():.4f} accuracy {(logits.argmax(1) == y).float().mean().item():.3f}")
