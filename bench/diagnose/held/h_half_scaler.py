# SPDX-License-Identifier: GPL-3.0-or-later
"""Mixed precision on the CPU: float16 autocast and a GradScaler that skips its first steps until the scale fits."""
import torch
from torch import nn

torch.manual_seed(34)
teacher = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).requires_grad_(False)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 24, growth_interval=200)
for step in range(80):
    x = torch.randn(64, 16)
    wanted = teacher(x)
    with torch.autocast("cpu", dtype=torch.float16):
        output = model(x)
        loss = nn.functional.mse_loss(output.float(), wanted)
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scaler.step(optimizer)
    scaler.update()
    if step % 20 == 19:
        print(f"step {step + 1}: loss {loss.item():.5f}, scale {scaler.get_scale():.0f}")
