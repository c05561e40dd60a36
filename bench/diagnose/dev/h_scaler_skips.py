# SPDX-License-Identifier: GPL-3.0-or-later
"""Mixed precision in float16 with a gradient scaler that starts too high."""
import torch
from torch import nn

torch.manual_seed(11)
centers = torch.randn(8, 32)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 24, growth_interval=25)
criterion = nn.CrossEntropyLoss()
for step in range(80):
    y = torch.randint(0, 8, (64,))
    x = centers[y] + torch.randn(64, 32)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    if scaler.get_scale() < before:
        print(f"step {step + 1}: overflow, the scale is {scaler.get_scale():.0f} now")
    elif step % 10 == 9:
        print(f"step {step + 1}: loss {loss.item():.4f} norm {norm.item():.3f} scale {scaler.get_scale():.0f}")
