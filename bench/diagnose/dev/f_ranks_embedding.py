# SPDX-License-Identifier: GPL-3.0-or-later
"""Two processes learn word vectors; each draws its own words."""
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
size = dist.get_world_size()
torch.manual_seed(44 + rank)


class SkipGram(nn.Module):
    def __init__(self, words=40, dim=16):
        super().__init__()
        self.center = nn.Embedding(words, dim)
        self.context = nn.Linear(dim, words, bias=False)

    def forward(self, w):
        return self.context(self.center(w))


model = SkipGram()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(60):
    word = torch.randint(0, 40, (64,))
    near = (word + torch.randint(1, 4, (64,))) % 40
    loss = nn.functional.cross_entropy(model(word), near)
    optimizer.zero_grad()
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
        p.grad /= size
    optimizer.step()
    if rank == 0 and step % 10 == 0:
        print(step, f"{loss.item():.4f}", flush=True)
dist.barrier()
dist.destroy_process_group()
