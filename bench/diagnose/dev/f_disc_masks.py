# SPDX-License-Identifier: GPL-3.0-or-later
"""Masks of discs from noisy pictures, with a Dice loss."""
import argparse
import torch, torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--iters", type=int, default=120)
parser.add_argument("--bs", type=int, default=16)
args = parser.parse_args()

def make_batch(n, size=24):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    cx, cy = torch.randint(6, 18, (n, 1, 1)), torch.randint(6, 18, (n, 1, 1))
    r = torch.randint(3, 6, (n, 1, 1))
    mask = ((xx - cx) ** 2 + (yy - cy) ** 2 <= r ** 2).float()
    img = mask * 0.8 + 0.3 * torch.randn(n, size, size)
    return img.unsqueeze(1), mask.unsqueeze(1)

class SmallUNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.d1 = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.ReLU())
        self.d2 = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(c, 2 * c, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.out = nn.Sequential(nn.Conv2d(2 * c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, 1, 1))
    def forward(self, x):
        a = self.d1(x)
        return self.out(torch.cat([a, self.up(self.d2(a))], 1))

def dice_loss(pred, target, smooth=1.0):
    pred, target = pred.flatten(1), target.flatten(1)
    inter = (pred * target).sum(1)
    score = (2 * inter + smooth) / (pred.sum(1) + target.sum(1) + smooth)
    return 1 - score.mean()

torch.manual_seed(7)
model = SmallUNet()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for it in range(args.iters):
    x, m = make_batch(args.bs)
    loss = dice_loss(model(x), m)
    opt.zero_grad(); loss.backward(); opt.step()
    if it % 20 == 0:
        print(f"[{it}] dice loss {loss.item():.4f}")
