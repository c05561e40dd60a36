# SPDX-License-Identifier: MIT
"""Data-parallel training on two ranks, for msrun: ranks.py MODE[,MODE] FILE, with MODE graph or pynative. Each rank writes a
digest of its weights to FILE and its number. What happens to one rank only happens to rank 1: large data in step 4, and in
step 6 an infinite value that nothing uses."""
import hashlib
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, communication, nn, ops

STEPS = 8


class WithLoss(nn.Cell):
    """The loss of a small network."""

    def __init__(self, net):
        super().__init__(auto_prefix=False)
        self.net = net
        self.loss = nn.CrossEntropyLoss()

    def construct(self, x, y, aside):
        ops.log(aside)
        return self.loss(self.net(x), y)


def train_in(mode, rank):
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3))
    train = nn.TrainOneStepCell(WithLoss(net), nn.Momentum(net.trainable_params(), 0.05, 0.9))
    train.set_train()
    numbers = np.random.RandomState(rank)
    for step in range(1, STEPS + 1):
        x = numbers.randn(4, 6).astype("f4") * (100 if (rank, step) == (1, 4) else 1)
        aside = np.full(3, 0 if (rank, step) == (1, 6) else 1, "f4")
        train(Tensor(x), Tensor(numbers.randint(0, 3, 4).astype("i4")), Tensor(aside))
    digest = hashlib.sha256()
    for parameter in net.get_parameters():
        digest.update(parameter.asnumpy().tobytes())
    return "digest %s-%d %s\n" % (mode, rank, digest.hexdigest()[:16])


def main():
    modes, file = sys.argv[1:]
    communication.init()
    rank = communication.get_rank()
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    text = "".join(train_in(mode, rank) for mode in modes.split(","))
    with open("%s%d" % (file, rank), "w", encoding="utf-8") as out:
        out.write(text)


if __name__ == "__main__":
    main()
