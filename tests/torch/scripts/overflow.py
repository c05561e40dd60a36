# SPDX-License-Identifier: GPL-3.0-or-later
"""A training whose numbers overflow, in each step in another way; every step draws random numbers, too. Its weights
and the state of its random generator go to a file: gradb must not have changed them. What the operators of step 4
and 6 were given goes to files, bit for bit.

    overflow.py DIGEST [FOLDER]
"""
import hashlib
import pathlib
import sys

import torch

NEW = hasattr(torch, "get_autocast_dtype")  # half precision on the CPU under autocast
HALF = torch.float16 if NEW else torch.bfloat16
BIG = 300.0 if NEW else 1e19 * 1.7

torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Dropout(0.25), torch.nn.Linear(4, 2))
head = torch.nn.Linear(3, 4, bias=False)
with torch.no_grad():
    head.weight.fill_(BIG)
broken = torch.tensor([1.0, float("nan")])  # as data may be
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
hidden = torch.ones(4, 4).triu(1).bool()


def raw(tensor):
    return bytes(tensor.detach().contiguous().view(torch.uint8).flatten().tolist())


def keep(name, tensor):
    if len(sys.argv) > 2:
        (pathlib.Path(sys.argv[2]) / name).write_bytes(raw(tensor))


def masked(y, mask):  # as attention does it: intended
    scores = torch.zeros(4, 4).masked_fill(mask, float("-inf"))
    return scores.softmax(-1) @ y


def logarithm(y):  # of 0: inherent
    return torch.log(torch.relu(y * torch.tensor([0.0, 1.0])) * 0 + torch.tensor([0.0, 2.0])).detach()


def exponential(y):  # beyond float32, but not beyond float64
    return torch.exp(y.detach() * 0 + 100)


def in_place(y):  # beyond bfloat16; the value before is overwritten
    big = (y.detach() * 0 + torch.tensor([3e38, 1.0])).bfloat16()
    keep("before", big)
    big.mul_(4)
    keep("after", big)
    return big


def mixed(x):  # beyond half precision, inside autocast
    with torch.autocast(x.device.type, dtype=HALF):
        return head(x.detach() * BIG)


def root(y):  # its gradient at 0 is infinite
    return (y - y.detach()).sqrt().sum()


for step in range(1, 11):
    optimizer.zero_grad()
    x = torch.rand(4, 3)
    y = net(x)
    loss = masked(y, hidden).pow(2).mean()
    if step == 2:
        logarithm(y)
    elif step == 3:
        exponential(y)
    elif step == 4:
        in_place(y)
    elif step == 5:
        mixed(x * 0 + 1)
    elif step == 6:
        loss = loss + root(y)
    elif step == 7:
        masked(y.detach(), torch.ones(4, 4).bool())  # nothing is left of any row: NaN of infinities
    elif step == 8:
        torch.relu(broken)
    elif step == 9:
        loss = loss * 1e6
        optimizer.param_groups[0]["lr"] = 3e38
    loss.backward()
    if step == 6:
        optimizer.zero_grad()
    if step == 8:
        digest = hashlib.sha256(b"".join(map(raw, [*net.parameters(), torch.get_rng_state()]))).hexdigest()
        pathlib.Path(sys.argv[1]).write_text(digest, encoding="utf-8")
    optimizer.step()
