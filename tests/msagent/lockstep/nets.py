# SPDX-License-Identifier: GPL-3.0-or-later
"""Three networks, each in PyTorch and in MindSpore, with the same weights and the same batches.

Usage: nets.py pytorch|mindspore NET VALUES.npz FAULT

FAULT is what PyTorch's differs in: none, weight, transposed, rate or epsilon; or `make`: PyTorch writes VALUES.npz.
"""
import sys

import numpy

FRAMEWORK, NAME, FILE, FAULT = sys.argv[1:]
EPSILON = 0.1 if (FRAMEWORK, FAULT) == ("pytorch", "epsilon") else 1e-5

if FRAMEWORK == "mindspore":
    import mindspore
    from mindspore import Tensor, nn, ops
    from mindspore.nn import Cell as Module, Dense as Linear
    matmul, sigmoid, softmax, tanh = ops.matmul, ops.sigmoid, ops.softmax, ops.tanh

    def convolution(*channels, stride):
        return nn.Conv2d(*channels, 3, stride=stride, pad_mode="pad", padding=1, has_bias=True)

    def dropout():
        return nn.Dropout(p=0.0)

    def gelu():
        return nn.GELU(approximate=False)

    def layer_norm(width):
        return nn.LayerNorm((width,), epsilon=EPSILON)

    def swap(x, one, other):
        return x.swapaxes(one, other)
else:
    import torch
    from torch import matmul, nn, sigmoid, softmax, tanh
    from torch.nn import Linear, Module

    def convolution(*channels, stride):
        return nn.Conv2d(*channels, 3, stride=stride, padding=1)

    def dropout():
        return nn.Dropout(0.0)

    def gelu():
        return nn.GELU()

    def layer_norm(width):
        return nn.LayerNorm(width, eps=EPSILON)

    def swap(x, one, other):
        return x.transpose(one, other)


class Base(Module):
    """Both frameworks call `run`."""

    def construct(self, x):
        return self.run(x)

    def forward(self, x):
        return self.run(x)


class Convolutions(Base):
    """Two convolutions with group normalizations."""
    batch = (8, 1, 8, 8)

    def __init__(self):
        super().__init__()
        self.conv1, self.gn1 = convolution(1, 4, stride=1), nn.GroupNorm(2, 4, eps=EPSILON)
        self.conv2, self.gn2 = convolution(4, 8, stride=2), nn.GroupNorm(4, 8, eps=EPSILON)
        self.relu, self.pool, self.drop, self.out = nn.ReLU(), nn.AvgPool2d(2, 2), dropout(), Linear(32, 5)

    def run(self, x):
        x = self.relu(self.gn1(self.conv1(x)))
        x = self.relu(self.gn2(self.conv2(x)))
        return self.out(self.drop(self.pool(x)).reshape((x.shape[0], -1)))


class Attention(Base):
    """Self-attention with two heads."""

    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v, self.out = [Linear(width, width) for _ in range(4)]

    def split(self, x):
        return swap(x.reshape((x.shape[0], x.shape[1], 2, x.shape[2] // 2)), 1, 2)

    def run(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        weights = softmax(matmul(q, swap(k, -1, -2)) / q.shape[-1] ** 0.5, -1)
        return self.out(swap(matmul(weights, v), 1, 2).reshape(x.shape))


class Block(Base):
    """A layer of a transformer."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.attention = layer_norm(width), Attention(width)
        self.norm2, self.wide, self.act, self.narrow = layer_norm(width), Linear(width, 12), gelu(), Linear(12, width)

    def run(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(self.act(self.wide(self.norm2(x))))


class Transformer(Base):
    """An encoder of two layers."""
    batch = (8, 4, 6)

    def __init__(self):
        super().__init__()
        self.embedding, self.block1, self.block2 = Linear(6, 8), Block(8), Block(8)
        self.norm, self.head = layer_norm(8), Linear(8, 5)

    def run(self, x):
        return self.head(self.norm(self.block2(self.block1(self.embedding(x)))).mean(1))


class Recurrent(Base):
    """A recurrence with a gate, and a residual layer."""
    batch = (8, 4, 6)

    def __init__(self):
        super().__init__()
        self.enter, self.hidden, self.gate = Linear(6, 16), Linear(16, 16), Linear(16, 16)
        self.norm, self.wide, self.narrow, self.head = layer_norm(16), Linear(16, 16), Linear(16, 16), Linear(16, 5)

    def run(self, x):
        h = tanh(self.enter(x[:, 0]))
        for t in range(1, 4):
            h = tanh(self.enter(x[:, t]) + self.hidden(h)) * sigmoid(self.gate(h))
        h = self.norm(h)
        return self.head(h + tanh(self.narrow(tanh(self.wide(h)))))


NETS = {"convolutions": Convolutions, "transformer": Transformer, "recurrent": Recurrent}
CHANGED = {"convolutions": "out", "transformer": "block2.attention.k", "recurrent": "hidden"}  # whose weight is


def make(net):
    """Weights and batches."""
    random = numpy.random.RandomState(5)
    values = {"x": random.randn(4, *net.batch).astype("f4"), "y": random.randint(0, 5, (4, 8)).astype("i4")}
    for name, parameter in net.named_parameters():
        values[name] = parameter.detach().numpy() + 0.1 * random.randn(*parameter.shape).astype("f4")
    numpy.savez(FILE, **values)


def train_mindspore(net, loss_fn, values):
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, device_target="CPU")
    for parameter in net.get_parameters():
        name = parameter.name.replace("gamma", "weight").replace("beta", "bias")
        parameter.set_data(Tensor(values[name]))
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)

    def forward(x, y):
        return loss_fn(net(x), y)
    gradients_of = mindspore.value_and_grad(forward, None, optimizer.parameters)
    net.set_train()
    for x, y in zip(values["x"], values["y"]):
        _, gradients = gradients_of(Tensor(x), Tensor(y))
        optimizer(gradients)


def train_pytorch(net, loss_fn, values):
    torch.set_num_threads(1)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(torch.from_numpy(values[name]))
        weight = dict(net.named_parameters())[CHANGED[NAME] + ".weight"]
        if FAULT == "weight":
            weight[1, 2] += 0.5
        if FAULT == "transposed":
            weight.copy_(weight.t().clone())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.06 if FAULT == "rate" else 0.05, momentum=0.9)
    for x, y in zip(values["x"], values["y"]):
        optimizer.zero_grad()
        loss_fn(net(torch.from_numpy(x)), torch.from_numpy(y).long()).backward()
        optimizer.step()


def main():
    net = NETS[NAME]()
    if FAULT == "make":
        make(net)
        return
    train = train_mindspore if FRAMEWORK == "mindspore" else train_pytorch
    train(net, nn.CrossEntropyLoss(), numpy.load(FILE))


if __name__ == "__main__":
    main()
