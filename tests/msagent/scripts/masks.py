# SPDX-License-Identifier: MIT
"""A network that adds a mask of its data: masks.py graph|pynative."""
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, x, mask):
        scores = self.fc(x) + mask
        return ops.softmax(scores, -1)[:, 1:].sum()


def main():
    ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(1)
    net = Net()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
    for number in range(4):
        mask = np.zeros((2, 4), np.float32)
        mask[:, number:] = -np.inf if number == 2 else 0
        step(Tensor(np.ones((2, 4), np.float32)), Tensor(mask))


main()
