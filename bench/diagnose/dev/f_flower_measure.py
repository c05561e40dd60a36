# SPDX-License-Identifier: GPL-3.0-or-later
"""Species from measurements, with a held-out part."""
import numpy as np
import torch
import torch.nn.functional as F


class Experiment:
    def __init__(self, seed=3):
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(12, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(),
            torch.nn.Linear(256, 5))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=2e-3)

    def load(self):
        centres = self.rng.normal(0, 1.5, (5, 12))
        y = self.rng.integers(0, 5, 400)
        x = centres[y] + self.rng.normal(0, 1, (400, 12))
        x = (x - x.mean(0)) / x.std(0)
        x = self.rng.permutation(x)
        y = self.rng.permutation(y)
        x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
        self.train = x[:320], y[:320]
        self.test = x[320:], y[320:]

    def epoch(self):
        self.net.train()
        x, y = self.train
        order = torch.randperm(len(x))
        total = 0
        for rows in order.split(32):
            loss = F.cross_entropy(self.net(x[rows]), y[rows])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(rows)
        return total / len(x)

    @torch.no_grad()
    def evaluate(self):
        self.net.eval()
        x, y = self.test
        out = self.net(x)
        return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()

    def run(self, epochs=28):
        self.load()
        for e in range(epochs):
            train = self.epoch()
            val, acc = self.evaluate()
            if e % 4 == 0:
                print(f"{e:3d} train {train:.3f} val {val:.3f} acc {acc:.2f}")


Experiment().run()
