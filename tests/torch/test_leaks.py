# SPDX-License-Identifier: GPL-3.0-or-later
"""A long training under the agent keeps nothing from step to step: no objects, and no references to those that exist.
"""
import json
import re

import harness
import test_native
import torches

STEPS = 60  # steps per stretch: nobody watches, exact watchpoints, next, operators that raise
EARLY, LATE = 25, 55  # steps of each stretch at whose end the objects are counted
NODES = 130  # more than a step has
# What may appear in these steps without being kept by PyTorch itself: one per step would be more.
FEW = (LATE - EARLY) * 2 // 3
MANY = {"blocks": 12 * (LATE - EARLY), "references to None": 3 * (LATE - EARLY), "bytes": 16 << 20}

# For objects that stay, such as None and the agent's nodes, the references count.
COUNTED = test_native.MIXED[:test_native.MIXED.index("net = Net()")] + """
import gc, json, os, sys
EARLY, LATE, STEPS, BAD = %d, %d, %d, %d

def count():
    gc.collect()
    ours = [thing for thing in gc.get_objects() if "gradb" in str(type(thing).__module__)]
    found = {"blocks": sys.getallocatedblocks()}
    for name in sorted({type(thing).__name__ for thing in ours}):
        those = [thing for thing in ours if type(thing).__name__ == name]
        found[name] = len(those)
        found["references to " + name] = sum(map(sys.getrefcount, those))
    for thing in (None, True, False, net, net.first.weight, optimizer, torch.Tensor, torch.float32):
        found["references to %%.12s" %% (thing,)] = sys.getrefcount(thing)
    with open("/proc/self/statm") as file:
        found["bytes"] = int(file.read().split()[1]) * 4096
    with open(sys.argv[1] + "/counts", "a") as file:
        print(json.dumps(found), file=file)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for turn in range(4 * STEPS):
    optimizer.zero_grad()
    x = torch.full((3, 4), 0.5, requires_grad=True)
    loss = net(x, BAD if turn >= 3 * STEPS else 1).pow(2).mean()
    loss.backward(retain_graph=True)
    loss.backward()
    penalty, = torch.autograd.grad(net.first(x).tanh().sum(), x, create_graph=True)
    penalty.pow(2).sum().backward()
    if turn > 0:
        other.step()
    optimizer.step()
    other = torch.optim.SGD(net.last.parameters(), lr=0.0)
    del x, loss, penalty
    if turn == 0:
        count()  # itself makes something, the first time
        os.remove(sys.argv[1] + "/counts")
    if turn %% STEPS in (EARLY, LATE):
        count()
""" % (EARLY, LATE, STEPS, test_native.BAD)

# Values of 4 MiB that the program drops at once: how many of them exist at a time.
DROPPED = """
import weakref
import torch
weight = torch.nn.Parameter(torch.full((1 << 20,), 1e-3))
optimizer = torch.optim.SGD([weight], lr=0.01)
for step in range(2):
    made, most = [], 0
    x = torch.ones(1 << 20)
    with torch.no_grad():
        for turn in range(40):
            x = x * 0.5
            made.append(weakref.ref(x))
            most = max(most, sum(one() is not None for one in made))
    (weight * x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    print("at a time", most, flush=True)
"""


@torches.both
class Leaks(torches.Folder):
    def test_the_first_step_keeps_little(self):
        """New nodes wait to be published together, and their values with them."""
        for commands in ((), ("watch TO on all",)):
            done = self.gradb([self.python, self.write("dropped.py", DROPPED)], *commands, "continue", "info log -a")
            first, second = map(int, re.findall(r"at a time (\d+)", done.stdout))
            self.assertLessEqual(first, 6, done.stdout)  # 16 MiB, and what the program itself holds
            self.assertLessEqual(second, 2, done.stdout)

    def test_steps_hold_nothing(self):
        done = self.gradb([self.python, self.write("train.py", COUNTED), self.folder],
                          f"step {STEPS}", "trace -exact TO on all", "trace -exact 'max > 1e30' on all",
                          f"step {STEPS}", "delete", "next 5", f"next {STEPS * NODES}", "trace -exact TO on all",
                          *["continue"] * STEPS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("net/cat raised RuntimeError"), STEPS, done.stdout)
        counts = [json.loads(line) for line in (self.folder / "counts").read_text().splitlines()]
        for stretch, (early, late) in enumerate(zip(counts[::2], counts[1::2], strict=True)):
            more = {what: late[what] - early.get(what, 0) for what in late}
            with self.subTest(stretch=stretch):
                self.assertEqual({what: n for what, n in more.items() if n > MANY.get(what, FEW)}, {})


if __name__ == "__main__":
    harness.main()
