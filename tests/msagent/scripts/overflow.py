# SPDX-License-Identifier: MIT
"""Numbers leave their range, a way in each step: overflow.py graph|pynative ways|scaled|partly. Prints a digest of the weights."""
import hashlib
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.fc2 = nn.Dense(8, 4)

    def construct(self, x):
        return self.fc2(ops.relu(self.norm(self.fc1(x))))


def masked(x):
    scores = net(x)
    scores = ops.masked_fill(scores, Tensor(np.eye(4) > 0), float("-inf"))  # meant
    return ops.softmax(scores, -1).mean()


def logarithm(x):
    return (net(x).mean() + ops.log(0 * x)).mean()  # of 0


def half(x):
    y = ops.cast(net(x) * 0 + 1000, ms.float16)
    return ops.cast(y * y, ms.float32).mean()  # float16 ends at 65504


def root(x):
    return ops.sqrt(net(x) * 0).mean()  # its slope is infinite


def given(x):
    return (net(x) + broken).mean()


def plain(x):
    return net(x).mean()


def ways():
    """A loss per step."""
    optimizer = nn.SGD(net.trainable_params(), 10.0)
    for number, loss in enumerate((masked, logarithm, half, root, given, plain)):
        x = ops.ones((4, 4), ms.float32) + number
        value, gradients = ms.value_and_grad(loss, None, optimizer.parameters)(x)
        optimizer(tuple(ops.full_like(gradient, 0 if number < 5 else 3e38) for gradient in gradients))
        print("loss", value, flush=True)


def scaled():
    """The loss scale is too high for float16 in the first two steps, which the scaler skips."""
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    scaler = ms.amp.DynamicLossScaler(2.0 ** 22, 2 ** 4, 100)

    def forward(x):
        return scaler.scale(ops.cast(ops.cast(net(x), ms.float16).mean(), ms.float32))
    gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
    for number in range(4):
        value, gradients = gradients_of(ops.ones((4, 4), ms.float32) + number)
        gradients = scaler.unscale(gradients)
        finite = ms.amp.all_finite(gradients)
        if finite:
            optimizer(gradients)
        scaler.adjust(finite)
        print("loss", value, flush=True)


@ms.jit
def part(x):
    return ops.log(x * 0)


class Partly(nn.Cell):
    """A part of it is always compiled."""

    def __init__(self):
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, x):
        return part(self.net(x)).mean()


def partly():
    """Code whose operators are not seen in PyNative mode makes infinities; in graph mode, all is rehearsed."""
    train = nn.TrainOneStepCell(Partly(), nn.SGD(net.trainable_params(), 0.0))
    train.set_train()
    print("loss", train(ops.ones((4, 4), ms.float32)))


mode, way = sys.argv[1:]
ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
ms.set_seed(1)
broken = Tensor(np.full((4, 4), np.nan, "f4"))
net = Net()
net.set_train()
{"ways": ways, "scaled": scaled, "partly": partly}[way]()
digest = hashlib.sha256(b"".join(parameter.asnumpy().tobytes() for parameter in net.get_parameters()))
print("digest", way, digest.hexdigest()[:16], flush=True)
