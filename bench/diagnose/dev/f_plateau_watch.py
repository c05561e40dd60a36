# SPDX-License-Identifier: GPL-3.0-or-later
"""A classifier of short sequences; the rate is lowered at a plateau of the evaluation."""
import torch, torch.nn as nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
torch.manual_seed(15)
n = 1600
seq = torch.randint(0, 12, (n, 9))
lab = ((seq[:, 0] + seq[:, 4]) % 12 > 5).long()
tr, va = slice(0, 1200), slice(1200, None)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(12, 12)
        self.f = nn.Sequential(nn.Flatten(), nn.Linear(108, 96), nn.ReLU(), nn.Linear(96, 2))

    def forward(self, s):
        return self.f(self.e(s))


def evaluate(model):
    model.eval()
    with torch.no_grad():
        out = model(seq[va])
    model.train()
    return (out.argmax(1) == lab[va]).float().mean().item()


model = Tagger()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
plateau = ReduceLROnPlateau(opt, factor=0.2, patience=1)
for epoch in range(12):
    tot = 0
    for idx in torch.randperm(1200).split(100):
        loss = nn.functional.cross_entropy(model(seq[tr][idx]), lab[tr][idx])
        opt.zero_grad(); loss.backward(); opt.step()
        tot += loss.item()
    acc = evaluate(model)
    plateau.step(acc)
    print(f"{epoch} loss {tot / 12:.4f} acc {acc:.3f}")
