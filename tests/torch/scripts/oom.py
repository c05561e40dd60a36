# SPDX-License-Identifier: GPL-3.0-or-later
"""oom.py WHERE BATCHES: trains with batches of those sizes. In the last one memory is short (emulated with a limit of
the address space, or of the device's memory) in the forward pass, the backward pass, a custom function's backward
pass, the optimizer, or between two steps; nowhere for `none`. `uncaught-...`: the exception ends the program."""
import hashlib
import resource
import sys

import torch

WHERE, BATCHES = sys.argv[1].split("-")[-1], [int(word) for word in sys.argv[2].split(",")]
torch.manual_seed(0)
torch.set_num_threads(1)


def limit(mebibytes):
    if net.head.weight.is_cuda:
        whole = torch.cuda.mem_get_info()[1]
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_allocated() + (mebibytes << 20)) / whole)
        return
    with open("/proc/self/statm", encoding="utf-8") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (mebibytes << 20), -1))


def no_limit():
    if net.head.weight.is_cuda:
        torch.cuda.set_per_process_memory_fraction(1.0)
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))


class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(4))
        self.head = torch.nn.Linear(width, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Greedy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        limit(64)
        return gradient * torch.ones(1 << 26, device=gradient.device)[0]


net = Net(256)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)


def train(batch):
    last = batch == BATCHES[-1]
    if last and WHERE == "between":
        limit(64)
        torch.ones(1 << 26)
    x, y = torch.randn(batch, 256), torch.randint(0, 10, (batch,))
    optimizer.zero_grad(set_to_none=True)
    if last and WHERE == "forward":
        limit(40)
    out = net(x)
    if last and WHERE == "custom":
        out = Greedy.apply(out)
    if last and WHERE == "backward":
        out.register_hook(lambda gradient: limit(4))
    loss = torch.nn.functional.cross_entropy(out, y)
    loss.backward()
    if last and WHERE == "optimizer":
        limit(4)
    optimizer.step()
    return loss.item()


def say(*words):
    with open("printed", "a", encoding="utf-8") as file:
        print(*words, file=file)


for size in BATCHES:
    try:
        say("batch", size, train(size))
    except RuntimeError:
        if sys.argv[1].startswith("uncaught"):
            raise
        no_limit()
        say("caught")
text = b"".join(parameter.detach().numpy().tobytes() for parameter in net.parameters())
say("weights", hashlib.sha256(text + torch.get_rng_state().numpy().tobytes()).hexdigest())
