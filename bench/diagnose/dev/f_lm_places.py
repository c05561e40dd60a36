# SPDX-License-Identifier: GPL-3.0-or-later
"""Language model over a periodic grammar; time-major layout."""
import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, longest, width):
        super().__init__()
        self.table = nn.Parameter(torch.randn(longest, width) * 0.1)

    def forward(self, x):
        where = torch.arange(x.size(0), device=x.device)
        return x + self.table[where][:, None]


class Grammar(nn.Module):
    def __init__(self, vocab, width=48, longest=64):
        super().__init__()
        self.vocab = vocab
        self.inputs = nn.Embedding(vocab, width)
        self.places = Positions(longest, width)
        layer = nn.TransformerEncoderLayer(width, 4, 96, dropout=0.0, batch_first=True)
        self.stack = nn.TransformerEncoder(layer, 2)
        self.outputs = nn.Linear(width, vocab)

    def forward(self, ids):
        mask = torch.full((ids.size(1), ids.size(1)), float("-inf")).triu(1)
        return self.outputs(self.stack(self.places(self.inputs(ids)), mask=mask))


def make(n, length, vocab, g):
    """Symbol t depends on its place: (start + t * t) mod vocab."""
    start = torch.randint(0, 3, (n, 1), generator=g)
    t = torch.arange(length + 1)
    noise = (torch.rand(n, length + 1, generator=g) < 0.05).long()
    return (start + t * t // 2 + noise) % vocab


def iterate(steps, n=24, length=28, vocab=17):
    g = torch.Generator().manual_seed(0)
    for _ in range(steps):
        rows = make(n, length, vocab, g)
        yield rows[:, :-1], rows[:, 1:]


def main(steps=150):
    torch.manual_seed(6)
    model = Grammar(17)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    running = None
    for step, (source, target) in enumerate(iterate(steps)):
        optimizer.zero_grad()
        loss = criterion(model(source).reshape(-1, 17), target.reshape(-1))
        loss.backward()
        optimizer.step()
        running = loss.item() if running is None else 0.9 * running + 0.1 * loss.item()
        if step % 30 == 0:
            print(step, round(running, 3))


main()
