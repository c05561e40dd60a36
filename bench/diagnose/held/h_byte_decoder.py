# SPDX-License-Identifier: GPL-3.0-or-later
"""A causal byte model: four micro-batches of unequal size per step, loss normalised by all their tokens, bf16."""
import torch
import torch.nn.functional as F
from torch import nn

SAYINGS = [b"many hands make light work.", b"all that glitters is not gold.", b"practice makes perfect.",
           b"a stitch in time saves nine.", b"look before you leap.", b"time flies."]
PAD = 0


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class ByteModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed, self.place = nn.Embedding(128, width, padding_idx=PAD), nn.Embedding(40, width)
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, 128, bias=False)

    def forward(self, ids):
        x = self.embed(ids) + self.place.weight[:ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def micro_batch(size):
    rows = [SAYINGS[int(torch.randint(0, len(SAYINGS), ()))] for _ in range(size)]
    longest = max(map(len, rows))
    return torch.tensor([list(row) + [PAD] * (longest - len(row)) for row in rows])


torch.manual_seed(2024)
model = ByteModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.95), weight_decay=0.1)
for step in range(60):
    batches = [micro_batch(size) for size in (2, 5, 3, 6)]
    tokens = sum(int((ids[:, 1:] != PAD).sum()) for ids in batches)
    total = 0.0
    for ids in batches:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD, reduction="sum")
        loss = loss / tokens
        loss.backward()
        total += loss.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 15 == 14:
        print(f"step {step + 1}: loss {total:.4f}, gradient norm {norm.item():.3f}")
