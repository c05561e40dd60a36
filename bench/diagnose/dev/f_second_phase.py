# SPDX-License-Identifier: GPL-3.0-or-later
"""Fine-tuning in two phases: the head first, then everything."""
import torch, torch.nn as nn
torch.manual_seed(8)
imgs = torch.randn(600, 1, 12, 12)
t = torch.randint(0, 4, (600,))
for k in range(4):
    imgs[t == k, 0, 3 * k: 3 * k + 3, :] += 0.9


def backbone():
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1),
                         nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten())


class Finetuner:
    def __init__(self, epochs=(2, 6)):
        self.body, self.head = backbone(), nn.Linear(144, 4)
        self.epochs = epochs
        self.opt = torch.optim.SGD(self.head.parameters(), lr=0.05, momentum=0.9)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, step_size=2, gamma=0.3)

    def unfreeze(self):
        params = list(self.body.parameters()) + list(self.head.parameters())
        self.opt = torch.optim.SGD(params, lr=0.05, momentum=0.9)

    def one_epoch(self, tag):
        tot = 0
        for idx in torch.randperm(600).split(40):
            with torch.set_grad_enabled(tag != "head"):
                h = self.body(imgs[idx])
            loss = nn.functional.cross_entropy(self.head(h), t[idx])
            self.opt.zero_grad(); loss.backward(); self.opt.step()
            tot += loss.item()
        self.sched.step()
        print(tag, f"{tot / 15:.4f}")

    def fit(self):
        for _ in range(self.epochs[0]):
            self.one_epoch("head")
        self.unfreeze()
        for _ in range(self.epochs[1]):
            self.one_epoch("all")


Finetuner().fit()
