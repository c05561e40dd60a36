# SPDX-License-Identifier: GPL-3.0-or-later
"""Sanity check: can the network learn one batch by heart?"""
import torch
import torch.nn as nn

torch.manual_seed(117)


class VGGish(nn.Module):
    def __init__(self):
        super().__init__()
        layers, cin = [], 3
        for width in (16, "M", 32, "M"):
            if width == "M":
                layers.append(nn.MaxPool2d(2))
            else:
                layers += [nn.Conv2d(cin, width, 3, padding=1), nn.ReLU(inplace=True)]
                cin = width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(32 * 9, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.classifier(self.features(x))


# One fixed batch with random labels, on purpose: the loss must reach 0 if the code is sound.
images, labels = torch.randn(24, 3, 12, 12), torch.randint(0, 10, (24,))
net = VGGish()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(60):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1} loss {loss.item():.5f}")
