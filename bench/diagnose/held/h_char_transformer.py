# SPDX-License-Identifier: GPL-3.0-or-later
"""Character transformer with a causal mask, tied weights and warm-up from 0."""
import torch
import torch.nn as nn

torch.manual_seed(101)
text = "a rose is a rose is a rose, said the fox to the crow and the crow to the fox. " * 30
alphabet = sorted(set(text))
codes = torch.tensor([alphabet.index(c) for c in text])
V, T, D = len(alphabet), 24, 48


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(V, D), nn.Embedding(T, D)
        layer = nn.TransformerEncoderLayer(D, 4, 96, dropout=0.1, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(D)
        self.out = nn.Linear(D, V, bias=False)
        nn.init.normal_(self.token.weight, std=0.1)
        nn.init.normal_(self.place.weight, std=0.1)
        self.out.weight = self.token.weight
        self.register_buffer("mask", torch.full((T, T), float("-inf")).triu(1))

    def forward(self, x):
        h = self.token(x) + self.place.weight[:x.shape[1]]
        return self.out(self.norm(self.blocks(h, mask=self.mask)))


model = CharModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, betas=(0.9, 0.98))
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(s / 15, (15 / max(s, 1)) ** 0.5))
for step in range(120):
    start = torch.randint(0, len(codes) - T - 1, (24,))
    block = torch.stack([codes[s:s + T + 1] for s in start])
    loss = nn.functional.cross_entropy(model(block[:, :-1]).flatten(0, 1), block[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    warmup.step()
    if step % 20 == 19:
        print(f"step {step + 1} loss {loss.item():.4f} lr {warmup.get_last_lr()[0]:.5f}")
