# SPDX-License-Identifier: MIT
"""Trains a small network in one of the styles that MindSpore scripts have, and prints a digest of the weights:
styles.py graph|pynative STYLE[,STYLE...] [STEPS [FILE]]. FILE: where the digests are written, too."""
import hashlib
import math
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

STEPS = 8
STYLES = {}


def style(function):
    STYLES[function.__name__] = function
    return function


class Net(nn.Cell):
    """An image classifier with statistics that are not trained."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(3 * 36, 8)
        self.fc2 = nn.Dense(8, 3)

    def construct(self, x):
        x = self.relu(self.norm(self.conv(x)))
        return self.fc2(self.relu(self.fc1(self.flatten(x))))


class Block(nn.Cell):
    """A transformer of one block, on sequences of 6 tokens."""

    def __init__(self, width=8):
        super().__init__()
        self.embedding = nn.Embedding(10, width)
        self.query = nn.Dense(width, width)
        self.key = nn.Dense(width, width)
        self.value = nn.Dense(width, width)
        self.norm1 = nn.LayerNorm((width,))
        self.norm2 = nn.LayerNorm((width,))
        self.wide = nn.Dense(width, 2 * width)
        self.narrow = nn.Dense(2 * width, width)
        self.out = nn.Dense(width, 10)
        self.scale = 1 / math.sqrt(width)

    def construct(self, tokens):
        x = self.embedding(tokens)
        y = self.norm1(x)
        scores = ops.softmax(ops.matmul(self.query(y), self.key(y).swapaxes(1, 2)) * self.scale, -1)
        x = x + ops.matmul(scores, self.value(y))
        x = x + self.narrow(ops.gelu(self.wide(self.norm2(x))))
        return self.out(x)


def batches(steps):
    numbers = np.random.RandomState(0)
    for _ in range(steps):
        yield numbers.randn(4, 1, 6, 6).astype("f4"), numbers.randint(0, 3, 4).astype("i4")


def tensors(steps):
    return [(Tensor(x), Tensor(y)) for x, y in batches(steps)]


criterion = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


def momentum(net):
    return nn.Momentum(net.trainable_params(), 0.05, 0.9)


@style
def model(steps):
    net = Net()
    data = ms.dataset.GeneratorDataset(list(batches(steps)), ["x", "y"], shuffle=False)
    ms.Model(net, criterion, momentum(net)).train(1, data, dataset_sink_mode=False)
    return [net]


@style
def cell(steps):
    net = Net()
    train = nn.TrainOneStepCell(nn.WithLossCell(net, criterion), momentum(net))
    train.set_train()
    for x, y in tensors(steps):
        train(x, y)
    return [net]


@style
def own(steps):
    net = Net()
    net.set_train()
    optimizer = nn.Adam(net.trainable_params(), 0.01)

    def forward(x, y):
        return criterion(net(x), y)
    gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
    for x, y in tensors(steps):
        _, gradients = gradients_of(x, y)
        optimizer(gradients)
    return [net]


@style
def jitted(steps):
    net = Net()
    net.set_train()
    optimizer = momentum(net)

    def forward(x, y):
        return criterion(net(x), y)
    gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)

    @ms.jit
    def train_step(x, y):
        loss, gradients = gradients_of(x, y)
        optimizer(gradients)
        return loss
    for x, y in tensors(steps):
        train_step(x, y)
    return [net]


@style
def accumulate(steps):
    net = Net()
    net.set_train()
    optimizer = momentum(net)

    def forward(x, y):
        return criterion(net(x), y) / 2
    gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
    held = None
    for number, (x, y) in enumerate(tensors(2 * steps)):
        _, gradients = gradients_of(x, y)
        held = gradients if held is None else tuple(one + other for one, other in zip(held, gradients))
        if number % 2 == 1:
            optimizer(held)
            held = None
    return [net]


@style
def gan(steps):
    generator = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
    critic = nn.SequentialCell(nn.Dense(2, 8), nn.LeakyReLU(), nn.Dense(8, 1))
    for number, net in enumerate((generator, critic)):  # one compiled function has both
        for parameter in net.get_parameters():
            parameter.name = "net%d.%s" % (number, parameter.name)
    for_critic = nn.Adam(critic.trainable_params(), 0.002)
    for_generator = nn.Adam(generator.trainable_params(), 0.001)
    loss = nn.BCEWithLogitsLoss()
    ones, zeros = ops.ones((4, 1), ms.float32), ops.zeros((4, 1), ms.float32)

    def critic_loss(real, noise):
        return loss(critic(real), ones) + loss(critic(ops.stop_gradient(generator(noise))), zeros)

    def generator_loss(noise):
        return loss(critic(generator(noise)), ones)
    of_critic = ms.value_and_grad(critic_loss, None, for_critic.parameters)
    of_generator = ms.value_and_grad(generator_loss, None, for_generator.parameters)
    numbers = np.random.RandomState(0)
    for _ in range(steps):
        real, noise = Tensor(numbers.randn(4, 2).astype("f4")), Tensor(numbers.randn(4, 4).astype("f4"))
        _, gradients = of_critic(real, noise)
        for_critic(gradients)
        _, gradients = of_generator(noise)
        for_generator(gradients)
    return [generator, critic]


@style
def amp(steps):
    net = Net()
    net.set_train()
    optimizer = momentum(net)
    scaler = ms.amp.DynamicLossScaler(1024, 2, 3)

    def forward(x, y):
        return scaler.scale(criterion(net(x), y))
    gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
    for number, (x, y) in enumerate(tensors(steps)):
        if number == 3:
            x = x + np.float32("inf")  # this step is skipped
        _, gradients = gradients_of(x, y)
        gradients = scaler.unscale(gradients)
        finite = ms.amp.all_finite(gradients)
        if finite:
            optimizer(gradients)
        scaler.adjust(finite)
    return [net]


@style
def transformer(steps):
    net = Block()
    optimizer = nn.AdamWeightDecay(net.trainable_params(), 0.01)
    loss = nn.CrossEntropyLoss()

    class WithLoss(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self.net = net

        def construct(self, tokens):
            return loss(self.net(tokens[:, :-1]).reshape((-1, 10)), tokens[:, 1:].reshape((-1,)))
    train = nn.TrainOneStepCell(WithLoss(), optimizer)
    train.set_train()
    numbers = np.random.RandomState(0)
    for _ in range(steps):
        train(Tensor(numbers.randint(0, 10, (4, 7)).astype("i4")))
    return [net]


def main():
    mode, names, *rest = sys.argv[1:]
    steps = int(rest[0]) if rest else STEPS
    lines = []
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    for name in names.split(","):
        ms.set_seed(1)
        np.random.seed(1)
        nets = STYLES[name](steps)
        digest = hashlib.sha256()
        for net in nets:
            for parameter in net.get_parameters():
                digest.update(parameter.asnumpy().tobytes())
        lines.append("digest %s %s" % (name, digest.hexdigest()[:16]))
        print(lines[-1], flush=True)
    if len(rest) > 1:
        with open(rest[1], "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
