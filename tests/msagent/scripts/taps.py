# SPDX-License-Identifier: MIT
"""A training whose compiled code is looked into: taps.py FILE [compiled] [dropout] [ranks]. A digest of its weights is written
to FILE and the number of the rank. In step 4, net/log makes NaN, which nothing learns from. compiled: the network only compiles;
dropout: it has some; ranks: data parallel, for msrun, where only rank 1 has the NaN."""
import hashlib
import os
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, communication, nn, ops

STEPS = 6


@ops.constexpr
def one():
    """1, in compiled code only."""
    if os.environ.get("MS_JIT") == "0":
        raise RuntimeError("this network only compiles")
    return 1


class Log(nn.Cell):
    """A logarithm."""

    def construct(self, x):
        return ops.log(x)


class Net(nn.Cell):
    """A small network and its loss."""

    def __init__(self, compiled, dropout):
        super().__init__()
        self.layers = nn.SequentialCell(nn.Dense(6, 8), nn.Dropout(p=0.5 if dropout else 0.0))
        self.out = nn.Dense(8, 3)
        self.log = Log()
        self.loss = nn.CrossEntropyLoss()
        self.single = compiled

    def construct(self, x, y, aside):
        x = self.out(self.layers(x))
        if self.single:
            x = x * one()
        ignored = ops.select(aside > 0, self.log(aside), ops.zeros_like(aside))
        return self.loss(x, y) + ignored.sum()


def main():
    file, *words = sys.argv[1:]
    rank = 0
    ms.set_context(mode=ms.GRAPH_MODE)
    if "ranks" in words:
        communication.init()
        rank = communication.get_rank()
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    ms.set_seed(1)
    net = Net("compiled" in words, "dropout" in words)
    train = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.05, 0.9))
    train.set_train()
    numbers = np.random.RandomState(rank)
    for step in range(1, STEPS + 1):
        aside = np.full(3, -1 if step == 4 and (rank == 1 or "ranks" not in words) else 1, "f4")
        train(Tensor(numbers.randn(4, 6).astype("f4")), Tensor(numbers.randint(0, 3, 4).astype("i4")), Tensor(aside))
    digest = hashlib.sha256()
    for parameter in net.get_parameters():
        digest.update(parameter.asnumpy().tobytes())
    with open("%s%d" % (file, rank), "w", encoding="utf-8") as out:
        out.write("digest rank%d %s\n" % (rank, digest.hexdigest()[:16]))


if __name__ == "__main__":
    main()
