# SPDX-License-Identifier: MIT
"""Trains with a loss scale that is too high for float16 in some steps: scaling.py graph|pynative WAY. Prints each loss as
it is without the scale, and a digest of the weights. WAY: own, jitted, static, unscaled, halved, cell, construct."""
import hashlib
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

mode, way = sys.argv[1:]
ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
ms.set_seed(1)
net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 1))
net.set_train()
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
scaler = ms.amp.StaticLossScaler(1024) if way == "static" else ms.amp.DynamicLossScaler(2.0 ** 22, 2 ** 4, 2)


def loss_of(x):
    return ops.cast(ops.cast(net(x), ms.float16).mean(), ms.float32)


def forward(x):
    return scaler.scale(loss_of(x)) / 2 * 2 if way == "halved" else scaler.scale(loss_of(x))


gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)


def step(x):
    loss, gradients = gradients_of(x)
    if way == "unscaled":
        loss = scaler.unscale(loss)
    gradients = scaler.unscale(gradients)
    finite = ms.amp.all_finite(gradients)
    if finite:
        optimizer(gradients)
    scaler.adjust(finite)
    return loss


class Step(nn.Cell):
    def __init__(self):
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, x):
        return step(x)


class WithScale(nn.TrainOneStepWithLossScaleCell):
    """Looks for infinities itself: the base cannot on a CPU."""

    def start_overflow_check(self, pre_cond, compute_input):
        return pre_cond, compute_input

    def get_overflow_status(self, status, compute_output):
        finite = ops.isfinite(compute_output[0]).all()
        for gradient in compute_output[1:]:
            finite = ops.logical_and(finite, ops.isfinite(gradient).all())
        return ops.logical_not(finite)


class Loss(nn.Cell):
    def __init__(self):
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, x):
        return loss_of(x)


if way == "cell":
    scaler = nn.DynamicLossScaleUpdateCell(2 ** 22, 2 ** 4, 2)
    run = WithScale(Loss(), optimizer, scaler)
    run.set_train()
elif way == "construct":
    run = Step()
    run.set_train()
else:
    run = ms.jit(step) if way in ("jitted", "static", "unscaled") else step
for number in range(6):
    x = Tensor(np.ones((4, 4), "f4") + number)
    shown = float(loss_of(x).asnumpy())
    run(x)
    print("loss %.4g" % shown, flush=True)
digest = hashlib.sha256(b"".join(parameter.asnumpy().tobytes() for parameter in net.get_parameters()))
print("digest", way, digest.hexdigest()[:16], flush=True)
