# SPDX-License-Identifier: MIT
"""The training that bench_mindspore.py measures: LeNet, or dense layers of a width with normalizations, on one fixed
batch.

    mindspore_train.py SOCKET pynative|graph lenet|WIDTH

SOCKET: path of the requesting process's socket, see turns_served.py. A block's mode is always "plain"."""
import sys
import time

import mindspore
import numpy
import turns_served
from mindspore import Tensor, nn

LAYERS, BATCH, CLASSES = 6, 64, 10


def lenet():
    """LeNet-5 for images of 32 x 32."""
    return nn.SequentialCell(
        nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
        nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, CLASSES))


def dense(width):
    """Layers of one width."""
    layers = [layer for _ in range(LAYERS) for layer in (nn.Dense(width, width), nn.LayerNorm((width,)), nn.ReLU())]
    return nn.SequentialCell(*layers, nn.Dense(width, CLASSES))


def make_step(net):
    """A cell that trains it by one step."""
    optimizer = nn.Momentum(net.trainable_params(), 0.001, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
    step.set_train()
    return step


def main():
    path, mode, name = sys.argv[1:]
    mindspore.set_context(mode=mindspore.GRAPH_MODE if mode == "graph" else mindspore.PYNATIVE_MODE)
    mindspore.set_seed(1)
    random = numpy.random.RandomState(0)
    shape = (BATCH, 1, 32, 32) if name == "lenet" else (BATCH, int(name))
    inputs = Tensor(random.randn(*shape).astype("f4"))
    labels = Tensor(random.randint(0, CLASSES, BATCH).astype("i4"))
    net = lenet() if name == "lenet" else dense(int(name))
    step = make_step(net)

    def block(_mode, steps):
        seconds = []
        for _ in range(steps):
            began = time.perf_counter()
            step(inputs, labels).asnumpy()
            seconds.append(time.perf_counter() - began)
        return seconds
    turns_served.serve(path, mindspore.__version__, sum(parameter.size for parameter in net.trainable_params()), block)


if __name__ == "__main__":
    main()
