# SPDX-License-Identifier: GPL-3.0-or-later
"""A recurrence whose weight lengthens the state in each of 24 iterations: recurrent.py [graph]."""
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)
ms.set_seed(1)


class Net(nn.Cell):
    """Adds the input to the state and multiplies it by the weight of `keep`."""

    def __init__(self):
        super().__init__()
        self.keep = nn.Dense(8, 8, has_bias=False, weight_init=Tensor(np.eye(8, dtype="f4") * 1.5))  # above 1
        self.out = nn.Dense(8, 1)

    def construct(self, x):
        """The last state's output."""
        h = x
        for _ in range(24):
            h = self.keep(h)
        return self.out(h)


net = Net()
opt = nn.SGD(net.trainable_params(), 1e-15)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), opt)
step.set_train()
rng = np.random.RandomState(0)
for _ in range(6):
    loss = step(Tensor(rng.randn(4, 8).astype("f4")), Tensor(np.ones((4, 1), "f4")))
    print("loss", loss)
