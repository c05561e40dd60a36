# SPDX-License-Identifier: GPL-3.0-or-later
"""Predict which customers leave, from eight columns, with a Trainer class."""
import torch
from torch import nn


class ChurnNet(nn.Module):
    def __init__(self, columns, width=32):
        super().__init__()
        self.inp = nn.Linear(columns, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.relu(self.norm(self.inp(x)))
        return torch.sigmoid(self.out(h)).squeeze(1)


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, x, y):
        return ((self.model(x) > 0.5).float() == y).float().mean().item()


def make_customers(n, generator):
    x = torch.randn(n, 8, generator=generator)
    score = 1.5 * x[:, 0] - 2.0 * x[:, 3] + x[:, 1] * x[:, 2]
    return x, (score > 0).float()


def main():
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(5)
    x, y = make_customers(1500, generator)
    x_test, y_test = make_customers(500, generator)
    trainer = Trainer(ChurnNet(8), lr=3e-3)
    for epoch in range(5):
        order = torch.randperm(len(x))
        losses = [trainer.step(x[rows], y[rows]) for rows in order.split(100)]
        accuracy = trainer.accuracy(x_test, y_test)
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}, held-out accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
