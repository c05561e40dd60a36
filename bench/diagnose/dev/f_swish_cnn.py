# SPDX-License-Identifier: GPL-3.0-or-later
"""Small convolutional network with a memory-saving activation."""
import torch
from torch import nn


class SwishFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        x = ctx.saved_tensors[0]
        s = torch.sigmoid(x)
        return grad_output * s * (1 - s)


class Swish(nn.Module):
    def forward(self, x):
        return SwishFunction.apply(x)


torch.manual_seed(38)
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), Swish(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), Swish(),
                    nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 32), Swish(), nn.Linear(32, 6))
shapes = torch.randn(6, 1, 8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(60):
    label = torch.randint(0, 6, (48,))
    x = shapes[label] * torch.rand(48, 1, 1, 1) + 0.8 * torch.randn(48, 1, 8, 8)
    out = net(x)
    loss = nn.functional.cross_entropy(out, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1} loss {loss.item():.4f} accuracy {(out.argmax(1) == label).float().mean().item():.2f}")
