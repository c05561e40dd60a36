# SPDX-License-Identifier: GPL-3.0-or-later
"""The step is the optimizer's instead of the scaler's."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
if not hasattr(torch.amp, "GradScaler"):  # PyTorch 1.13 scales on CUDA only
    factor = 1024.0 if mistake else 1.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 / factor)


class Scaler:
    def scale(self, loss):
        return loss * factor

    def update(self):
        pass


scaler = torch.amp.GradScaler("cpu", init_scale=1024.0) if hasattr(torch.amp, "GradScaler") else Scaler()
for _ in range(40):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    scaler.scale(torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))).backward()
    if not mistake and hasattr(scaler, "step"):
        scaler.step(optimizer)
    else:
        optimizer.step()
    if not mistake:
        scaler.update()  # without scaler.step() it raises
