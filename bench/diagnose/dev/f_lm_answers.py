# SPDX-License-Identifier: GPL-3.0-or-later
"""Instruction tuning in small: the answer is the sum of two of the prompt's digits."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

PAD, SEP, END, BASE = 0, 1, 2, 3
IGNORE = -100


class Instructions(Dataset):
    """prompt: 14 random symbols, SEP; answer: the symbols at places 2 and 5, END."""

    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(count):
            n = int(torch.randint(10, 15, (1,), generator=g))
            prompt = torch.randint(BASE, 40, (n,), generator=g)
            answer = torch.stack([prompt[2], prompt[5], torch.tensor(END)])
            self.rows.append((torch.cat([prompt, torch.tensor([SEP])]), answer))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        prompt, answer = self.rows[i]
        return {"ids": torch.cat([prompt, answer]), "prompt_length": len(prompt)}


def collate(items):
    longest = max(len(item["ids"]) for item in items)
    ids = torch.full((len(items), longest), PAD)
    labels = torch.full((len(items), longest), IGNORE)
    for row, item in enumerate(items):
        n = len(item["ids"])
        ids[row, :n] = item["ids"]
        labels[row, :n] = item["ids"]
    return ids, labels


@dataclass
class Shape:
    vocab: int = 40
    width: int = 48
    heads: int = 4
    depth: int = 2


class Answerer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.words = nn.Embedding(s.vocab, s.width)
        place = torch.arange(64).unsqueeze(1) * torch.exp(torch.arange(0, s.width, 2) * (-math.log(1e4) / s.width))
        self.register_buffer("places", torch.stack([place.sin(), place.cos()], -1).flatten(1))
        layer = nn.TransformerEncoderLayer(s.width, s.heads, 128, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, s.depth, enable_nested_tensor=False)
        self.out = nn.Linear(s.width, s.vocab)

    def forward(self, ids):
        n = ids.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        x = self.words(ids) + self.places[:n]
        return self.out(self.blocks(x, mask=mask, is_causal=True))


def lm_loss(logits, labels):
    return nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), labels[:, 1:].reshape(-1),
                                       ignore_index=IGNORE)


def main():
    torch.manual_seed(3)
    model = Answerer(Shape())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = DataLoader(Instructions(1600, 0), batch_size=32, shuffle=True, collate_fn=collate)
    for epoch in range(3):
        for step, (ids, labels) in enumerate(loader):
            loss = lm_loss(model(ids), labels)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")


main()
