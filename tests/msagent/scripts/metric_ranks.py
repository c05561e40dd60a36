# SPDX-License-Identifier: MIT
"""Data-parallel training on two ranks, for msrun, each with samples of its own: metric_ranks.py FILE. Each rank writes its
outputs and labels of each step to FILE and its number."""
import json
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, communication, nn


def main():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    communication.init()
    rank = communication.get_rank()
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    ms.set_seed(1)
    net = nn.Dense(6, 3)
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    reduce = nn.DistributedGradReducer(optimizer.parameters)
    loss_of = nn.CrossEntropyLoss()

    def forward(x, y):
        out = net(x)
        return loss_of(out, y), out

    grad = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
    numbers = np.random.RandomState(rank)
    seen = []
    for _ in range(6):
        x, y = numbers.randn(5 + 3 * rank, 6).astype("f4"), numbers.randint(0, 3, 5 + 3 * rank).astype("i4")
        (_, out), grads = grad(Tensor(x), Tensor(y))
        optimizer(reduce(grads))
        seen.append([out.asnumpy().tolist(), y.tolist()])
    with open("%s%d" % (sys.argv[1], rank), "w", encoding="utf-8") as file:
        json.dump(seen, file)


if __name__ == "__main__":
    main()
