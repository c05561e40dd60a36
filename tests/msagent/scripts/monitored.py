# SPDX-License-Identifier: MIT
"""Two epochs of three steps under LossMonitor and TimeMonitor: usage: monitored.py pynative|graph."""
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.train import LossMonitor, Model, TimeMonitor


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(4, 3)
        self.relu = nn.ReLU()
        self.second = nn.Dense(3, 2)
        self.show = ops.Print()

    def construct(self, x):
        hidden = self.relu(self.first(x))
        self.show(hidden)
        return self.second(hidden)


ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
ms.set_seed(0)
numbers = np.random.RandomState(0)
data = [(numbers.randn(4).astype(np.float32), np.int32(numbers.randint(0, 2))) for _ in range(12)]
net = Net()
model = Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
model.train(2, ds.GeneratorDataset(data, ["x", "y"], shuffle=False).batch(4), callbacks=[LossMonitor(), TimeMonitor()],
            dataset_sink_mode=False)
