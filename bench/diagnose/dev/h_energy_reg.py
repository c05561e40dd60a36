# SPDX-License-Identifier: GPL-3.0-or-later
"""Full-batch regression with LBFGS and a closure, in double precision."""
import torch

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x = torch.linspace(-2, 2, 120).unsqueeze(1)
y = torch.sin(3 * x) * x + 0.05 * torch.randn_like(x)

model = torch.nn.Sequential(torch.nn.Linear(1, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.8, max_iter=8, history_size=20)


def closure():
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for step in range(20):
    loss = optimizer.step(closure)
    if step % 5 == 4:
        print(f"step {step + 1}: mse {loss.item():.5f}")
