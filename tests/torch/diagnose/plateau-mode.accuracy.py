# SPDX-License-Identifier: GPL-3.0-or-later
"""A plateau that waits for an accuracy to fall."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min" if mistake else "max", patience=3)
for epoch in range(10):
    right = 0
    for _ in range(8):
        inputs = torch.randn(40, 8)
        scores, classes = model(inputs), inputs[:, :3].argmax(1)
        loss = torch.nn.functional.cross_entropy(scores, classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += int((scores.argmax(1) == classes).sum())
    scheduler.step(right / 320)  # <- here
