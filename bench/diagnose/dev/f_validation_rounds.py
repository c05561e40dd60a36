# SPDX-License-Identifier: GPL-3.0-or-later
"""Convolutional classifier with batch normalization and a validation round after each epoch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(33)


def cells(n):
    label = torch.randint(0, 3, (n,))
    x = torch.randn(n, 2, 10, 10) * 3 + 12
    for c in range(3):
        x[label == c, :, 2 * c:2 * c + 4, 3:7] += 3
    return TensorDataset(x, label)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn0 = nn.BatchNorm2d(2)
        self.conv = nn.Conv2d(2, 12, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(12)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(12 * 25, 3)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv(self.bn0(x))))
        return self.fc(self.drop(nn.functional.max_pool2d(x, 2).flatten(1)))


def evaluate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
    return right / len(loader.dataset)


train_set, valid_set = random_split(cells(400), [320, 80])
train_loader, valid_loader = DataLoader(train_set, batch_size=32, shuffle=True), DataLoader(valid_set, batch_size=80)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
print("before training", evaluate(model, valid_loader))
for epoch in range(5):
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f} validation accuracy {evaluate(model, valid_loader):.3f}")
