# SPDX-License-Identifier: GPL-3.0-or-later
"""Graph attention: each node of a small citation network is classified from its own words and its neighbours'."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
NODES, WORDS, CLASSES = 120, 40, 4
kind = torch.randint(0, CLASSES, (NODES,))
words = (torch.rand(NODES, WORDS) < 0.04 + 0.3 * (torch.arange(WORDS) % CLASSES == kind[:, None])).float()
words = words / words.sum(1, keepdim=True).clamp(min=1)
linked = torch.rand(NODES, NODES) < 0.01 + 0.1 * (kind[:, None] == kind)
linked = linked | linked.T | torch.eye(NODES, dtype=torch.bool)


class Heads(nn.Module):
    """Several heads at once: (heads, nodes, features)."""

    def __init__(self, given, made, heads, joins):
        super().__init__()
        self.project = nn.Parameter(torch.empty(heads, given, made))
        self.sends = nn.Parameter(torch.empty(heads, made, 1))
        self.takes = nn.Parameter(torch.empty(heads, made, 1))
        self.joins = joins
        for one in (self.project, self.sends, self.takes):
            nn.init.xavier_uniform_(one)

    def forward(self, x):
        each = x @ self.project
        scores = F.leaky_relu(each @ self.takes + (each @ self.sends).mT, 0.2)
        share = scores.masked_fill(~linked, float("-inf")).softmax(-1)
        mixed = F.dropout(share, 0.3, self.training) @ each
        return torch.cat(list(mixed), -1) if self.joins else mixed.mean(0)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Heads(WORDS, 8, 4, True), Heads(32, CLASSES, 4, False)

    def forward(self, x):
        x = F.elu(self.first(F.dropout(x, 0.3, self.training)))
        return F.log_softmax(self.second(x), 1)


net = Network()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=5e-4)
order = torch.randperm(NODES)
train, rest = order[:70], order[70:]
for epoch in range(60):
    net.train()
    optimizer.zero_grad()
    loss = F.nll_loss(net(words)[train], kind[train])
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        net.eval()
        with torch.no_grad():
            right = (net(words)[rest].argmax(1) == kind[rest]).float().mean()
        print("epoch %d: loss %.3f, %.2f right" % (epoch, loss, right))
