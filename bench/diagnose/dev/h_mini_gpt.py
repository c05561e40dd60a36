# SPDX-License-Identifier: GPL-3.0-or-later
"""A character GPT with tied embeddings, a causal mask of -inf, warm-up and cosine decay."""
import math

import torch
import torch.nn.functional as F
from torch import nn

TEXT = "the quick brown fox jumps over the lazy dog. pack my box with five dozen liquor jugs. " * 12
CHARS = sorted(set(TEXT))
T, C, H = 24, 48, 4


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(C, 3 * C)
        self.out = nn.Linear(C, C)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("mask", torch.full((T, T), float("-inf")).triu(1))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, H, c // H).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) / math.sqrt(c // H) + self.mask[:t, :t]).softmax(-1)
        return self.out((self.drop(weights) @ v).transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.attention = SelfAttention()
        self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C), nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(len(CHARS), C), nn.Embedding(T, C)
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.norm = nn.LayerNorm(C)
        self.head = nn.Linear(C, len(CHARS), bias=False)
        self.apply(self.init)
        self.head.weight = self.tok.weight

    @staticmethod
    def init(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def rate(step, warmup=10, total=120):
    if step < warmup:
        return step / warmup
    return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


torch.manual_seed(1337)
data = torch.tensor([CHARS.index(c) for c in TEXT])
model = GPT()
decay = [p for p in model.parameters() if p.dim() > 1]
plain = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
                              lr=4e-3, betas=(0.9, 0.95))
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
for step in range(120):
    at = torch.randint(len(data) - T - 1, (24,)).tolist()
    x = torch.stack([data[i:i + T] for i in at])
    y = torch.stack([data[i + 1:i + T + 1] for i in at])
    loss = F.cross_entropy(model(x).view(-1, len(CHARS)), y.view(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 20 == 19:
        print(f"iter {step + 1}: loss {loss.item():.4f}, lr {scheduler.get_last_lr()[0]:.5f}")
