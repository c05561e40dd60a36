# SPDX-License-Identifier: MIT
"""The training that bench_mindspore.py measures: dense layers with normalizations on one fixed batch.

    mindspore_train.py SOCKET pynative|graph WIDTH

SOCKET: path of the requesting process's socket, see turns_served.py. A block's mode is always "plain"."""
import sys
import time

import mindspore
import numpy
import turns_served
from mindspore import Tensor, nn

LAYERS, BATCH, CLASSES = 6, 64, 10


def make_net(width):
    """The network."""
    layers = [layer for _ in range(LAYERS) for layer in (nn.Dense(width, width), nn.LayerNorm((width,)), nn.ReLU())]
    return nn.SequentialCell(*layers, nn.Dense(width, CLASSES))


def make_step(net):
    """A cell that trains it by one step."""
    optimizer = nn.Momentum(net.trainable_params(), 0.001, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
    step.set_train()
    return step


def main():
    path, mode, width = sys.argv[1], sys.argv[2], int(sys.argv[3])
    mindspore.set_context(mode=mindspore.GRAPH_MODE if mode == "graph" else mindspore.PYNATIVE_MODE)
    mindspore.set_seed(1)
    random = numpy.random.RandomState(0)
    inputs = Tensor(random.randn(BATCH, width).astype("f4"))
    labels = Tensor(random.randint(0, CLASSES, BATCH).astype("i4"))
    net = make_net(width)
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
