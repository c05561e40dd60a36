# SPDX-License-Identifier: GPL-3.0-or-later
"""A small convolutional network in MindSpore on the CPU, whose dump the tests examine.

Usage: ms_lenet.py STEPS [ZERO], or ms_lenet.py EPOCHS eval; MINDSPORE_DUMP_CONFIG names the configuration of the dump.
Prints the losses. With ZERO the loss is a logarithm, which is given 0 in that step: its gradients, and so the
parameters, are NaN from then on.
"""
import sys

import mindspore
import mindspore.dataset
import numpy
from mindspore import nn


class Net(nn.Cell):
    """LeNet, shortened."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5, pad_mode="valid", has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(4 * 6 * 6, 16)
        self.fc2 = nn.Dense(16, 10)

    def construct(self, x):
        """Scores of ten classes."""
        x = self.pool(self.relu(self.conv1(x)))
        return self.fc2(self.relu(self.fc1(self.flatten(x))))


class LogLoss(nn.Cell):
    """The mean logarithm of the scores' squares times a factor, where `y` is the factor."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.log = mindspore.ops.Log()
        self.mean = mindspore.ops.ReduceMean()

    def construct(self, x, y):
        """The loss."""
        scores = self.net(x)
        return self.mean(self.log(scores * scores * y))


class Evaluation(mindspore.Callback):
    """Evaluates at the end of every epoch: a second graph, with its own iterations."""

    def __init__(self, model, data):
        super().__init__()
        self.model, self.data = model, data

    def on_train_epoch_end(self, _):
        """In the same process, between two epochs."""
        self.model.eval(self.data(), dataset_sink_mode=False)


class Images:
    """Random images, each time the same."""

    def __init__(self, count):
        random = numpy.random.RandomState(1)
        self.image = random.rand(count, 1, 16, 16).astype(numpy.float32)
        self.label = random.randint(0, 10, count).astype(numpy.int32)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, at):
        return self.image[at], self.label[at]


def evaluate_between(net, epochs):
    """Trains by mindspore.Model, three batches an epoch."""
    def data():
        return mindspore.dataset.GeneratorDataset(Images(24), ["x", "y"], shuffle=False).batch(8)

    model = mindspore.Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
                            nn.Momentum(net.trainable_params(), 0.05, 0.9), metrics={"accuracy"})
    model.train(epochs, data(), callbacks=[Evaluation(model, data)], dataset_sink_mode=False)


def main():
    """Trains on random images, the same ones every time."""
    mindspore.set_context(mode=mindspore.GRAPH_MODE, device_target="CPU")
    mindspore.set_seed(1)
    random = numpy.random.RandomState(1)
    net = Net()
    if sys.argv[2:] == ["eval"]:
        evaluate_between(net, int(sys.argv[1]))
        return
    zero = int(sys.argv[2]) if len(sys.argv) > 2 else None
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    judged = nn.WithLossCell(net, loss) if zero is None else LogLoss(net)
    step = nn.TrainOneStepCell(judged, nn.Momentum(net.trainable_params(), 0.05, 0.9))
    step.set_train()
    for number in range(int(sys.argv[1])):
        x = mindspore.Tensor(random.rand(8, 1, 16, 16).astype(numpy.float32))
        y = mindspore.Tensor(random.randint(0, 10, 8).astype(numpy.int32))
        if zero is not None:
            y = mindspore.Tensor(numpy.float32(number != zero))
        print(repr(float(step(x, y).asnumpy())), flush=True)


if __name__ == "__main__":
    main()
