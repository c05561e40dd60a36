# SPDX-License-Identifier: GPL-3.0-or-later
"""Self-supervised representations from two noisy views."""
import torch
from torch import nn
import torch.nn.functional as F


def projector(width, out):
    return nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, out))


class Views(torch.utils.data.IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        g = torch.Generator().manual_seed(30)
        centres = torch.randn(10, 24, generator=g)
        for _ in range(self.count):
            x = centres[torch.randint(0, 10, (1,), generator=g).item()]
            yield x + 0.4 * torch.randn(24, generator=g), x + 0.4 * torch.randn(24, generator=g)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = projector(24, 32)
        self.predictor = projector(32, 32)

    def forward(self, a, b):
        za, zb = self.backbone(a), self.backbone(b)
        return (self.predictor(za), zb), (self.predictor(zb), za)


def similarity_loss(pairs):
    return sum(1 - F.cosine_similarity(p, z, dim=-1).mean() for p, z in pairs) / len(pairs)


def main():
    torch.manual_seed(2)
    net = Siamese()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    for step, (a, b) in enumerate(torch.utils.data.DataLoader(Views(64 * 150), batch_size=64)):
        loss = similarity_loss(net(a, b))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(step, "loss %.5f" % loss.item())


main()
