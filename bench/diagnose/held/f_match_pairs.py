# SPDX-License-Identifier: GPL-3.0-or-later
"""Match sentences of two languages by a contrastive loss on cosine similarities."""
import torch
import torch.nn.functional as F
from torch import nn


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 24))
        self.right = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 24))

    def forward(self, x, y):
        a, b = F.normalize(self.left(x), dim=0), F.normalize(self.right(y), dim=0)
        return a @ b.t() / 0.1


torch.manual_seed(59)
to_left, to_right = torch.randn(8, 16), torch.randn(8, 20)
model = Matcher()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
pairs = torch.arange(64)
for step in range(120):
    meaning = torch.randn(64, 8)
    x = meaning @ to_left + 0.3 * torch.randn(64, 16)
    y = meaning @ to_right + 0.3 * torch.randn(64, 20)
    logits = model(x, y)
    loss = (F.cross_entropy(logits, pairs) + F.cross_entropy(logits.t(), pairs)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        matched = (logits.argmax(1) == pairs).float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, matched {matched:.3f}")
