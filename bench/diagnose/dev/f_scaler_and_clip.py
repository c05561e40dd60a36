# SPDX-License-Identifier: GPL-3.0-or-later
"""Image denoiser in mixed precision with gradient clipping."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                                 nn.Conv2d(16, 1, 3, padding=1))

    def forward(self, x):
        return self.net(x)


def pictures(n):
    ramp = torch.linspace(-1, 1, 16)
    a, b = torch.randn(n, 1, 1, 1), torch.randn(n, 1, 1, 1)
    clean = torch.tanh(a * ramp[:, None] + b * ramp[None, :])
    return clean + 0.3 * torch.randn(n, 1, 16, 16), clean


def main():
    torch.manual_seed(26)
    model = Denoiser()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    for step in range(60):
        noisy, clean = pictures(16)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(model(noisy).float(), clean)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
