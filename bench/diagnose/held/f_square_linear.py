# SPDX-License-Identifier: GPL-3.0-or-later
"""Sequence mixer with a linear layer whose derivatives are written out."""
import torch
from torch import nn


class LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        return input @ weight.t() + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_output @ weight.t()
        grad_weight = grad_output.t() @ input
        return grad_input, grad_weight, grad_output.sum(0)


class Mixer(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(dim, dim) / dim ** 0.5) for _ in range(depth))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(dim)) for _ in range(depth))
        self.out = nn.Linear(dim, 4)

    def forward(self, x):
        for w, b in zip(self.weights, self.biases):
            x = torch.tanh(LinearFunction.apply(x, w, b))
        return self.out(x)


torch.manual_seed(75)
model = Mixer(20, 4)
teacher = torch.randn(20, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(80):
    x = torch.randn(96, 20)
    y = (x @ teacher).argmax(1)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 16 == 15:
        print(f"{step + 1:3d} loss {loss.item():.4f}")
