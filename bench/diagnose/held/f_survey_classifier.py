# SPDX-License-Identifier: GPL-3.0-or-later
"""Classify survey answers; one optimizer class, one training class, clipping by value."""
import torch
from torch import nn


class Training:
    clip = 1e-5

    def __init__(self, model, data):
        self.model, self.data = model, data
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
        self.criterion = nn.BCEWithLogitsLoss()

    def batches(self, size=50):
        x, y = self.data
        for rows in torch.randperm(len(x)).split(size):
            yield x[rows], y[rows]

    def epoch(self):
        total, count = 0.0, 0
        for x, y in self.batches():
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.criterion(self.model(x).squeeze(1), y)
            loss.backward()
            nn.utils.clip_grad_value_(self.model.parameters(), self.clip)
            self.optimizer.step()
            total, count = total + loss.item(), count + 1
        return total / count


torch.manual_seed(10)
answers = torch.randint(1, 6, (500, 20)).float()
happy = (answers[:, :5].mean(1) > answers[:, 5:10].mean(1)).float()
training = Training(nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 1)), ((answers - 3) / 1.4, happy))
for number in range(6):
    print("epoch", number, "loss", training.epoch())
