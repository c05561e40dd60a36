# SPDX-License-Identifier: GPL-3.0-or-later
"""A language model with tied embeddings and fixed pre-trained vectors; it is tested on words it has not seen."""
import torch
import torch.nn.functional as F
from torch import nn

WORDS, SEEN, WIDTH = 200, 150, 32


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.mix = nn.Linear(2 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.embed.weight

    def load_vectors(self, vectors):
        self.embed = nn.Embedding.from_pretrained(vectors)

    def forward(self, ids):
        x = self.embed(ids)
        before = F.pad(x[:, :-1], (0, 0, 1, 0))
        return self.head(self.mix(torch.cat([x, before], dim=-1)))


def songs(first, last, count):
    return torch.randint(first, last, (count, 2)).repeat(1, 4)


def score(model, ids):
    logits = model(ids[:, 1:-1])
    return logits, F.cross_entropy(logits[:, 1:].flatten(0, 1), ids[:, 3:].flatten())


torch.manual_seed(19)
vectors = torch.randn(WORDS, WIDTH) / 2
model = Reader()
model.load_vectors(vectors)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=2e-2)
for step in range(150):
    _, loss = score(model, songs(0, SEEN, 64))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        ids = songs(SEEN, WORDS, 100)
        with torch.no_grad():
            right = (score(model, ids)[0][:, -1].argmax(-1) == ids[:, -1]).float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, right on unseen words {right:.3f}")
