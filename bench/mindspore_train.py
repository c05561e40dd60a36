# SPDX-License-Identifier: GPL-3.0-or-later
"""The training that bench_mindspore.py times: mindspore_train.py pynative|graph WIDTH STEPS. Prints the median of the
seconds that a step takes, without the first ones."""
import statistics
import sys
import time

import mindspore
import numpy
from mindspore import Tensor, nn

LAYERS, BATCH, CLASSES, WARM = 6, 64, 10, 10


def make_step(width):
    layers = [layer for _ in range(LAYERS) for layer in (nn.Dense(width, width), nn.LayerNorm((width,)), nn.ReLU())]
    net = nn.SequentialCell(*layers, nn.Dense(width, CLASSES))
    optimizer = nn.Momentum(net.trainable_params(), 0.001, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
    step.set_train()
    return step


def main():
    mode, width, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    mindspore.set_context(mode=mindspore.GRAPH_MODE if mode == "graph" else mindspore.PYNATIVE_MODE)
    mindspore.set_seed(1)
    random = numpy.random.RandomState(0)
    inputs = Tensor(random.randn(BATCH, width).astype("f4"))
    labels = Tensor(random.randint(0, CLASSES, BATCH).astype("i4"))
    step = make_step(width)
    times = []
    for _ in range(WARM + steps):
        begin = time.perf_counter()
        step(inputs, labels).asnumpy()
        times.append(time.perf_counter() - begin)
    print("median %.9f" % statistics.median(times[WARM:]), flush=True)


main()
