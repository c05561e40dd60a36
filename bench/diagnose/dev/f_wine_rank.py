# SPDX-License-Identifier: GPL-3.0-or-later
"""Grade wines in three classes from eleven measurements."""
import torch
import torch.nn.functional as F
from torch import nn


def load():
    g = torch.Generator().manual_seed(77)
    x = torch.randn(1152, 11, generator=g)
    quality = x @ torch.randn(11, generator=g) + 0.3 * torch.randn(1152, generator=g)
    y = torch.bucketize(quality, quality.quantile(torch.tensor([0.33, 0.67])))
    return x, y


def shuffle(rows):
    order = torch.randperm(len(rows))
    return rows[order]


def main():
    torch.manual_seed(6)
    x, y = load()
    x, y = shuffle(x), shuffle(y)
    split = 864
    model = nn.Sequential(nn.Linear(11, 40), nn.GELU(), nn.Linear(40, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for epoch in range(4):
        model.train()
        for xb, yb in zip(x[:split].split(48), y[:split].split(48)):
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            logits = model(x[split:])
            print(f"epoch {epoch}  valid loss {F.cross_entropy(logits, y[split:]):.4f}"
                  f"  accuracy {(logits.argmax(1) == y[split:]).float().mean():.3f}")


main()
