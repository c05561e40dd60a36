# SPDX-License-Identifier: GPL-3.0-or-later
"""A character-level GPT on a short text, with samples at the end."""
import torch
import torch.nn.functional as F
from torch import nn

TEXT = ("it was the best of times, it was the worst of times, it was the age of wisdom, it was the age of "
        "foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of light, "
        "it was the season of darkness, it was the spring of hope, it was the winter of despair. ") * 4
CHARS = sorted(set(TEXT))
BLOCK, WIDTH, HEADS = 32, 64, 4
data = torch.tensor([CHARS.index(c) for c in TEXT])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, HEADS, c // HEADS).transpose(1, 2) for z in self.qkv(self.ln1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.ff(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(len(CHARS), WIDTH)
        self.wpe = nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(CHARS), bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


torch.manual_seed(1337)
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(150):
    at = torch.randint(0, len(data) - BLOCK - 1, (24,))
    x = torch.stack([data[i:i + BLOCK] for i in at])
    y = torch.stack([data[i + 1:i + 1 + BLOCK] for i in at])
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1}: loss {loss.item():.4f}")

ids = data[:8].unsqueeze(0)
with torch.no_grad():
    for _ in range(40):
        ids = torch.cat([ids, model(ids[:, -BLOCK:])[:, -1:].argmax(-1)], dim=1)
text = "".join(CHARS[i] for i in ids[0].tolist())
print(f"sample: {text!r}")
