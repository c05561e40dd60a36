# SPDX-License-Identifier: GPL-3.0-or-later
"""Train on the features of a loaded network; everything is put in a known mode first."""
import io

import torch
from torch import nn


def build():
    return nn.Sequential(nn.BatchNorm1d(10), nn.Linear(10, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Dropout(0.1),
                         nn.Linear(40, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Linear(40, 3))


def restore(buffer):
    model = build()
    buffer.seek(0)
    model.load_state_dict(torch.load(buffer))
    return model.eval()


def batch(n=48):
    x = torch.randn(n, 10) + 8
    return x, (x[:, 0] > 8).long() + (x[:, 1] > 8).long()


torch.manual_seed(65)
file = io.BytesIO()
torch.save(build().state_dict(), file)
model = restore(file)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
window = []
for step in range(80):
    x, y = batch()
    out = model(x)
    loss = nn.functional.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    window.append((out.argmax(1) == y).float().mean().item())
    if step % 16 == 15:
        print(f"step {step + 1} loss {loss.item():.4f} accuracy {sum(window[-16:]) / 16:.3f}")
