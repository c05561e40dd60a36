# SPDX-License-Identifier: MIT
"""Labels that are shifted before a model that shifts them itself."""
import sys

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(11, 16)
        self.memory = torch.nn.GRU(16, 16, batch_first=True)
        self.head = torch.nn.Linear(16, 11)

    def forward(self, tokens, labels):
        scores = self.head(self.memory(self.table(tokens))[0])
        return F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())  # <- here


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(12):
    text = (torch.randint(0, 11, (8, 1)) + torch.randint(1, 5, (8, 1)) * torch.arange(10)) % 11
    labels = text[:, 1:] if "mistake" in sys.argv else text[:, :-1]
    optimizer.zero_grad()
    model(text[:, :-1], labels).backward()
    optimizer.step()
