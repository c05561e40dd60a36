# SPDX-License-Identifier: GPL-3.0-or-later
"""SimCLR on noisy vectors; a linear probe at the end judges the features."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(77)
classes = torch.randn(12, 20)
encoder = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
projector = nn.Sequential(nn.ReLU(), nn.Linear(32, 16))
groups = [{"params": encoder.parameters()}, {"params": projector.parameters(), "lr": 5e-3}]
optimizer = torch.optim.Adam(groups, lr=2e-3)


def augment(x):
    keep = (torch.rand_like(x) > 0.15).float()
    return x * keep + 0.2 * torch.randn_like(x)


def contrast(z, temperature=0.2):
    z = F.normalize(z, dim=1)
    similarity = z @ z.t() / temperature
    similarity.fill_diagonal_(-1e9)
    half = len(z) // 2
    return F.cross_entropy(similarity, torch.cat([torch.arange(half, 2 * half), torch.arange(half)]))


for step in range(100):
    x = torch.randn(48, 20)
    h = encoder(torch.cat([augment(x), augment(x)]))
    loss = contrast(projector(h))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 24:
        print(f"step {step + 1}: contrastive loss {loss.item():.4f}")

encoder.eval()
with torch.no_grad():
    label = torch.randint(0, 12, (300,))
    feature = F.normalize(encoder(classes[label] + 0.3 * torch.randn(300, 20)), dim=1)
    centre = torch.stack([feature[:150][label[:150] == c].mean(0) for c in range(12)])
    right = ((feature[150:] @ centre.t()).argmax(1) == label[150:]).float().mean().item()
print(f"nearest centre right: {right:.3f}")
