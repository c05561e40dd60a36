# SPDX-License-Identifier: GPL-3.0-or-later
"""Colour pictures of waves in three directions."""
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

def photos(n, rng, s=24):
    y = rng.integers(0, 3, n)
    yy, xx = np.mgrid[0:s, 0:s] / s
    img = np.zeros((n, s, s, 3), np.float32)
    for i in range(n):
        ph = rng.uniform(0, 6.28, 3)
        f = rng.uniform(0.5, 1.5)
        for c in range(3):
            img[i, :, :, c] = 0.5 + 0.25 * np.sin(6.28 * f * (xx if y[i] == 0 else yy if y[i] == 1 else xx + yy) + ph[0] + c)
        img[i] += 0.1 * rng.uniform(-1, 1, 3)
    img += rng.normal(0, 0.03, img.shape)
    return (img.clip(0, 1) * 255).astype(np.uint8), y

rng = np.random.default_rng(12)
images, labels = photos(1500, rng)
x = torch.from_numpy(images.reshape(-1, 3, 24, 24)).float() / 255.0
x = (x - 0.5) / 0.25
y = torch.from_numpy(labels)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 36, 3)
    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))

torch.manual_seed(0)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for epoch in range(3):
    perm = torch.randperm(len(x))
    for k in range(0, len(x), 50):
        b = perm[k:k + 50]
        loss = F.cross_entropy(net(x[b]), y[b])
        opt.zero_grad(); loss.backward(); opt.step()
    print("epoch", epoch, "loss", loss.item())
