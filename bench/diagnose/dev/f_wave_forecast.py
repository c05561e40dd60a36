# SPDX-License-Identifier: GPL-3.0-or-later
"""A recurrent forecaster of noisy sums of sines."""
import argparse
import math

import torch
import torch.nn as nn


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super(Forecaster, self).__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.fc1 = nn.Linear(hidden, hidden)
        self.fc2 = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        h = torch.relu(self.fc1(out[:, -1]))
        h = nn.Dropout(0.4)(h)
        return self.fc2(h).squeeze(-1)


def make(n, length=24):
    t0 = torch.rand(n, 1) * 50
    t = t0 + torch.arange(length + 1) * 0.3
    s = torch.sin(t) + 0.5 * torch.sin(t / math.pi) + 0.05 * torch.randn(n, length + 1)
    return s[:, :-1, None], s[:, -1]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--lr", type=float, default=4e-3)
    args = ap.parse_args()
    torch.manual_seed(11)
    xtr, ytr = make(640)
    xva, yva = make(256)
    net = Forecaster(32)
    optim = torch.optim.AdamW(net.parameters(), lr=args.lr)
    lossf = nn.SmoothL1Loss()
    for ep in range(args.epochs):
        net.train()
        running = 0.
        for i in range(0, len(xtr), 32):
            optim.zero_grad()
            loss = lossf(net(xtr[i:i + 32]), ytr[i:i + 32])
            loss.backward()
            optim.step()
            running += loss.item()
        net.eval()
        with torch.no_grad():
            v = sum(lossf(net(xva[i:i + 64]), yva[i:i + 64]).item() for i in range(0, 256, 64)) / 4
        print(f"[{ep}] train {running / 20:.4f} val {v:.4f}")


main()
