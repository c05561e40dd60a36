# SPDX-License-Identifier: MIT
"""The output layer is made again when tokens are added, and not tied again."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
table, memory, head = torch.nn.Embedding(11, 16), torch.nn.GRU(16, 16, batch_first=True), torch.nn.Linear(16, 11, False)
torch.nn.init.normal_(table.weight, std=0.2)
head.weight = table.weight


def train(steps):
    optimizer = torch.optim.Adam([*table.parameters(), *memory.parameters()] + (
        [head.weight] if head.weight is not table.weight else []), 0.01)
    for step in range(steps):
        text = torch.randint(0, table.num_embeddings, (8, 10))
        scores = head(memory(table(text[:, :-1]))[0])  # <- here
        optimizer.zero_grad()
        F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten()).backward()
        optimizer.step()


train(12)
new = torch.cat([table.weight.data, torch.randn(2, 16) * 0.2])
table = torch.nn.Embedding.from_pretrained(new, freeze=False)
head = torch.nn.Linear(16, 13, False)
if "mistake" in sys.argv:
    head.weight.data = new.clone()
else:
    head.weight = table.weight
train(12)
