# SPDX-License-Identifier: GPL-3.0-or-later
"""Tabular classifier with OneCycleLR, AdamW and two parameter groups."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class TabularModel(nn.Module):
    def __init__(self, cards=(12, 7), numeric=6):
        super().__init__()
        self.embeds = nn.ModuleList(nn.Embedding(c, 4) for c in cards)
        self.bn = nn.BatchNorm1d(numeric)
        width = 4 * len(cards) + numeric
        self.layers = nn.Sequential(nn.Linear(width, 64), nn.ReLU(inplace=True), nn.BatchNorm1d(64), nn.Dropout(0.1),
                                    nn.Linear(64, 2))

    def forward(self, cat, num):
        return self.layers(torch.cat([e(cat[:, i]) for i, e in enumerate(self.embeds)] + [self.bn(num)], 1))


torch.manual_seed(17)
cat = torch.stack([torch.randint(0, 12, (900,)), torch.randint(0, 7, (900,))], 1)
num = torch.randn(900, 6) * torch.tensor([1.0, 50.0, 0.01, 3.0, 1000.0, 1.0]) + 5
y = ((cat[:, 0] % 3 == 0) ^ (num[:, 0] > 5)).long()
loader = DataLoader(TensorDataset(cat, num, y), batch_size=64, shuffle=True, drop_last=True)
model = TabularModel()
decay = [p for p in model.parameters() if p.ndim > 1]
plain = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}], lr=1e-3)
EPOCHS = 6
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, epochs=EPOCHS, steps_per_epoch=len(loader))
for epoch in range(EPOCHS):
    model.train()
    for c, n, t in loader:
        out = model(c, n)
        loss = nn.functional.cross_entropy(out, t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(cat, num).argmax(1) == y).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.3f} lr {scheduler.get_last_lr()[0]:.2e}")
