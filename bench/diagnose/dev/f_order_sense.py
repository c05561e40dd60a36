# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the symbol 1 come before the symbol 2 in a sequence? A transformer encoder decides."""
import torch
from torch import nn


class OrderNet(nn.Module):
    def __init__(self, vocabulary=16, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        h = self.encoder(self.embed(ids))
        return self.head(h.mean(dim=1))


def batch(size, length=12):
    ids = torch.randint(3, 16, (size, length))
    places = torch.rand(size, length).argsort(1)[:, :2]
    ids.scatter_(1, places[:, :1], 1)
    ids.scatter_(1, places[:, 1:], 2)
    return ids, (places[:, 0] < places[:, 1]).long()


def train(steps=100):
    model = OrderNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    hits = 0.5
    for step in range(1, steps + 1):
        ids, before = batch(64)
        logits = model(ids)
        loss = criterion(logits, before)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits = 0.9 * hits + 0.1 * (logits.argmax(1) == before).float().mean().item()
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f} accuracy {hits:.3f}")


torch.manual_seed(31)
train()
