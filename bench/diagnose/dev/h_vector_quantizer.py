# SPDX-License-Identifier: GPL-3.0-or-later
"""Vector-quantized autoencoder: the gradient passes straight through the code book."""
import torch
from torch import nn
import torch.nn.functional as F


class Straight(torch.autograd.Function):
    """Forward: the nearest code. Backward: the gradient of the code goes to the input, on purpose."""

    @staticmethod
    def forward(ctx, z, codes):
        return codes

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Quantizer(nn.Module):
    def __init__(self, size=16, dim=4):
        super().__init__()
        self.book = nn.Embedding(size, dim)
        nn.init.uniform_(self.book.weight, -0.5, 0.5)

    def forward(self, z):
        index = torch.cdist(z, self.book.weight).argmin(1)
        codes = self.book(index)
        loss = F.mse_loss(codes, z.detach()) + 0.25 * F.mse_loss(z, codes.detach())
        return Straight.apply(z, codes.detach()), loss, index


torch.manual_seed(19)
prototypes = torch.randn(8, 12)
encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 12))
quantizer = Quantizer()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *quantizer.parameters()], lr=5e-3)
for step in range(150):
    x = prototypes[torch.randint(0, 8, (64,))] + 0.1 * torch.randn(64, 12)
    code, code_loss, index = quantizer(encoder(x))
    reconstruction = F.mse_loss(decoder(code), x)
    loss = reconstruction + code_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        print(f"step {step + 1} reconstruction {reconstruction.item():.4f} codes used {len(index.unique())}")
