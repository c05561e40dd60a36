# SPDX-License-Identifier: GPL-3.0-or-later
"""Siamese network: do two pictures show the same class?"""
import torch
import torch.nn as nn


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                                   nn.MaxPool2d(2), nn.Flatten())
        self.fc = nn.Sequential(nn.Linear(2 * 8 * 16, 64), nn.ReLU(inplace=True), nn.Linear(64, 1))
        self.sigmoid = nn.Sigmoid()
        self.apply(self.init)

    @staticmethod
    def init(m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward(self, a, b):
        return self.sigmoid(self.fc(torch.cat([self.tower(a), self.tower(b)], 1))).squeeze(1)


torch.manual_seed(8)
shapes = torch.randn(3, 1, 8, 8)


def pairs(n=64):
    left = torch.randint(0, 3, (n,))
    right = torch.where(torch.rand(n) < 0.5, left, (left + torch.randint(1, 3, (n,))) % 3)
    noise = 0.3 * torch.randn(2, n, 1, 8, 8)
    return shapes[left] + noise[0], shapes[right] + noise[1], (left == right).float()


model = Siamese()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
criterion = nn.BCELoss()
for step in range(80):
    a, b, same = pairs()
    optimizer.zero_grad()
    out = model(a, b)
    loss = criterion(out, same)
    loss.backward()
    optimizer.step()
    if step % 16 == 15:
        print(f"step {step + 1} loss {loss.item():.4f} accuracy {((out > 0.5) == (same > 0.5)).float().mean().item():.2f}")
