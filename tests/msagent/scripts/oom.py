# SPDX-License-Identifier: GPL-3.0-or-later
"""oom.py WHERE BATCHES: trains in PyNative mode with batches of those sizes. In the last one memory is short (emulated
with a limit of the address space) in the forward pass, the backward pass or the optimizer; nowhere for `none`. `graph`:
like `forward`, compiled. `leak`: the losses and outputs of all steps are kept."""
import hashlib
import resource
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

WHERE, BATCHES = sys.argv[1], [int(word) for word in sys.argv[2].split(",")]
ms.set_seed(1)
ms.set_context(mode=ms.GRAPH_MODE if WHERE == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
KEPT = []


def limit(mebibytes):
    with open("/proc/self/statm", encoding="utf-8") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (mebibytes << 20), -1))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(64, 256)
        self.last = nn.Dense(256, 8)

    def construct(self, x):
        hidden = ops.tanh(self.first(x))
        if WHERE == "leak":
            KEPT.append(hidden)
        if WHERE in ("forward", "graph") and x.shape[0] == BATCHES[-1] and len(BATCHES) > 1:
            hidden = ops.tile(hidden, (1 << 16, 1))  # more than there is
        return self.last(hidden).square().mean()


class Greedy(nn.Cell):
    """Asks for much in its backward pass."""

    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (ops.tile(dout * x, (1 << 15, 1)).mean(0, keep_dims=True) + x,)


class Adam(nn.Adam):
    def construct(self, gradients):
        if WHERE == "optimizer" and size == BATCHES[-1]:
            KEPT.append(ops.tile(gradients[0], (1 << 16, 1)))
        return super().construct(gradients)


net, greedy = Net(), Greedy()
optimizer = Adam(net.trainable_params(), learning_rate=1e-3)


def forward(x):
    loss = net(x)
    if WHERE == "backward" and x.shape[0] == BATCHES[-1]:
        loss = greedy(loss.reshape((1, 1)).tile((1, 1 << 16))).mean()
    return loss


step = ms.value_and_grad(forward, None, optimizer.parameters)
random = np.random.default_rng(0)
for size in BATCHES:
    if size == BATCHES[-1] and WHERE in ("forward", "graph", "backward", "optimizer"):
        limit(600)
    try:
        loss, gradients = step(Tensor(random.standard_normal((size, 64)), ms.float32))
        optimizer(gradients)
        print("batch", size, loss)
    except (RuntimeError, MemoryError) as error:
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        print("caught")
text = b"".join(parameter.asnumpy().tobytes() for parameter in net.get_parameters())
print("digest oom", hashlib.sha256(text).hexdigest()[:16])
