# SPDX-License-Identifier: GPL-3.0-or-later
import dataclasses
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass
class Settings:
    samples: int = 256
    length: int = 48
    epochs: int = 20
    batch: int = 32
    lr: float = 1e-3
    seed: int = 7


class Pulses(Dataset):
    """One-dimensional signals: a pulse that rises or falls, with random noise and shift on the fly."""

    def __init__(self, cfg):
        rng = np.random.RandomState(cfg.seed)
        t = np.linspace(0, 1, cfg.length)
        self.kind = rng.randint(0, 4, cfg.samples)
        centre = rng.uniform(0.3, 0.7, cfg.samples)
        shapes = [lambda u: np.exp(-80 * u ** 2), lambda u: np.tanh(9 * u), lambda u: -np.tanh(9 * u),
                  lambda u: np.sin(25 * u)]
        self.base = np.stack([shapes[k](t - c) for k, c in zip(self.kind, centre)])

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        np.random.seed(i)
        x = np.roll(self.base[i], np.random.randint(-6, 7))
        x = x + np.random.normal(0, 0.5, x.shape)
        return torch.tensor(x, dtype=torch.float32), int(self.kind[i])


class Classifier(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv1d(16, 16, 5, padding=2), nn.ReLU())
        self.out = nn.Sequential(nn.Flatten(), nn.Linear(16 * cfg.length, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        return self.out(self.conv(x[:, None]))


def run(cfg):
    torch.manual_seed(cfg.seed)
    loader = DataLoader(Pulses(cfg), batch_size=cfg.batch, shuffle=True)
    model = Classifier(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(cfg.epochs):
        total = 0.0
        for signal, kind in loader:
            loss = loss_fn(model(signal), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 5 == 4:
            print(epoch, round(total / len(loader), 4))


if __name__ == "__main__":
    run(Settings())
