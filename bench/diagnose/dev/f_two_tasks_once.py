# SPDX-License-Identifier: GPL-3.0-or-later
"""Two tasks on one trunk: a class and a value, each with its own loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)
CENTRES = torch.randn(5, 16) * 2


def draw(n):
    label = torch.randint(0, 5, (n,))
    x = CENTRES[label] + torch.randn(n, 16)
    return x, label, x.norm(dim=1, keepdim=True) / 4


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.to_class = nn.Linear(64, 5)
        self.to_value = nn.Linear(64, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.to_class(h), self.to_value(h)


def learn(model, optimizer, batch):
    x, label, value = batch
    logits, guess = model(x)
    class_loss = F.cross_entropy(logits, label)
    value_loss = F.mse_loss(guess, value)
    optimizer.zero_grad()
    class_loss.backward(retain_graph=True)
    total = class_loss + 0.5 * value_loss
    total.backward()
    optimizer.step()
    return class_loss.item(), value_loss.item()


model = Shared()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(150):
    c, v = learn(model, optimizer, draw(64))
    if step % 30 == 0:
        print(f"{step:4d} class {c:.4f} value {v:.4f}")
