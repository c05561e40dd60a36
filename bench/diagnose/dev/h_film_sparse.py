# SPDX-License-Identifier: GPL-3.0-or-later
"""Recommend films from implicit feedback: sparse embeddings, SparseAdam, sampled negatives (BPR)."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(8)
USERS, FILMS = 200, 300
taste, style = torch.randn(USERS, 3), torch.randn(FILMS, 3)
affinity = taste @ style.t()
liked = affinity.topk(20, dim=1).indices

user_table = nn.Embedding(USERS, 12, sparse=True)
film_table = nn.Embedding(FILMS, 12, sparse=True)
nn.init.normal_(user_table.weight, std=0.1)
nn.init.normal_(film_table.weight, std=0.1)
optimizer = torch.optim.SparseAdam([*user_table.parameters(), *film_table.parameters()], lr=2e-2)

for step in range(150):
    user = torch.randint(0, USERS, (256,))
    good = liked[user, torch.randint(0, 15, (256,))]
    other = torch.randint(0, FILMS, (256,))
    u = user_table(user)
    margin = (u * film_table(good)).sum(1) - (u * film_table(other)).sum(1)
    loss = -F.logsigmoid(margin).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        with torch.no_grad():
            score = user_table.weight @ film_table.weight.t()
            unseen = score.gather(1, liked[:, 15:])
            auc = (unseen.unsqueeze(2) > score.unsqueeze(1)).float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, auc on unseen films {auc:.3f}")
