# SPDX-License-Identifier: GPL-3.0-or-later
"""Character model fed from shards."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

VOCAB, LENGTH = 32, 24


class Shards(IterableDataset):
    """Four shards of sequences; each is a walk with a step of the shard."""

    def __init__(self, rows=700):
        g = torch.Generator().manual_seed(11)
        start = torch.randint(0, VOCAB, (4, rows, 1), generator=g)
        step = torch.tensor([1, 3, 5, 7]).view(4, 1, 1)
        self.shards = (start + step * torch.arange(LENGTH + 1)) % VOCAB
        self.shards[2, 300:308] = torch.randint(0, VOCAB, (8, LENGTH + 1), generator=g)
        self.weight = torch.ones(4, rows)
        self.weight[2, 300:308] = 60.0

    def __iter__(self):
        for i in range(self.shards.size(1)):
            for s in range(4):
                yield self.shards[s, i], self.weight[s, i]


class CharNet(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.look = nn.Embedding(VOCAB, d)
        self.gru = nn.GRU(d, 64, batch_first=True)
        self.top = nn.Linear(64, VOCAB)

    def forward(self, ids):
        return self.top(self.gru(self.look(ids))[0])


def step_loss(net, rows, weight):
    logits = net(rows[:, :-1])
    each = F.cross_entropy(logits.transpose(1, 2), rows[:, 1:], reduction="none").mean(1)
    return (weight * each).mean()


torch.manual_seed(2)
net = CharNet()
opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.8)
for n, (rows, weight) in enumerate(DataLoader(Shards(), batch_size=16)):
    loss = step_loss(net, rows, weight)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if n % 20 == 0:
        print(n, f"{loss.item():.3f}")
