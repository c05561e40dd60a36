# SPDX-License-Identifier: GPL-3.0-or-later
"""Rare classes with a focal loss and a small trainer."""
import torch
from torch import nn
import torch.nn.functional as F

class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=None):
        super().__init__()
        self.gamma, self.alpha = gamma, alpha
    def forward(self, logits, targets):
        ce = F.cross_entropy(logits, targets, weight=self.alpha)
        pt = torch.exp(-ce)
        return ((1 - pt) ** self.gamma * ce).mean()

class Trainer:
    def __init__(self, model, criterion, lr=1e-3):
        self.model, self.criterion = model, criterion
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    def fit(self, data, epochs):
        X, y = data
        for e in range(epochs):
            perm = torch.randperm(len(X))
            for b in perm.split(100):
                self.step(X[b], y[b])
            print("epoch", e, "loss", round(self.last, 4))
    def step(self, x, y):
        self.optimizer.zero_grad()
        out = self.model(x)
        loss = self.criterion(out, y)
        loss.backward()
        self.optimizer.step()
        self.last = loss.item()

torch.manual_seed(8)
y = torch.multinomial(torch.tensor([0.85, 0.1, 0.05]), 2500, replacement=True)
X = torch.randn(2500, 16) + torch.randn(3, 16)[y] * 1.2
Trainer(nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 3)), FocalLoss(gamma=2)).fit((X, y), 5)
