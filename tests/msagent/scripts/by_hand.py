# SPDX-License-Identifier: MIT
"""A training with an update of its own, without an optimizer of MindSpore's: by_hand.py [attach]."""
import os
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
net.set_train()
weights = net.trainable_params()
if "attach" in sys.argv:
    import gradb.mindspore

    @gradb.mindspore.on_checkpoint
    def save(step):
        ms.save_checkpoint(net, "mine%d.ckpt" % step)
        return "mine%d.ckpt" % step
    print("attached", gradb.mindspore.attach(net, name="perceptron"), gradb.mindspore.is_attached(), flush=True)


def loss_of(x):
    return net(x).mean()


gradients_of = ms.value_and_grad(loss_of, None, weights)
for number in range(5):
    loss, gradients = gradients_of(Tensor(np.ones((4, 4), "f4")))
    for weight, gradient in zip(weights, gradients):
        ops.assign(weight, weight - 0.1 * gradient)
    if "attach" in sys.argv:
        gradb.mindspore.log("size", float(number))
        gradb.mindspore.step()
if "attach" in sys.argv:
    gradb.mindspore.detach()
    print("detached", gradb.mindspore.is_attached(), nn.Cell.__call__.__module__, sorted(os.listdir("."))[:1], flush=True)
print("done", flush=True)
