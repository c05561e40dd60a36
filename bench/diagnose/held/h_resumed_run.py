# SPDX-License-Identifier: GPL-3.0-or-later
"""Train, save a checkpoint, build everything again and resume."""
import os
import tempfile

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(10, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)


def epoch(model, optimizer, data):
    total = 0.0
    for x, y in data:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(data)


def batches(n, seed):
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(10, 4, generator=torch.Generator().manual_seed(0))
    xs = [torch.randn(32, 10, generator=g) for _ in range(n)]
    return [(x, (x @ w).argmax(1)) for x in xs]


torch.manual_seed(105)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "last.pt")
    model, optimizer, scheduler = build()
    for e in range(3):
        print(f"epoch {e} loss {epoch(model, optimizer, batches(12, e)):.4f}")
        scheduler.step()
        torch.save({"epoch": e, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict()}, path)
    model, optimizer, scheduler = build()
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    print("resumed after epoch", state["epoch"], "with rate", scheduler.get_last_lr()[0])
    for e in range(state["epoch"] + 1, 6):
        print(f"epoch {e} loss {epoch(model, optimizer, batches(12, e)):.4f}")
        scheduler.step()
