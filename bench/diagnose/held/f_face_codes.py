# SPDX-License-Identifier: GPL-3.0-or-later
"""A convolutional autoencoder for 16x16 pictures of smooth random blobs."""
import torch
import torch.nn.functional as F
from torch import nn


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(8, 16, 4, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(256, 32))
        self.decoder = nn.Sequential(
            nn.Linear(32, 256), nn.ReLU(), nn.Unflatten(1, (16, 4, 4)),
            nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1), nn.Sigmoid())

    def forward(self, images):
        return self.decoder(self.encoder(images))

    def loss(self, images):
        rebuilt = self.decoder(self.encoder(images))
        loss = F.mse_loss(rebuilt, images)
        return loss


def blobs(count):
    coarse = torch.randn(count, 1, 4, 4)
    images = F.interpolate(coarse, size=16, mode="bicubic", align_corners=False)
    return (images - images.mean()) / images.std()


torch.manual_seed(66)
images = blobs(512)
model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(100):
    loss = model.loss(images[torch.randint(0, 512, (32,))])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 24:
        print(f"step {step + 1}: reconstruction error {loss.item():.4f}")
