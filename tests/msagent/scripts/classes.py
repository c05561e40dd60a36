# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares metric_tool with the classes of mindspore.train on the same batches: classes.py FOLDER TOOL. Prints how many
numbers were equal."""
import sys

import numpy as np
from mindspore import Tensor
from mindspore.train import (F1, MAE, MSE, ROC, Accuracy, ConfusionMatrix, Loss, Perplexity, Precision, Recall,
                             Top1CategoricalAccuracy, Top5CategoricalAccuracy, auc)

sys.path.insert(0, sys.argv[1])
import metric_tool  # noqa: E402

random = np.random.default_rng(5)
count = 0


def compare(spec, theirs, batches, form=metric_tool.CLASSES, result=lambda metric: metric.eval()):
    global count
    ours = metric_tool.Metric(sys.argv[2], spec)
    for outputs, labels in batches:
        ours.update(outputs, labels, form)
        theirs.update(Tensor(outputs), Tensor(labels))
    expected = np.atleast_1d(result(theirs))
    found = list(ours.numbers().values()) if spec != "confusion" else np.ravel(ours.matrix())
    np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-6, err_msg=spec)
    count += len(expected)
    ours.close()


def batches(classes, sizes=(32, 32, 5)):
    return [(random.normal(size=(n, classes)).astype("float32"),
             random.integers(0, max(2, classes - 2), size=n).astype("int32")) for n in sizes]


def with_nan(given):
    for outputs, _ in given:
        outputs[::5, 1] = np.nan
    return given


for classes in (2, 7, 40):  # the last two are never labels; of 40 most are never predicted either
    for made in (batches(classes), with_nan(batches(classes))):
        compare("accuracy", Accuracy(), made)
        compare("precision average=none", Precision(), made) if classes <= 32 else None
        compare("precision average=all", Precision(), made, result=lambda metric: metric.eval(True))
        compare("recall average=all", Recall(), made, result=lambda metric: metric.eval(True))
        compare("f1 average=all", F1(), made, result=lambda metric: metric.eval(True))
        compare("confusion", ConfusionMatrix(classes), made)
        compare("topk k=1", Top1CategoricalAccuracy(), made)
        if classes > 5:
            compare("topk k=5", Top5CategoricalAccuracy(), made)
    chances = [(np.exp(o) / np.exp(o).sum(1, keepdims=True), labels) for o, labels in batches(classes)]
    compare("perplexity probabilities", Perplexity(), chances)

pairs = [(random.normal(size=n).astype("float32"), random.normal(size=n).astype("float32")) for n in (9, 30)]
wide = [(random.normal(size=(n, 3)).astype("float32"), random.normal(size=(n, 3)).astype("float32")) for n in (9, 30)]
for made in (pairs, wide):
    compare("mse per=sample", MSE(), made, metric_tool.VALUES)
    compare("mae per=sample", MAE(), made, metric_tool.VALUES)
scores = [(random.random(200).astype("float32").round(1), random.integers(0, 2, 200).astype("int32"))]
compare("auc", ROC(pos_label=1), scores, metric_tool.PROBABILITIES,
        result=lambda metric: auc(*metric.eval()[:2]))
losses, ours = Loss(), metric_tool.Metric(sys.argv[2], "loss")
for number in (1.5, 2.25, 0.5):
    losses.update(Tensor(number))
    ours.add(number)
assert ours.value() == losses.eval()
print("equal:", count + 1)
