# SPDX-License-Identifier: GPL-3.0-or-later
"""Two networks and two optimizers, of which the second has a rate that is too high: two.py [graph]."""
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)
ms.set_seed(3)
maker = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
judge = nn.SequentialCell(nn.Dense(2, 8), nn.ReLU(), nn.Dense(8, 1))
maker.update_parameters_name("maker.")
judge.update_parameters_name("judge.")
loss_fn = nn.MSELoss()
of_judge = nn.Adam(judge.trainable_params(), 3.0)
of_maker = nn.Adam(maker.trainable_params(), 0.02)


def judge_loss(real, noise):
    """Of both kinds of samples."""
    fake = maker(noise)  # for the judge
    return loss_fn(judge(real), ops.ones_like(real[:, :1])) + loss_fn(judge(fake), ops.zeros_like(fake[:, :1]))


def maker_loss(noise):
    """Of samples that should be taken for real ones."""
    fake = maker(noise)  # for the maker
    return loss_fn(judge(fake), ops.ones_like(fake[:, :1]))


for_judge = ms.value_and_grad(judge_loss, None, of_judge.parameters)
for_maker = ms.value_and_grad(maker_loss, None, of_maker.parameters)
rng = np.random.RandomState(0)
for _ in range(4):
    noise = Tensor(rng.randn(8, 4).astype("f4"))
    of_judge(for_judge(Tensor(rng.randn(8, 2).astype("f4") + 3), noise)[1])
    of_maker(for_maker(noise)[1])
