# SPDX-License-Identifier: GPL-3.0-or-later
"""Transfer learning: a frozen feature extractor with batch normalization, and a new head."""
import torch
import torch.nn as nn
from torch.optim import lr_scheduler


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.fc = nn.Linear(96, 10)

    def forward(self, x):
        return self.fc(self.net(x))


def pretrained():
    """Stands for weights from a file: the running statistics are those of the data."""
    model = Backbone()
    with torch.no_grad():
        for _ in range(20):
            model(torch.randn(64, 1, 8, 8))
    return model


torch.manual_seed(14)
model = pretrained()
for p in model.parameters():
    p.requires_grad = False
model.fc = nn.Linear(model.fc.in_features, 3)
optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.1, momentum=0.9)
scheduler = lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.1)
shapes = torch.randn(3, 1, 8, 8)
for epoch in range(5):
    # batch normalization keeps the statistics of the pretraining
    model.eval()
    right = 0
    for _ in range(12):
        y = torch.randint(0, 3, (32,))
        out = model(shapes[y] + 0.5 * torch.randn(32, 1, 8, 8))
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (out.argmax(1) == y).sum().item()
    scheduler.step()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {right / 384:.3f}")
