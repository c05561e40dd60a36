# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of net_torch.py in MindSpore on the CPU: the same weights, the same batches, the same steps.

Usage: net_mindspore.py VALUES.npz STEPS; MINDSPORE_DUMP_CONFIG names the configuration of the dump. Prints the
losses.
"""
import sys

import mindspore
import numpy
from mindspore import nn

NAMES = {"bn1.weight": "bn1.gamma", "bn1.bias": "bn1.beta"}


class Net(nn.Cell):
    """Convolution, batch normalization, three dense layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5, pad_mode="valid", has_bias=True)
        self.bn1 = nn.BatchNorm2d(4)
        self.act = nn.Tanh()
        self.pool = nn.AvgPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(4 * 6 * 6, 16)
        self.fc2 = nn.Dense(16, 16)
        self.fc3 = nn.Dense(16, 10)

    def construct(self, x):
        """Scores of ten classes."""
        x = self.pool(self.act(self.bn1(self.conv1(x))))
        x = self.act(self.fc1(self.flatten(x)))
        return self.fc3(self.act(self.fc2(x)))


def main():
    """Trains on the batches of the file."""
    mindspore.set_context(mode=mindspore.GRAPH_MODE, device_target="CPU")
    values = numpy.load(sys.argv[1])
    net = Net()
    given = {NAMES.get(name, name): mindspore.Parameter(mindspore.Tensor(values[name])) for name in values.files
             if name not in ("x", "y")}
    if mindspore.load_param_into_net(net, given)[1]:
        raise SystemExit("parameters without a value")
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.05, 0.9))
    step.set_train()
    for x, y in zip(values["x"][:int(sys.argv[2])], values["y"], strict=False):
        print(repr(float(step(mindspore.Tensor(x), mindspore.Tensor(y)).asnumpy())), flush=True)


if __name__ == "__main__":
    main()
