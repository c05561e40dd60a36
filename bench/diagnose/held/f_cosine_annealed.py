# SPDX-License-Identifier: GPL-3.0-or-later
"""Word-order task with an embedding average, cosine annealing over the epochs."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 8
torch.manual_seed(19)
tokens = torch.randint(0, 60, (600, 5))
labels = ((tokens[:, 0] + tokens[:, 4]) > 59).long()
loader = DataLoader(TensorDataset(tokens, labels), batch_size=60, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(60, 8)
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(40, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.fc(self.embed(x))


def train_epoch(model, optimizer, plateau):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    plateau.step(total / len(loader))
    return total / len(loader)


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.1, patience=0)
for epoch in range(EPOCHS):
    loss = train_epoch(model, optimizer, plateau)
    print(f"epoch {epoch} loss {loss:.4f} lr {optimizer.param_groups[0]['lr']:.1e}")
