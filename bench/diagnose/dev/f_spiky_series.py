# SPDX-License-Identifier: GPL-3.0-or-later
"""A GRU that forecasts a noisy series with a few large errors of the sensor."""
import torch
import torch.nn as nn
torch.manual_seed(12)
t = torch.arange(4000) * 0.05
series = torch.sin(t) + 0.5 * torch.sin(2.7 * t) + 0.1 * torch.randn(4000)
series[torch.randint(0, 4000, (12,))] += 25
WIN = 24


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.head(h[:, -1])


def batch(bs=32):
    s = torch.randint(0, 4000 - WIN - 1, (bs,))
    idx = s[:, None] + torch.arange(WIN + 1)
    w = series[idx]
    return w[:, :-1, None], w[:, -1:]


net = Forecaster()
params = net.parameters()
opt = torch.optim.SGD(params, lr=0.05, momentum=0.9)
hist = []
for it in range(150):
    x, y = batch()
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
    hist.append(loss.item())
    if it % 30 == 0:
        print(it, sum(hist[-30:]) / len(hist[-30:]))
