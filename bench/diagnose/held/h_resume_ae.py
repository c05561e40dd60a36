# SPDX-License-Identifier: GPL-3.0-or-later
"""A denoising autoencoder with sigmoid outputs whose training stops, is saved and continues from the file."""
import io

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(40, 32), nn.ELU(), nn.Linear(32, 12), nn.ELU(), nn.Linear(12, 40), nn.Sigmoid())
    optimizer = torch.optim.RMSprop(model.parameters(), lr=4e-3, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
    return model, optimizer, scheduler


def signals(count):
    start = torch.randint(0, 30, (count, 1))
    place = torch.arange(40)
    return ((place >= start) & (place < start + 10)).float()


def train(model, optimizer, scheduler, first, last):
    criterion = nn.BCELoss()
    for step in range(first, last):
        clean = signals(64)
        noisy = (clean + 0.4 * torch.randn_like(clean)).clamp(0, 1)
        loss = criterion(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 20 == 19:
            print(f"step {step + 1}: loss {loss.item():.4f}, lr {scheduler.get_last_lr()[0]:.5f}")


torch.manual_seed(32)
model, optimizer, scheduler = build()
train(model, optimizer, scheduler, 0, 40)
file = io.BytesIO()
parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
torch.save({name: part.state_dict() for name, part in parts.items()}, file)

file.seek(0)
checkpoint = torch.load(file)
model, optimizer, scheduler = build()
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
scheduler.load_state_dict(checkpoint["scheduler"])
train(model, optimizer, scheduler, 40, 80)
