# SPDX-License-Identifier: GPL-3.0-or-later
"""A graph convolution on a graph of three communities."""
import torch
import torch.nn.functional as F
from torch import nn, optim
torch.manual_seed(21)


class GCN(nn.Module):
    def __init__(self, f, h, c):
        super().__init__()
        self.l1, self.l2 = nn.Linear(f, h), nn.Linear(h, c)

    def forward(self, A, X):
        return self.l2(A @ F.relu(self.l1(A @ X)))


def sbm(n=300, c=3):
    y = torch.arange(n) % c
    p = torch.where(y[:, None] == y[None], 0.08, 0.01)
    A = (torch.rand(n, n) < p).float().triu(1)
    A = A + A.t() + torch.eye(n)
    d = A.sum(1).rsqrt()
    return d[:, None] * A * d[None], y


A, y = sbm()
X = F.one_hot(y, 3).float() @ torch.randn(3, 16) * 0.3 + torch.randn(300, 16)
train = torch.rand(300) < 0.3
LR, WD = 0.5, 5e-4
net = GCN(16, 32, 3)
optimizer = optim.SGD(net.parameters(), LR, WD)
for ep in range(150):
    net.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(net(A, X)[train], y[train])
    loss.backward()
    optimizer.step()
    if ep % 25 == 0:
        net.eval()
        with torch.no_grad():
            acc = (net(A, X).argmax(1) == y)[~train].float().mean()
        print(f"{ep:3d} loss {loss:.3f} test acc {acc:.3f}")
