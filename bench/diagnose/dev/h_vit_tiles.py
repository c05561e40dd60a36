# SPDX-License-Identifier: GPL-3.0-or-later
"""A vision transformer with a class token on 16x16 pictures of four textures; label smoothing and clipping."""
import torch
from torch import nn


class ViT(nn.Module):
    def __init__(self, size=16, patch=4, width=32, depth=2, heads=4, classes=4):
        super().__init__()
        self.patches = nn.Conv2d(1, width, patch, stride=patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.empty(1, (size // patch) ** 2 + 1, width))
        nn.init.trunc_normal_(self.places, std=0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.1, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1) + self.places
        return self.head(self.encoder(x)[:, 0])


def textures(count):
    rows = torch.arange(16.).view(1, 16, 1)
    columns = torch.arange(16.).view(1, 1, 16)
    label = torch.randint(0, 4, (count,))
    phase = torch.rand(count, 1, 1) * 6.28
    wave = torch.stack([(1.6 * rows + 0 * columns + phase).sin(), (1.6 * columns + 0 * rows + phase).sin(),
                        (1.1 * (rows + columns) + phase).sin(), (1.1 * (rows - columns) + phase).sin()], dim=1)
    images = wave[torch.arange(count), label].unsqueeze(1)
    return images + 0.4 * torch.randn_like(images), label


torch.manual_seed(16)
model = ViT()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(80):
    images, label = textures(32)
    logits = model(images)
    loss = criterion(logits, label)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step + 1}: loss {loss.item():.4f}, right {(logits.argmax(1) == label).float().mean().item():.3f}")
