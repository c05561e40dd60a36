# SPDX-License-Identifier: GPL-3.0-or-later
"""Character model of a repeated text, with the weights in bfloat16 to save memory."""
import torch
from torch import nn

torch.manual_seed(14)
text = "the quick brown fox jumps over the lazy dog and runs away from the hounds. " * 20
chars = sorted(set(text))
codes = torch.tensor([chars.index(c) for c in text])


class Bigrams(nn.Module):
    def __init__(self, context=4, dim=24):
        super().__init__()
        self.embed = nn.Embedding(len(chars), dim)
        self.mix = nn.Linear(context * dim, 64)
        self.out = nn.Linear(64, len(chars))

    def forward(self, x):
        return self.out(torch.relu(self.mix(self.embed(x).flatten(1))))


def sample(n=64, context=4):
    start = torch.randint(0, len(codes) - context - 1, (n,))
    x = torch.stack([codes[s:s + context] for s in start])
    return x, codes[start + context]


model = Bigrams().to(torch.bfloat16)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for step in range(300):
    x, y = sample()
    loss = nn.functional.cross_entropy(model(x).float(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(f"step {step} loss {loss.item():.3f}")
print("final", round(loss.item(), 3))
