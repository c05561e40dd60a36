# SPDX-License-Identifier: GPL-3.0-or-later
"""Learn the vector field of a spiral by integrating it with Runge-Kutta steps."""
import torch
from torch import nn

torch.manual_seed(104)
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 40), nn.Tanh(), nn.Linear(40, 2))
        for m in self.net:
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, std=0.1)
                nn.init.zeros_(m.bias)

    def forward(self, y):
        return self.net(y ** 3)


def integrate(f, y, steps, h=0.05):
    path = [y]
    for _ in range(steps):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(y)
    return torch.stack(path)


with torch.no_grad():
    truth = integrate(lambda y: (y ** 3) @ matrix.t(), torch.tensor([[2.0, 0.0]]), 200)[:, 0]
field = Field()
optimizer = torch.optim.RMSprop(field.parameters(), lr=5e-3)
for step in range(120):
    begin = torch.randint(0, 190, (32,))
    guess = integrate(field, truth[begin], 8)
    goal = torch.stack([truth[begin + i] for i in range(9)])
    loss = (guess - goal).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"iteration {step + 1} loss {loss.item():.4f}")
