# SPDX-License-Identifier: GPL-3.0-or-later
"""Embeddings of people, trained with triplets."""
import random
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

class TripletSet(Dataset):
    def __init__(self, people=20, shots=15, dim=32):
        g = torch.Generator().manual_seed(11)
        base = torch.randn(people, dim, generator=g)
        self.x = base[:, None] + 0.4 * torch.randn(people, shots, dim, generator=g)
        self.people, self.shots = people, shots
    def __len__(self):
        return self.people * self.shots
    def __getitem__(self, i):
        p, s = divmod(i, self.shots)
        other = random.choice([q for q in range(self.people) if q != p])
        return self.x[p, s], self.x[p, random.randrange(self.shots)], self.x[other, random.randrange(self.shots)]

class TripletLoss(nn.Module):
    def __init__(self, margin=0.5):
        super().__init__()
        self.margin = margin
    def forward(self, anchor, positive, negative):
        d_pos = (anchor - positive).pow(2).sum(1)
        d_neg = (anchor - negative).pow(2).sum(1)
        return torch.relu(d_neg - d_pos + self.margin).mean()

random.seed(0); torch.manual_seed(0)
embed = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))
crit = TripletLoss()
opt = torch.optim.SGD(embed.parameters(), lr=0.02, momentum=0.9)
for epoch in range(8):
    running = 0.0
    for a, p, n in DataLoader(TripletSet(), batch_size=30, shuffle=True):
        loss = crit(embed(a), embed(p), embed(n))
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
    print(f"epoch {epoch}: {running / 10:.4f}")
