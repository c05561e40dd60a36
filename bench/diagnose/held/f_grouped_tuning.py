# SPDX-License-Identifier: GPL-3.0-or-later
"""Two parameter groups, encoder and head, for a small sentence classifier."""
import torch
import torch.nn as nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(60, 16)
        self.encoder = nn.LSTM(16, 24, batch_first=True)
        self.head = nn.Linear(24, 2)

    def forward(self, x):
        _, (h, _) = self.encoder(self.embed(x))
        return self.head(h[-1])


torch.manual_seed(69)
model = Classifier()
body = (p for n, p in model.named_parameters() if not n.startswith("head"))
print("body:", sum(p.numel() for p in body), "head:", sum(p.numel() for p in model.head.parameters()))
optimizer = torch.optim.AdamW([
    {"params": body, "lr": 5e-3},
    {"params": model.head.parameters(), "lr": 1e-2},
])
for step in range(80):
    x = torch.randint(0, 60, (48, 6))
    y = ((x < 30).sum(1) > 3).long()
    out = model(x)
    loss = nn.functional.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 16 == 15:
        print(f"step {step + 1} loss {loss.item():.4f} accuracy {(out.argmax(1) == y).float().mean().item():.3f}")
