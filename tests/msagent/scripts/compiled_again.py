# SPDX-License-Identifier: MIT
"""Trains a layer in a compiled step; the batch and the loss change after step 2, so that it is compiled again."""
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_seed(1)
net = nn.Dense(5, 4)
optimizer = nn.SGD(net.trainable_params(), 0.01)


def forward(x, clipped):
    y = net(x)
    return (ops.relu(y) if clipped else y).mean()


gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(x, clipped):
    loss, gradients = gradients_of(x, clipped)
    optimizer(gradients)
    return loss


for step in range(6):
    train_step(Tensor(np.ones((2 if step < 2 else 3, 5), "f4")), step < 2)
