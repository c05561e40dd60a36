# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews of different lengths, scored by attention over their words."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F

p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=150)
p.add_argument("--bs", type=int, default=32)
args = p.parse_args()
torch.manual_seed(11)
VOCAB, L = 50, 10
lens = torch.randint(2, L + 1, (1500,))
lens[torch.randperm(1500)[:4]] = 0
tok = torch.randint(1, VOCAB, (1500, L))
tok[torch.arange(L)[None] >= lens[:, None]] = 0
score = ((tok > 30).float().sum(1) - (tok[:, :] < 10).float().sum(1) * 0.1) / 5


class Reader(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d, padding_idx=0)
        self.att = nn.MultiheadAttention(d, 4, batch_first=True)
        self.norm = nn.LayerNorm(d)
        self.out = nn.Linear(d, 1)

    def forward(self, t):
        pad = t == 0
        h = self.emb(t)
        a, _ = self.att(h, h, h, key_padding_mask=pad)
        h = self.norm(h + a).masked_fill(pad[..., None], 0.)
        return self.out(h.sum(1) / (~pad).sum(1, keepdim=True).clamp(min=1)).squeeze(-1)


m = Reader()
opt = torch.optim.AdamW(m.parameters(), 2e-3)
for s in range(args.steps):
    i = torch.randint(0, 1500, (args.bs,))
    loss = F.mse_loss(m(tok[i]), score[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if s % 30 == 0:
        print(f"step {s:4d}  mse {loss.item():.4f}")
