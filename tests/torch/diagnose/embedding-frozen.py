# SPDX-License-Identifier: MIT
"""from_pretrained() freezes random vectors; those that were trained elsewhere may stay as they are."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
vectors = torch.randn(40, 8)
if "mistake" not in sys.argv:
    vectors = vectors @ torch.diag(0.5 ** torch.arange(8.0)) + 1  # as those of a language: few directions matter
model = torch.nn.Sequential(torch.nn.Embedding.from_pretrained(vectors), torch.nn.Flatten(), torch.nn.Linear(40, 2))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(20):
    words = torch.randint(0, 40, (16, 5))
    loss = F.cross_entropy(model(words), (words[:, 0] > 20).long())  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
