# SPDX-License-Identifier: GPL-3.0-or-later
"""Tabular data with three classes of 90, 7 and 3 percent, handled by class weights; embeddings for categories."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class TabularNet(nn.Module):
    def __init__(self, categories, numbers, classes):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(c, 4) for c in categories)
        self.norm = nn.BatchNorm1d(numbers)
        self.mlp = nn.Sequential(nn.Linear(4 * len(categories) + numbers, 32), nn.ReLU(), nn.Dropout(0.2),
                                 nn.Linear(32, classes))

    def forward(self, category, number):
        embedded = [table(column) for table, column in zip(self.tables, category.unbind(1))]
        return self.mlp(torch.cat([*embedded, self.norm(number)], dim=1))


torch.manual_seed(26)
label = torch.multinomial(torch.tensor([0.9, 0.07, 0.03]), 2400, replacement=True)
category = torch.stack([torch.randint(0, 5, (2400,)), (label + torch.randint(0, 3, (2400,))) % 3], dim=1)
number = torch.randn(2400, 5) * 30 + 100 + 35 * torch.randn(3, 5)[label]
train, valid = random_split(TensorDataset(category, number, label), [1920, 480])
frequency = torch.bincount(label[train.indices], minlength=3).float()
criterion = nn.CrossEntropyLoss(weight=frequency.sum() / (3 * frequency))
model = TabularNet([5, 3], 5, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    model.train()
    for c, n, y in DataLoader(train, batch_size=120, shuffle=True):
        loss = criterion(model(c, n), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        c, n, y = next(iter(DataLoader(valid, batch_size=480)))
        guess = model(c, n).argmax(1)
        recall = [((guess == k) & (y == k)).sum().item() / max(1, (y == k).sum().item()) for k in range(3)]
    print(f"epoch {epoch}: loss {loss.item():.4f}, recall {[round(r, 2) for r in recall]}")
