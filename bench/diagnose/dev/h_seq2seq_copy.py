# SPDX-License-Identifier: GPL-3.0-or-later
"""A sequence-to-sequence model with additive attention and teacher forcing reverses padded sequences."""
import random

import torch
import torch.nn.functional as F
from torch import nn

PAD, SOS, EOS, SYMBOLS, LONGEST = 0, 1, 2, 9, 6


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(3 + SYMBOLS, width, padding_idx=PAD)
        self.gru = nn.GRU(width, width, batch_first=True)

    def forward(self, ids):
        return self.gru(self.embed(ids))


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(3 + SYMBOLS, width, padding_idx=PAD)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.energy = nn.Linear(width, 1)
        self.gru = nn.GRU(2 * width, width, batch_first=True)
        self.out = nn.Linear(width, 3 + SYMBOLS)

    def step(self, token, hidden, memory, padding):
        score = self.energy(torch.tanh(self.query(hidden[-1]).unsqueeze(1) + self.key(memory))).squeeze(-1)
        weight = score.masked_fill(padding, float("-inf")).softmax(-1)
        context = weight.unsqueeze(1) @ memory
        out, hidden = self.gru(torch.cat([self.embed(token), context], dim=-1), hidden)
        return self.out(out), hidden


def batch(size):
    source = torch.full((size, LONGEST), PAD)
    target = torch.full((size, LONGEST + 1), PAD)
    for i in range(size):
        word = [random.randrange(3, 3 + SYMBOLS) for _ in range(random.randint(2, LONGEST))]
        source[i, :len(word)] = torch.tensor(word)
        target[i, :len(word) + 1] = torch.tensor(word[::-1] + [EOS])
    return source, target


random.seed(9)
torch.manual_seed(9)
encoder, decoder = Encoder(48), Decoder(48)
opt_e = torch.optim.Adam(encoder.parameters(), lr=6e-3)
opt_d = torch.optim.Adam(decoder.parameters(), lr=6e-3)
for step in range(150):
    source, target = batch(32)
    memory, hidden = encoder(source)
    token, teacher, outputs = torch.full((32, 1), SOS), random.random() < 0.7, []
    for t in range(LONGEST + 1):
        scores, hidden = decoder.step(token, hidden, memory, source == PAD)
        outputs.append(scores)
        token = target[:, t:t + 1] if teacher else scores.argmax(-1).detach()
    scores = torch.cat(outputs, dim=1)
    loss = F.cross_entropy(scores.flatten(0, 1), target.flatten(), ignore_index=PAD)
    opt_e.zero_grad()
    opt_d.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*encoder.parameters(), *decoder.parameters()], 1.0)
    opt_e.step()
    opt_d.step()
    if step % 30 == 29:
        real = target != PAD
        right = (scores.argmax(-1) == target)[real].float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, right {right:.3f}")
