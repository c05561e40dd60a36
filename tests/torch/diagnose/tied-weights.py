# SPDX-License-Identifier: MIT
"""The output layer gets the values of the embedding, not the parameter."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
table = torch.nn.Embedding(11, 16)
torch.nn.init.normal_(table.weight, std=0.2)
memory = torch.nn.GRU(16, 16, batch_first=True)
head = torch.nn.Linear(16, 11, bias=False)
if "mistake" in sys.argv:
    head.weight.data = table.weight.data
else:
    head.weight = table.weight
model = torch.nn.ModuleList((table, memory, head))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(10):
    text = torch.randint(0, 11, (8, 10))
    scores = head(memory(table(text[:, :-1]))[0])  # <- here
    optimizer.zero_grad()
    F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten()).backward()
    optimizer.step()
