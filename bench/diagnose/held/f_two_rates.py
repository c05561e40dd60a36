# SPDX-License-Identifier: GPL-3.0-or-later
"""Fine-tune with a low rate for the pretrained body and a high one for the new head."""
import torch
import torch.nn as nn

torch.manual_seed(60)
body = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
                     nn.Conv1d(8, 16, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(4))
with torch.no_grad():
    for p in body.parameters():
        p.mul_(1.5)
head = nn.Sequential(nn.Flatten(), nn.Linear(64, 5))
model = nn.Sequential(body, head)
for p in body.parameters():
    p.requires_grad_(False)
rates = {"0": 1e-2, "1": 1e-7}
groups = [{"params": [p], "lr": rates[name[0]]} for name, p in model.named_parameters() if p.requires_grad]
optimizer = torch.optim.Adam(groups)
for step in range(80):
    label = torch.randint(0, 5, (64,))
    t = torch.arange(32).float()
    x = torch.sin(t * (0.3 + 0.25 * label[:, None])).unsqueeze(1) + 0.3 * torch.randn(64, 1, 32)
    out = model(x)
    loss = nn.functional.cross_entropy(out, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step + 1} loss {loss.item():.4f} accuracy {(out.argmax(1) == label).float().mean().item():.2f}")
