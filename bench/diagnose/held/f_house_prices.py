# SPDX-License-Identifier: GPL-3.0-or-later
"""Linear regression of house prices by gradient descent on plain tensors."""
import torch

torch.manual_seed(3)
area = 40 + 160 * torch.rand(200)
rooms = (area / 30).round()
age = 80 * torch.rand(200)
X = torch.stack([area, rooms, age], dim=1)
price = 1.9 * area + 12 * rooms - 0.4 * age + 10 * torch.randn(200)

w = torch.zeros(3, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = 1e-3

for step in range(60):
    prediction = X @ w + b
    loss = ((prediction - price) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
        w.grad.zero_()
        b.grad.zero_()
    if step % 6 == 0:
        print(f"step {step}: loss {loss.item():.3e}")
print("weights", w.tolist(), "bias", b.item())
