# SPDX-License-Identifier: GPL-3.0-or-later
"""A backbone and a head with rates of their own, with a warm-up and a cosine."""
import math
import torch, torch.nn as nn
torch.manual_seed(17)


def adjust_lr(optimizer, step, base=3e-3, warm=20, total=160):
    lr = base * step / warm if step < warm else base * 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))
    for group in optimizer.param_groups:
        group["lr"] = lr


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(30, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU())
        self.head = nn.Linear(64, 5)

    def forward(self, x):
        return self.head(self.backbone(x))


x = torch.randn(1500, 30)
y = (x @ torch.randn(30, 5) + 0.3 * (x ** 2) @ torch.randn(30, 5)).argmax(1)
net = Model()
opt = torch.optim.AdamW([
    {"params": net.backbone.parameters(), "lr": 3e-4},
    {"params": net.head.parameters(), "lr": 3e-3},
], weight_decay=0.05)
for step in range(160):
    adjust_lr(opt, step + 1)
    i = torch.randint(0, 1500, (64,))
    loss = nn.functional.cross_entropy(net(x[i]), y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print(step, loss.item())
