# SPDX-License-Identifier: GPL-3.0-or-later
"""A vector-quantized autoencoder of discs and diamonds."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)


def shapes(n):
    yy, xx = torch.meshgrid(torch.arange(16.), torch.arange(16.), indexing="ij")
    imgs = []
    for i in range(n):
        cx, cy, r = torch.rand(3) * torch.tensor([8., 8., 3.]) + torch.tensor([4., 4., 2.])
        d = ((xx - cx) ** 2 + (yy - cy) ** 2).sqrt()
        imgs.append((d < r).float() if i % 2 else ((xx - cx).abs() + (yy - cy).abs() < r).float())
    return torch.stack(imgs)[:, None]


class Quantizer(nn.Module):
    def __init__(self, k, d, beta=0.25):
        super().__init__()
        self.codes = nn.Embedding(k, d)
        self.codes.weight.data.normal_(0, 10)
        self.beta = beta

    def forward(self, z):
        b, d, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, d)
        dist = (flat ** 2).sum(1, keepdim=True) - 2 * flat @ self.codes.weight.t() + (self.codes.weight ** 2).sum(1)
        idx = dist.argmin(1)
        q = self.codes(idx).view(b, h, w, d).permute(0, 3, 1, 2)
        loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, idx


enc = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 8, 1))
vq = Quantizer(32, 8)
dec = nn.Sequential(nn.Conv2d(8, 16, 1), nn.ReLU(), nn.ConvTranspose2d(16, 16, 4, 2, 1), nn.ReLU(),
                    nn.ConvTranspose2d(16, 1, 4, 2, 1))
opt = torch.optim.Adam([*enc.parameters(), *vq.parameters(), *dec.parameters()], lr=1e-3)
data = shapes(512)

for it in range(200):
    x = data[torch.randint(0, 512, (32,))]
    z, vq_loss, idx = vq(enc(x))
    rec = dec(z)
    loss = F.mse_loss(rec, x) + vq_loss
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 20 == 0:
        print(f"it {it} loss {loss.item():.4f} rec {F.mse_loss(rec, x).item():.4f} codes {idx.unique().numel()}")
