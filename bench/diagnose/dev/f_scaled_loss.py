# SPDX-License-Identifier: GPL-3.0-or-later
"""Train with a constant loss scale so that small gradients survive in half precision."""
import torch
from torch import nn

SCALE = 1024.0


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.history = []

    def loss(self, x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = self.model(x)
        return nn.functional.cross_entropy(out.float(), y)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        (loss * SCALE).backward()
        self.optimizer.step()
        self.history.append(loss.item())


def main():
    torch.manual_seed(6)
    centers = torch.randn(6, 24)
    model = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 6))
    trainer = Trainer(model, lr=0.05)
    for step in range(60):
        y = torch.randint(0, 6, (64,))
        trainer.step(centers[y] + torch.randn(64, 24), y)
        if step % 10 == 9:
            print(f"{step + 1}: loss {sum(trainer.history[-10:]) / 10:.3f}")


main()
