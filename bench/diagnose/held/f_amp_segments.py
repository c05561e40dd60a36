# SPDX-License-Identifier: GPL-3.0-or-later
"""Mixed-precision training of a sequence tagger with a gradient scaler."""
import torch
from torch import nn

torch.manual_seed(17)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.conv = nn.Conv1d(16, 32, 3, padding=1)
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        h = self.embed(x).transpose(1, 2)
        return self.out(torch.relu(self.conv(h)).transpose(1, 2))


def batch(n=32, length=12):
    x = torch.randint(0, 50, (n, length))
    before = torch.roll(x, 1, 1)
    return x, (x > before).long() + (x > 40).long() * (x > before).long()


model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for step in range(70):
    x, y = batch()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(x)
        loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"{step + 1} {loss.item():.4f}")
