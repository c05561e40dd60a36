# SPDX-License-Identifier: GPL-3.0-or-later
"""Matrix factorisation of film ratings with six factors."""
import torch
from torch import nn

torch.manual_seed(36)
USERS, FILMS, FACTORS = 60, 50, 6
taste, style = torch.randn(USERS, 4), torch.randn(FILMS, 4)
ratings = taste @ style.t() + 0.2 * torch.randn(USERS, FILMS)

users = nn.Embedding(USERS, FACTORS)
films = nn.Embedding(FILMS, FACTORS)
for table in (users, films):
    nn.init.constant_(table.weight, 0.1)
optimizer = torch.optim.Adam([users.weight, films.weight], lr=0.05)

for step in range(200):
    u = torch.randint(0, USERS, (256,))
    f = torch.randint(0, FILMS, (256,))
    score = (users(u) * films(f)).sum(-1)
    loss = (score - ratings[u, f]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        print(f"step {step + 1}: mse {loss.item():.4f} (variance of the ratings {ratings.var().item():.3f})")
