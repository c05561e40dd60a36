# SPDX-License-Identifier: MIT
"""A training that sets hooks itself: hooked.py graph|pynative [raise]. Prints what they saw, and a digest of the weights."""
import hashlib
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

mode, *rest = sys.argv[1:]
seen = {"operators": 0, "calls": 0, "forward": 0, "backward": 0}
own = nn.Cell.__call__


def called(cell, *args, **kwargs):
    seen["calls"] += 1
    return own(cell, *args, **kwargs)


class Counting(ms.MsDispatchMode):
    def __ms_dispatch__(self, func, args, kwargs=None):
        seen["operators"] += 1
        return func(*args) if not kwargs else func(*args, **kwargs)


def forward(cell, inputs, output):
    seen["forward"] += 1


def backward(cell, gradient, output):
    seen["backward"] += 1


def died(kind, error, traceback):
    print("died of", kind.__name__, file=sys.stderr)
    while traceback is not None:
        print("at", traceback.tb_frame.f_code.co_name, file=sys.stderr)
        traceback = traceback.tb_next


ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
ms.set_seed(1)
nn.Cell.__call__ = called
print("untouched", sys.excepthook is sys.__excepthook__, sys.excepthook.__name__, repr(sys.excepthook))
net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
net.set_train()
if mode != "graph":
    net[0].register_forward_hook(forward)
    net[2].register_backward_hook(backward)
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
print("untouched", sys.excepthook is sys.__excepthook__, sys.excepthook.__name__, repr(sys.excepthook))
sys.excepthook = died


def loss_of(x):
    return net(x).mean()


gradients_of = ms.value_and_grad(loss_of, None, optimizer.parameters)
for number in range(4):
    x = Tensor(np.ones((4, 4), "f4") + number)
    if number % 2:
        with Counting():
            _, gradients = gradients_of(x)
        optimizer(gradients)
    else:
        _, gradients = gradients_of(x)
        with Counting():
            optimizer(gradients)
            x + x
    if number == 1:
        nn.Cell.__call__ = (lambda inner: lambda cell, *args: inner(cell, *args))(nn.Cell.__call__)
x * x  # Counting is over
print("seen", sorted(seen.items()))
digest = hashlib.sha256(b"".join(parameter.asnumpy().tobytes() for parameter in net.get_parameters()))
print("digest", mode, digest.hexdigest()[:16], flush=True)
if rest:
    raise ValueError("at the end")
