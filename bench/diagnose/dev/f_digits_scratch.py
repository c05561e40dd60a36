# SPDX-License-Identifier: GPL-3.0-or-later
"""Two layers of plain tensors on noisy digits, updated by hand."""
import torch
torch.manual_seed(9)
proto = (torch.rand(10, 64) > 0.6).float()
ys = torch.randint(0, 10, (2000,))
xs = (proto[ys] + 0.35 * torch.randn(2000, 64)).clamp(0, 1)


class Net:
    def __init__(self):
        self.w1 = (torch.randn(64, 32) * 0.15).requires_grad_()
        self.b1 = torch.zeros(32).requires_grad_()
        self.w2 = (torch.randn(32, 10) * 0.2).requires_grad_()
        self.b2 = torch.zeros(10).requires_grad_()

    def params(self):
        return [self.w1, self.b1, self.w2, self.b2]

    def __call__(self, x):
        return torch.tanh(x @ self.w1 + self.b1) @ self.w2 + self.b2


def sgd(params, lr):
    with torch.no_grad():
        for p in params:
            g = p.grad.clone()
            p.grad = None
            p = p - lr * g


net = Net()
for epoch in range(4):
    tot, n = 0., 0
    for idx in torch.randperm(2000).split(100):
        out = net(xs[idx])
        loss = -out.log_softmax(1)[torch.arange(len(idx)), ys[idx]].mean()
        loss.backward()
        sgd(net.params(), 0.2)
        tot += loss.item(); n += 1
    print("epoch %d  train loss %.3f" % (epoch, tot / n))
