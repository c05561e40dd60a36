# SPDX-License-Identifier: MIT
"""Trains a layer in a compiled step that takes a branch by a value."""
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_seed(1)
net = nn.Dense(5, 4)
optimizer = nn.SGD(net.trainable_params(), 0.01)


def forward(x):
    y = net(x)
    if y.sum() > 0:
        y = ops.relu(y)
    else:
        y = ops.tanh(y) * 2
    return y.mean()


gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(x):
    loss, gradients = gradients_of(x)
    optimizer(gradients)
    return loss


for _ in range(3):
    train_step(Tensor(np.ones((2, 5), "f4")))
