# SPDX-License-Identifier: GPL-3.0-or-later
"""Fine-tune the last block and the head of a pretrained residual network."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, x):
        return x + torch.relu(self.layer(x))


class Net(nn.Module):
    def __init__(self, dim=32, classes=8):
        super().__init__()
        self.layer1 = nn.Linear(16, dim)
        self.layer2 = Block(dim)
        self.layer3 = Block(dim)
        self.layer_out = nn.Linear(dim, classes)

    def forward(self, x):
        x = torch.relu(self.layer1(x))
        return self.layer_out(self.layer3(self.layer2(x)))


torch.manual_seed(18)
model = Net()
for name, p in model.named_parameters():
    if name.startswith("layer") and not name.startswith("layer3"):
        p.requires_grad_(False)
trainable = [p for p in model.parameters() if p.requires_grad]
print(f"{len(trainable)} tensors are trained")
optimizer = torch.optim.Adam(trainable, lr=0.01)
centers = torch.randn(8, 16)
for step in range(60):
    y = torch.randint(0, 8, (48,))
    x = centers[y] + 0.7 * torch.randn(48, 16)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
