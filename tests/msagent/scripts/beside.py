# SPDX-License-Identifier: MIT
"""A training with what is beside it: an evaluation, callbacks, a dataset whose workers are processes.
beside.py graph|pynative fit|between|workers."""
import hashlib
import os
import sys

import mindspore as ms
import numpy as np
from mindspore import nn


class Noting(ms.Callback):
    """A callback of the script's own."""

    def __init__(self):
        super().__init__()
        self.noted = []

    def on_train_step_end(self, run_context):
        told = run_context.original_args()
        self.noted.append((told.cur_epoch_num, told.cur_step_num, round(float(told.net_outputs.asnumpy()), 4)))

    def on_train_epoch_end(self, run_context):
        self.noted.append("epoch")

    def on_eval_end(self, run_context):
        self.noted.append("eval")


class Rows:
    """A dataset that is indexed; is_remote: only in other processes than this one."""

    def __init__(self, count, is_remote=False):
        self.not_here = os.getpid() if is_remote else 0
        numbers = np.random.RandomState(1)
        self.x = numbers.randn(count, 6).astype("f4")
        self.y = numbers.randint(0, 3, count).astype("i4")

    def __getitem__(self, index):
        if os.getpid() == self.not_here:
            raise RuntimeError("the dataset has no workers")
        return self.x[index], self.y[index]

    def __len__(self):
        return len(self.x)


def main():
    mode, style = sys.argv[1:]
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3))
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    criterion = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ms.Model(net, criterion, optimizer, metrics={"accuracy"})
    workers = style == "workers"
    more = {"num_parallel_workers": 2, "python_multiprocessing": True} if workers else {}
    data = ms.dataset.GeneratorDataset(Rows(16, workers), ["x", "y"], shuffle=False, **more).batch(4)
    valid = ms.dataset.GeneratorDataset(Rows(12), ["x", "y"], shuffle=False).batch(4)
    noting = Noting()
    if style == "fit":
        model.fit(2, data, valid, callbacks=noting, dataset_sink_mode=False)
    else:
        for _ in range(2):
            model.train(1, data, callbacks=[noting], dataset_sink_mode=False)
            print("accuracy %.4f" % model.eval(valid, dataset_sink_mode=False)["accuracy"], flush=True)
    print("noted", noting.noted)
    digest = hashlib.sha256(b"".join(parameter.asnumpy().tobytes() for parameter in net.get_parameters()))
    print("digest", style, digest.hexdigest()[:16], flush=True)


if __name__ == "__main__":
    main()
