# SPDX-License-Identifier: MIT
"""A training that wastes time in one way: tuning.py MODE HOW STEPS [FILE], with MODE pynative, graph or jit, and HOW
none, loader, item, shapes, casts, compiles or python. What it prints at the end, or writes to the file, depends on every
value that it computed."""
import sys
import time

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Tensor, nn, ops

MODE, HOW, STEPS = sys.argv[1], sys.argv[2], int(sys.argv[3])
LARGE = HOW == "none" and MODE == "pynative"
WIDTH = 1997 if HOW == "shapes" else 1024 if LARGE else 256
ROWS = 512 if HOW == "shapes" or LARGE else 64


class Samples:
    """Random samples, each of which takes a moment to load where the dataset is what wastes time."""

    def __len__(self):
        return 4 * (STEPS - 1)

    def __getitem__(self, index):
        time.sleep(0.15)
        numbers = np.random.RandomState(index)
        return numbers.randn(WIDTH).astype(np.float32), np.int32(index % 10)


class Net(nn.Cell):
    """Two layers; with casts, each of them computes in another type than the next one."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(WIDTH, WIDTH)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(WIDTH, 10 if HOW == "shapes" else 16)

    def construct(self, x):
        """The logits."""
        if HOW == "python":
            time.sleep(0.6)  # stands for much Python between the operators
        x = self.relu(self.fc1(x))
        if HOW == "casts":
            for _ in range(20):
                x = ops.cast(ops.cast(x, ms.float64), ms.float32)
        return self.fc2(x)


def batches():
    """Of each step."""
    numbers = np.random.RandomState(0)
    if HOW == "loader":
        ds.config.set_prefetch_size(2)
        # The first step compiles, in which time the dataset would load all it has.
        yield Tensor(np.zeros((4, WIDTH), np.float32)), Tensor(np.zeros(4, np.int32))
        yield from ds.GeneratorDataset(Samples(), ["x", "y"], shuffle=False).batch(4).create_tuple_iterator(num_epochs=1)
        return
    x, y = numbers.randn(ROWS, WIDTH).astype(np.float32), (np.arange(ROWS) % 10).astype(np.int32)
    x, y = Tensor(x), Tensor(y)
    for step in range(STEPS):
        yield (x[:8 + step % 6], y[:8 + step % 6]) if HOW == "compiles" else (x, y)


def main():
    """Trains."""
    ms.set_context(mode=ms.GRAPH_MODE if MODE == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(0)
    net, loss_fn = Net(), nn.CrossEntropyLoss()
    optimizer = nn.SGD(net.trainable_params(), 0.01)

    def forward(x, y):
        return loss_fn(net(x), y)
    grad = ms.value_and_grad(forward, None, optimizer.parameters)

    def train(x, y):
        loss, gradients = grad(x, y)
        optimizer(gradients)
        return loss
    if MODE == "jit":
        train = ms.jit(train)
    total = 0.0
    for step, (x, y) in enumerate(batches()):
        loss = train(x, y)
        if HOW == "item" or step % 20 == 0:
            total += float(loss.asnumpy())
    weights = sum(float(parameter.asnumpy().astype(np.float64).sum()) for parameter in net.trainable_params())
    text = "total %.9g, weights %.9g" % (total, weights)
    if len(sys.argv) > 4:
        with open(sys.argv[4], "w", encoding="utf-8") as file:
            print(text, file=file)
    else:
        print(text)


main()
