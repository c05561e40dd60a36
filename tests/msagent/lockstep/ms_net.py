# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of torch_net.py in MindSpore: the same weights, the same batches.

Usage: ms_net.py VALUES.npz pynative|graph
"""
import sys

import mindspore
import numpy
from mindspore import nn

NAMES = {"bn1.weight": "bn1.gamma", "bn1.bias": "bn1.beta", "norm.weight": "norm.gamma", "norm.bias": "norm.beta"}


class Net(nn.Cell):
    """Three dense layers, a batch normalization and a layer normalization."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(12, 16)
        self.bn1 = nn.BatchNorm1d(16)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(16, 16)
        self.norm = nn.LayerNorm((16,), epsilon=1e-5)
        self.fc3 = nn.Dense(16, 5)

    def construct(self, x):
        """Scores of five classes."""
        x = self.relu(self.bn1(self.fc1(x)))
        x = self.relu(self.norm(self.fc2(x)))
        return self.fc3(x)


def main():
    """Trains on the batches of the file."""
    mindspore.set_context(mode=mindspore.GRAPH_MODE if sys.argv[2] == "graph" else mindspore.PYNATIVE_MODE,
                          device_target="CPU")
    values = numpy.load(sys.argv[1])
    net = Net()
    given = {NAMES.get(name, name): mindspore.Parameter(mindspore.Tensor(values[name])) for name in values.files
             if name not in ("x", "y")}
    mindspore.load_param_into_net(net, given)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer)
    step.set_train()
    for x, y in zip(values["x"], values["y"]):
        step(mindspore.Tensor(x), mindspore.Tensor(y))


if __name__ == "__main__":
    main()
