# SPDX-License-Identifier: GPL-3.0-or-later
"""Two spirals, with the whole network in float16."""
import torch
import torch.nn as nn
torch.manual_seed(0)
CFG = dict(width=48, lr=1e-3, batch=64, steps=120, dtype=torch.float16)


def spirals(n):
    t = torch.rand(n) * 3 + 0.3
    c = torch.randint(0, 2, (n,))
    a = t * 2 + c * torch.pi
    return torch.stack([t * a.cos(), t * a.sin()], 1) + 0.05 * torch.randn(n, 2), c


def build(cfg):
    net = nn.Sequential(nn.Linear(2, cfg["width"]), nn.ReLU(), nn.Linear(cfg["width"], cfg["width"]), nn.ReLU(),
                        nn.Linear(cfg["width"], 2))
    return net.to(cfg["dtype"])


def train(cfg):
    net = build(cfg)
    opt = torch.optim.Adam(net.parameters(), lr=cfg["lr"])
    for step in range(cfg["steps"]):
        x, y = spirals(cfg["batch"])
        logits = net(x.to(cfg["dtype"]))
        loss = nn.functional.cross_entropy(logits.float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"[{step}] loss={loss.item():.4f}")
    return net


if __name__ == "__main__":
    train(CFG)
