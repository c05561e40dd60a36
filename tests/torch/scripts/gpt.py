# SPDX-License-Identifier: MIT
"""A character-level GPT on generated text (sums in decimal), trained with AdamW."""
import argparse

import torch
from torch import nn
import torch.nn.functional as F

VOCABULARY = "0123456789+=\n"


def text(count):
    """Token numbers of `count` sums, one a line."""
    first, second = torch.randint(100, (count,)), torch.randint(100, (count,))
    lines = "".join("%d+%d=%d\n" % (a, b, a + b) for a, b in zip(first.tolist(), second.tolist()))
    return torch.tensor([VOCABULARY.index(c) for c in lines])


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        weights = F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, width, heads, layers, context):
        super().__init__()
        self.token = nn.Embedding(len(VOCABULARY), width)
        self.position = nn.Parameter(torch.zeros(context, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(VOCABULARY), bias=False)
        self.head.weight = self.token.weight

    def forward(self, tokens):
        x = self.token(tokens) + self.position[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--context", type=int, default=24)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save")
    args = parser.parse_args()
    torch.manual_seed(3)
    torch.set_num_threads(args.threads)
    data = text(2000)
    gpt = GPT(args.width, args.heads, args.layers, args.context)
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=3e-3)
    for _ in range(args.steps):
        start = torch.randint(len(data) - args.context - 1, (args.batch, 1)) + torch.arange(args.context)
        logits = gpt(data[start])
        loss = F.cross_entropy(logits.reshape(-1, len(VOCABULARY)), data[start + 1].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
        optimizer.step()
    print("loss %.4f" % loss.item())
    if args.save:
        torch.save(gpt.state_dict(), args.save)


if __name__ == "__main__":
    main()
