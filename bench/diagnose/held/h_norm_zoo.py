# SPDX-License-Identifier: GPL-3.0-or-later
"""Batch, instance, group and layer normalisation in one network; averaged weights get fresh BN statistics."""
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset


def build():
    return nn.Sequential(
        nn.Conv2d(3, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU6(),
        nn.Conv2d(12, 12, 3, padding=1, groups=12), nn.InstanceNorm2d(12, affine=True), nn.Hardswish(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.GroupNorm(6, 24), nn.LeakyReLU(0.1),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.LayerNorm(96), nn.Linear(96, 6))


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        result = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return result


torch.manual_seed(65)
motif = torch.randn(6, 3, 10, 10)
label = torch.randint(0, 6, (1024,))
image = motif[label] + 1.2 * torch.randn(1024, 3, 10, 10)
train = DataLoader(TensorDataset(image[:768], label[:768]), batch_size=64, shuffle=True, drop_last=True)
model = build()
averaged = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
for epoch in range(6):
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch >= 3:
        averaged.update_parameters(model)
    print(f"epoch {epoch}: loss {loss.item():.4f}, valid {accuracy(model, image[768:], label[768:]):.3f}")
update_bn(train, averaged)
print(f"averaged weights: valid {accuracy(averaged, image[768:], label[768:]):.3f}")
