# SPDX-License-Identifier: GPL-3.0-or-later
"""Train on four shards of data; a map-style dataset finds shard and row."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sharded(Dataset):
    def __init__(self, shards):
        self.shards = shards
        self.size = len(shards[0][1])

    def __len__(self):
        return len(self.shards) * self.size

    def __getitem__(self, i):
        x, y = self.shards[i // self.size]
        return x[i // self.size], y[i // self.size]


def make_shard(rule, count):
    x = torch.randn(count, 14)
    return x, (x @ rule).argmax(1)


torch.manual_seed(73)
rule = torch.randn(14, 4)
dataset = Sharded([make_shard(rule, 160) for _ in range(4)])
x_test, y_test = make_shard(rule, 400)
net = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for epoch in range(4):
    for x, y in DataLoader(dataset, batch_size=32, shuffle=True):
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (net(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch}: train loss {loss.item():.5f}, test accuracy {accuracy:.3f}")
