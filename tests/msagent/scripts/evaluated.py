# SPDX-License-Identifier: MIT
"""Trains and evaluates with Model: evaluated.py graph|pynative. Prints what Model.eval returns, and a digest."""
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import (F1, Accuracy, Loss, Model, Precision, Recall, Top1CategoricalAccuracy,
                             TopKCategoricalAccuracy)

ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
ms.set_seed(1)
np.random.seed(1)
x = np.random.randn(96, 4).astype("float32")
y = (x[:, 0] + x[:, 1] > 0).astype("int32") + (x[:, 2] > 1).astype("int32")


def data():
    return ds.NumpySlicesDataset({"x": x, "y": y}, shuffle=False).batch(32)


net = nn.SequentialCell(nn.Dense(4, 16), nn.ReLU(), nn.Dense(16, 4))  # the last class is never a label
model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
              nn.Adam(net.trainable_params(), 1e-2), metrics={
                  "accuracy": Accuracy(), "mean_loss": Loss(), "precision": Precision(), "recall": Recall(),
                  "f1": F1(), "top1": Top1CategoricalAccuracy(), "top2": TopKCategoricalAccuracy(2)})
for _ in range(2):
    model.train(1, data(), dataset_sink_mode=False)
    for name, value in model.eval(data(), dataset_sink_mode=False).items():
        for i, number in enumerate(np.atleast_1d(value)):
            print("eval_%s%s %.6g" % (name, "_%d" % i if np.ndim(value) else "", number), flush=True)
model.train(1, data(), dataset_sink_mode=False)
print("digest", float(sum(p.asnumpy().astype("float64").sum() for p in net.trainable_params())).hex(),
      np.random.rand())
