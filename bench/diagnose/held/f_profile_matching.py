# SPDX-License-Identifier: GPL-3.0-or-later
"""Match users to articles by the cosine of their vectors."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def unit(v):
    return v / v.pow(2).sum(-1, keepdim=True).sqrt()


class Tower(nn.Module):
    def __init__(self, words, dim=16):
        super().__init__()
        self.table = nn.EmbeddingBag(words, dim, mode="sum", padding_idx=0)
        self.project = nn.Linear(dim, dim, bias=False)

    def forward(self, bag):
        return unit(torch.relu(self.project(self.table(bag))))


def main():
    torch.manual_seed(31)
    users = torch.randint(0, 40, (512, 6))
    users[torch.rand(512) < 0.02] = 0  # new users have read nothing yet
    articles = torch.randint(1, 40, (512, 6))
    click = ((users.unsqueeze(2) == articles.unsqueeze(1)) & (users > 0).unsqueeze(2)).flatten(1).any(1).float()
    loader = DataLoader(TensorDataset(users, articles, click), batch_size=64, shuffle=True)
    left, right = Tower(40), Tower(40)
    scale = nn.Parameter(torch.tensor(3.0))
    optimizer = torch.optim.Adam([*left.parameters(), *right.parameters(), scale], lr=0.01)
    for epoch in range(6):
        total = 0.0
        for u, a, c in loader:
            cosine = (left(u) * right(a)).sum(1)
            loss = nn.functional.binary_cross_entropy_with_logits(scale * (cosine - 0.5), c)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


main()
