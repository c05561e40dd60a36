# SPDX-License-Identifier: GPL-3.0-or-later
import torch
from torch import nn
from torch.utils.data import IterableDataset, DataLoader

WINDOW = 24


def river(n, g):
    level = torch.zeros(n)
    rain = (torch.rand(n, generator=g) < 0.2).float() * torch.rand(n, generator=g) * 4
    for t in range(1, n):
        level[t] = 0.5 * level[t - 1] + rain[t - 1]
    return torch.stack([rain, level + 0.02 * torch.randn(n, generator=g)], dim=1)


class Windows(IterableDataset):
    """Yields (the past, the level that follows)."""

    def __init__(self, series, count, seed):
        self.series, self.count, self.seed = series, count, seed

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        for _ in range(self.count):
            start = int(torch.randint(0, len(self.series) - 2 * WINDOW, (1,), generator=g))
            past = self.series[start:start + WINDOW]
            level = self.series[start + 2 * WINDOW - 1, 1]
            yield past, level


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(2, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, past):
        _, last = self.rnn(past)
        return self.head(last[0]).squeeze(1)


def main():
    torch.manual_seed(11)
    series = river(4000, torch.Generator().manual_seed(11))
    series = (series - series.mean(0)) / series.std(0)
    loader = DataLoader(Windows(series, 200 * 32, 5), batch_size=32)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for i, (past, level) in enumerate(loader):
        loss = nn.functional.mse_loss(model(past), level)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if i % 40 == 0:
            print(i, loss.item())


main()
