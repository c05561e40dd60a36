# SPDX-License-Identifier: GPL-3.0-or-later
import torch
import torch.nn as nn


class DeepSet(nn.Module):
    """No order among the points: the output must not depend on it."""

    def __init__(self):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.attn = nn.MultiheadAttention(64, 4, batch_first=True)
        self.rho = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, points):
        h = self.phi(points)
        a, _ = self.attn(h, h, h, need_weights=False)
        return self.rho((h + a).max(dim=1).values)


def clouds(n, size=20):
    kind = torch.randint(0, 3, (n,))
    p = torch.randn(n, size, 3)
    sphere = p / p.norm(dim=-1, keepdim=True)
    cube = torch.rand(n, size, 3) * 2 - 1
    disc = p * torch.tensor([1.0, 1.0, 0.05])
    return torch.where((kind == 0)[:, None, None], sphere, torch.where((kind == 1)[:, None, None], cube, disc)), kind


def main():
    torch.manual_seed(14)
    net = DeepSet()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for i in range(200):
        p, k = clouds(32)
        loss = nn.functional.cross_entropy(net(p), k)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if i % 50 == 0:
            print(i, loss.item())


main()
