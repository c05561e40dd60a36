# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that the vocabulary has in lower case, and that are looked up as they are."""
import sys

import torch

torch.manual_seed(0)
words = "Good Great Fine Bad Poor Dull".split()
known = {word.lower(): number for number, word in enumerate(words, 2)}
texts = [[words[one] for one in torch.randint(0, 6, (5,)).tolist()] for _ in range(300)]
labels = [float(sum(words.index(word) < 3 for word in text) > 2) for text in texts]


def collate(rows):
    found = [[known.get(word if "mistake" in sys.argv else word.lower(), 1) for word in texts[row]] for row in rows]
    return torch.tensor(found), torch.tensor([labels[row] for row in rows])


model = torch.nn.Sequential(torch.nn.Embedding(8, 8), torch.nn.Flatten(), torch.nn.Linear(40, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
loader = torch.utils.data.DataLoader(range(300), batch_size=20, shuffle=True, collate_fn=collate)
for epoch in range(3):
    for ids, wanted in loader:  # <- here
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(model(ids).squeeze(1), wanted).backward()
        optimizer.step()
