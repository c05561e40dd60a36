# SPDX-License-Identifier: GPL-3.0-or-later
"""A convolutional classifier with dropout on 8x8 glyphs, train() and test() functions, StepLR."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(32 * 16, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(self.dropout1(x), 1)
        x = self.dropout2(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, loader, optimizer, epoch):
    model.train()
    for i, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(f"epoch {epoch} [{i}/{len(loader)}] loss {loss.item():.4f}")


def test(model, loader):
    model.eval()
    loss = correct = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            loss += F.nll_loss(output, target, reduction="sum").item()
            correct += (output.argmax(1) == target).sum().item()
    n = len(loader.dataset)
    print(f"test: average loss {loss / n:.4f}, accuracy {correct}/{n}")


def glyphs(templates, count):
    label = torch.randint(0, 10, (count,))
    return TensorDataset(templates[label] + 0.6 * torch.randn(count, 1, 8, 8), label)


torch.manual_seed(1)
templates = (torch.rand(10, 1, 8, 8) > 0.6).float()
train_loader = DataLoader(glyphs(templates, 960), batch_size=32, shuffle=True)
test_loader = DataLoader(glyphs(templates, 300), batch_size=300)
model = Net()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
for epoch in range(2):
    train(model, train_loader, optimizer, epoch)
    test(model, test_loader)
    scheduler.step()
