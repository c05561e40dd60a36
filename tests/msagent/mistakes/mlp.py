# SPDX-License-Identifier: GPL-3.0-or-later
"""A small network with one mistake: mlp.py MISTAKE [graph] [functional]. The line of each mistake has a comment."""
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

mistake, graph = sys.argv[1], "graph" in sys.argv[2:]
ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
ms.set_seed(1)


class Net(nn.Cell):
    """Two hidden layers; a batch of 16 features to 4 classes."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(16, 32)
        self.fc2 = nn.Dense(32, 32)
        self.fc3 = nn.Dense(32, 4)
        self.softmax = nn.Softmax()

    def construct(self, x):
        """The logits."""
        x = ops.relu(self.fc1(x))
        if mistake == "stopped":
            x = ops.stop_gradient(x)  # the first layer gets no gradient
        if mistake == "array":
            x = Tensor(x.asnumpy())  # outside of the graph
        x = ops.relu(self.fc2(x))
        if mistake == "half":
            half = ops.cast(x * 1000, ms.float16)
            x = ops.cast(half * half, ms.float32)  # float16 ends at 65504
        x = self.fc3(x)
        if mistake == "softmax":
            x = self.softmax(x)  # the loss applies it again
        return x


class LogLoss(nn.Cell):
    """The negative logarithm of the probabilities, without anything that keeps them above 0."""

    def construct(self, logits, label):
        """The loss."""
        chosen = ops.softmax(logits * 200, -1) * ops.one_hot(label, 4)
        return -ops.log(chosen.sum(-1)).mean()  # of 0


net = Net()
loss_fn = LogLoss() if mistake == "log" else nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
trained = net.trainable_params()
if mistake == "untrained":
    net.fc1.weight.requires_grad = False  # frozen
    trained = [p for p in net.trainable_params() if "fc2" not in p.name]  # without a layer
opt = nn.Momentum(trained, 10.0 if mistake == "rate" else 0.01, 0.9)
with_loss = nn.WithLossCell(net, loss_fn)
step = nn.TrainOneStepCell(with_loss, opt)
step.set_train()
gradients_of = ms.value_and_grad(with_loss, None, opt.parameters)


def functional(x, y):
    """A step whose optimizer is called here."""
    loss, gradients = gradients_of(x, y)
    opt(gradients)
    return loss


if "functional" in sys.argv[2:]:
    step = functional
rng = np.random.RandomState(0)
for _ in range(8):
    x = rng.randn(8, 16).astype("f4")
    loss = step(Tensor(x), Tensor((x[:, :4].argmax(1)).astype("i4")))
    print("loss", loss)
