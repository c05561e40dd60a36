# SPDX-License-Identifier: GPL-3.0-or-later
"""The native module (python/native) and the Python code that replaces it report the same; and a view of a value is not
taken for the value after a write in between."""
import json
import pathlib
import re
import subprocess

import harness
import torches

SETTLED = 7  # steps after which the module does everything that it can
BAD = SETTLED + 2

# Before a script: says which of the two it runs with.
WITH = """
import pathlib, sys
import gradb.native
pathlib.Path(sys.argv[1], "module").write_text(str(gradb.native.module and gradb.native.module.__file__))
"""

# What both halves handle: branches, views, writes in place, passes of all kinds, an operator that raises.
MIXED = """
import torch
from torch.utils.checkpoint import checkpoint
torch.manual_seed(3)

class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(context, gradient):
        return gradient * 2

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 6)
        self.deep = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh())
        self.last = torch.nn.Linear(6, 2)
        self.register_buffer("room", torch.zeros(3, 6))

    def forward(self, x, step):
        x = self.first(x)
        x = torch.relu(x) if step %% 3 else torch.sigmoid(x)
        try:
            torch.cat([x, x.t()] if step == %d else [x, x])
        except RuntimeError:
            pass
        y = x.t().reshape(-1).view(6, 3).t()
        with torch.no_grad():
            self.room.mul_(0.5).add_(y.detach())
            torch.add(self.room, 1, out=self.room)
        parts = torch.chunk(Double.apply(y), 2, dim=1)
        y = torch.cat((parts[1], parts[0]), dim=1)
        y = checkpoint(self.deep, y)
        y = y + self.room
        y += 1
        y[:, 0] = 0
        with torch.autocast(y.device.type, dtype=torch.bfloat16):
            y = self.last(y)
        return y.float()

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for step in range(1, 100):
    optimizer.zero_grad()
    x = torch.full((3, 4), 0.5, requires_grad=True)
    loss = net(x, step).pow(2).mean()
    loss.backward(retain_graph=True)
    loss.backward()
    penalty, = torch.autograd.grad(net.first(x).tanh().sum(), x, create_graph=True)
    penalty.pow(2).sum().backward()
    optimizer.step()
""" % BAD

# A training without custom functions: its passes are watched by hooks of C++, except where the program has hooks.
PLAIN = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(4)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 8)
        self.norm = nn.LayerNorm(8)
        self.three = nn.Linear(8, 24)
        self.last = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 7))

    def forward(self, x, step):
        x = self.table(x)
        q, k, v = self.three(self.norm(x)).chunk(3, dim=-1)
        shares = F.softmax(q @ k.transpose(-2, -1) / 3, dim=-1)
        y = x + shares @ v
        if step >= 16:
            y.register_hook(lambda gradient: gradient * 1)
        if step %% 5 == 0:
            y = y * y.detach().abs().mean()
        return self.last(F.relu(y.contiguous(), inplace=True))

net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
data = torch.randint(7, (6, 5))
for step in range(1, 100):
    for part in data.split(3):
        logits = net(part[:, :-1], step)
        if step == %d:
            logits = logits * 1e30 * 1e30
        flat = logits.reshape(-1, 7)  # what goes into its gradient differs
        loss = (F.cross_entropy(flat, part[:, 1:].reshape(-1)) if step %% 3 else flat.pow(2).mean()) / 2
        loss.backward()
    x = torch.ones(2, 8, requires_grad=True)
    penalty, = torch.autograd.grad(net.last[:2](x).sum(), x, create_graph=True)
    (penalty.pow(2).sum() + (penalty.abs().mean() if step %% 4 == 0 else 0)).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    largest = max(parameter.grad.abs().max() for parameter in net.parameters())
    optimizer.step()
    optimizer.zero_grad(set_to_none=step %% 2 == 0)
""" % BAD

# Functions of an installed package, of which one place in the script runs now this one and now that one.
PACKAGE = """
import torch.nn.functional as F

def first(y):
    return F.mse_loss(y, y.detach() * 0)

def second(y):
    return F.mse_loss(y, y.detach() * 0)

def run(net, step):
    order = (first, second) if step % 2 else (second, first)
    y = net(net.weight)
    sum(function(y) for function in order).backward()
"""

# What the module does below Python, and that nothing of it remains. Says how many passes were known, whether functions
# were hooked inside a step, and what of the functions has changed at the end.
BELOW = """
import json
import torch
import gradb.native, gradb.torch
from gradb.torch import functions
torch.manual_seed(4)
module, functions_known = gradb.native.module, {torch.sin: 1, torch.add: 2, torch.nn.functional.linear: 3}
hashes = [hash(function) for function in functions_known]
known, hook_known = [], module.hook_known

def counted(*args):
    found = hook_known(*args)
    known.append(isinstance(found, module.Pass))
    return found
module.hook_known = counted

def hooked():
    return functions._word(id(torch.nn.functional.linear) + functions._CALL) != 0

inside = []
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
    def forward(self, x):
        inside.append(hooked())
        return self.last(self.first(x).tanh())

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
try:
    for step in range(1, 60):
        loss = net(torch.ones(2, 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
finally:
    same = [hash(function) for function in functions_known] == hashes and torch.sin in functions_known
    left = module.try_node(loss.grad_fn, lambda: None)[0][-1] if gradb.native.looks else 0
    pathlib.Path(sys.argv[1], "found").write_text(json.dumps(
        {"known": sum(known), "inside": any(inside), "hooked": hooked(), "same": same, "left": left, "step": step,
         "loss": loss.item().hex()}))
"""

# Steps that nobody watches: several of each kind that the module handles or leaves to Python.
IDLE = """
import threading
import torch
from torch.utils.data import DataLoader
import gradb.torch
torch.manual_seed(5)

net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
aside = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD([{"params": net[0].parameters(), "lr": 0.02},
                             {"params": net[2].parameters(), "lr": 0.01}], lr=0.01)
other = torch.optim.Adam(aside.parameters())
loader = DataLoader(torch.randn(12, 4), batch_size=3)

def usual(x):
    net(x).pow(2).mean().backward()

def several(x):
    for part in x.split(1):
        (net(part).pow(2).mean() / 3).backward()

def no_scalar(x):
    net(x).pow(2).mean().reshape(1).backward()

def weighted(x):
    net(x).pow(2).mean().backward(torch.tensor(2.0))

def of_many(x):
    net(x).backward(torch.full((3, 2), 0.1))

def not_added(x):
    torch.autograd.grad(net(x).sum(), net[0].weight)
    usual(x)

def second(x):
    aside(x).sum().backward()
    other.step()
    usual(x)

def evaluated(x):
    with torch.no_grad():
        net(x)
    thread = threading.Thread(target=lambda: net(x))
    thread.start()
    thread.join()
    usual(x)

def raising(x):
    for way in (lambda: net(x).pow(2).mean().backward(torch.ones(5)), lambda: net(x[:, :2])):
        try:
            way()
        except RuntimeError:
            pass
    usual(x)

def told(x):
    gradb.torch.log("norm", x.norm())
    usual(x)

def negated(x):  # it lies negated in memory
    y = net(x).pow(2).mean()
    torch.complex(y, y).conj().imag.backward()

def one_of_many(x):
    net(x).pow(2).mean(0)[1].backward()

def not_training(x):
    net.eval()
    usual(x)
    net.train()

KINDS = (usual, several, no_scalar, weighted, of_many, not_added, second, evaluated, raising, told, negated,
         one_of_many, not_training)

def closure():
    net.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    return loss

for turn in range(100):
    for kind in KINDS:
        for x in loader:
            optimizer.zero_grad()
            kind(x)
            optimizer.step()
    optimizer.param_groups[1]["lr"] *= 0.5
    optimizer.step(closure)
    optimizer.param_groups[0]["lr"] = torch.tensor(0.02)
    usual(x)
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.02
    if turn == 2:
        gradb.torch.log("loss", 7.0)
"""

# From step 33 on the gradients are not zeroed; before, they are zeroed in three ways.
FORGOTTEN = """
import torch
torch.manual_seed(2)
net = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
for step in range(1, 200):
    if step <= 32:
        if step in (11, 22):
            for parameter in net.parameters():
                parameter.grad.data.numpy()[:] = 0
        else:
            optimizer.zero_grad(set_to_none=step % 2 == 0)
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
"""

# The same from step 41 on; before, the gradients are dropped.
FORGOTTEN_LATE = """
import torch
net = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
for step in range(1, 200):
    if step <= 40:
        optimizer.zero_grad(set_to_none=True)
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
"""

# Two optimizers that share a training in many ways, some of them mistakes: FOUND says which. What is found for each:
# whose gradients, and in which step.
OPTIMIZERS = """
import gc, json
import torch
from torch import nn
import gradb.torch
torch.manual_seed(7)
TURNS = 12
x = torch.randn(5, 3)
kept = []

def keep(optimizer):
    kept.append(optimizer)
    return optimizer

def make():
    net, other = nn.Linear(3, 3), nn.Linear(3, 2)
    first = torch.optim.SGD(net.parameters(), lr=0.001)
    return net, other, keep(first), keep(torch.optim.Adam(other.parameters(), lr=0.001))

def loss_of(net, *more):
    return (nn.Sequential(net, *more)(x).pow(2) + 1).sum()

def gan(critic=True, generator=True, until=0, otherwise=lambda parameters: None):
    make_points, judge, for_points, for_judge = make()
    for turn in range(TURNS):
        if critic or turn < until:
            for_judge.zero_grad()
        judge(make_points(x).detach()).sum().backward()
        for_judge.step()
        if generator or turn < until:
            for_points.zero_grad()
        else:
            otherwise(make_points.parameters())
        judge(make_points(x)).sum().backward()  # adds to the gradients of the judge, too
        for_points.step()

def not_detached():
    make_points, judge, for_points, for_judge = make()
    for turn in range(TURNS):
        for_judge.zero_grad()
        judge(make_points(x)).sum().backward(retain_graph=True)
        for_judge.step()
        for_points.zero_grad()
        judge(make_points(x)).sum().backward()
        for_points.step()

def set_back_by(way):
    net, other, first, second = make()
    for turn in range(TURNS):
        first.zero_grad()
        loss_of(net).backward()
        first.step()
        way(other, second)
        loss_of(other).backward()
        second.step()

def each(function):
    return lambda other, second: [function(p) for p in other.parameters() if p.grad is not None]

def no_gradient(parameter):
    parameter.grad = None

def new_gradient(parameter):
    parameter.grad = parameter.grad * 0.5

def all_by_numpy(parameters):
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.data.numpy()[:] = 0

def by_foreach(other, second):
    gradients = [parameter.grad for parameter in other.parameters() if parameter.grad is not None]
    if gradients:
        torch._foreach_zero_(gradients)

def written_after_the_pass():
    net, other, first, second = make()
    for turn in range(TURNS):
        first.zero_grad()
        (loss_of(net) + loss_of(other)).backward()
        for parameter, gradient in zip(other.parameters(), torch.autograd.grad(loss_of(other), other.parameters())):
            parameter.grad = gradient
        first.step()
        second.step()

def accumulated(set_back=True):
    net, other, first, second = make()
    for turn in range(TURNS):
        for _ in range(3):
            loss_of(net).backward()
        first.step()
        first.zero_grad()
        loss_of(other).backward()
        if turn % 4 == 3:
            second.step()
            if set_back:
                other.zero_grad()

def rare(set_back=True):
    net, other, first, second = make()
    for turn in range(TURNS):
        first.zero_grad()
        loss_of(net).backward()
        first.step()
        if turn % 5 == 0:
            if set_back:
                second.zero_grad()
            loss_of(other).backward()
            second.step()

def once():
    net, other, first, second = make()
    for turn in range(TURNS):
        first.zero_grad()
        (loss_of(net) + loss_of(other)).backward()
        first.step()
        if turn == 3:
            second.step()

def shared():
    net, other, first, _ = make()
    second = keep(torch.optim.Adam([*net.parameters(), *other.parameters()], lr=0.001))
    for turn in range(TURNS):
        first.zero_grad()
        second.zero_grad()
        loss_of(net).backward()
        first.step()
        loss_of(net, other).backward()
        second.step()

def closure(set_back=True):
    net, other, first, _ = make()
    second = keep(torch.optim.LBFGS(other.parameters(), lr=0.01, max_iter=3))
    def again():
        if set_back:
            second.zero_grad()
        loss = loss_of(other)
        loss.backward()
        return loss
    for turn in range(TURNS):
        first.zero_grad()
        loss_of(net).backward()
        first.step()
        second.step(again)

def scaled():
    net, other, first, second = make()
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
    for turn in range(TURNS):
        first.zero_grad()
        scaler.scale(loss_of(net)).backward()
        scaler.step(first)
        second.zero_grad()
        scaler.scale(loss_of(other) * (float("inf") if turn % 3 == 1 else 1)).backward()
        scaler.step(second)
        scaler.update()

def others_parameter(until=TURNS):
    net, other, first, second = make()
    for turn in range(TURNS):
        first.zero_grad()
        loss_of(net).backward()
        first.step()
        if turn < until:
            second.zero_grad()
        loss_of(other).backward()
        second.step()
        if turn == 0:  # the first one is not stepped any more
            del second.param_groups[0]["params"][0]

def gone():
    net, other, first, _ = make()
    for turn in range(TURNS):
        first.zero_grad()
        loss_of(net).backward()
        first.step()
        second = torch.optim.Adam(other.parameters(), lr=0.001)
        for _ in range(2):
            second.zero_grad()
            loss_of(other).backward()
            second.step()
        loss_of(other).backward()

def many(count=20):
    nets = [nn.Linear(3, 2) for _ in range(count)]
    optimizers = [keep(torch.optim.SGD(net.parameters(), lr=0.001)) for net in nets]
    for turn in range(TURNS):
        for net, optimizer in zip(nets, optimizers):
            if optimizer is optimizers[0]:
                optimizer.zero_grad()
            loss_of(net).backward()
            optimizer.step()

kinds = {
    "gan": gan, "not detached": not_detached, "accumulated": accumulated, "rare": rare, "once": once,
    "shared": shared, "closure": closure, "another parameter": others_parameter, "gone": gone,
    "written after the pass": written_after_the_pass,
    "generator": lambda: gan(generator=False), "critic": lambda: gan(critic=False),
    "both": lambda: gan(False, False), "later": lambda: gan(generator=False, until=6),
    "by numpy": lambda: gan(generator=False, otherwise=all_by_numpy),
    "later by numpy": lambda: gan(generator=False, until=6, otherwise=all_by_numpy),
    "another parameter, not set back": lambda: others_parameter(3),
    "closure, not set back": lambda: closure(False), "accumulated, not set back": lambda: accumulated(False),
    "rare, not set back": lambda: rare(False), "many, not set back": many}
ways = {
    "zero_grad": lambda other, second: second.zero_grad(set_to_none=False),
    "of the module": lambda other, second: other.zero_grad(),
    "foreach": by_foreach, "None": each(no_gradient), "zero_": each(lambda p: p.grad.zero_()),
    "numpy": lambda other, second: all_by_numpy(other.parameters()), "by hand": each(new_gradient), "in place": each(lambda p: p.grad.mul_(0.5)),
    "nobody": lambda *_: None}
kinds.update({"set back by " + name: lambda way=way: set_back_by(way) for name, way in ways.items()})
if hasattr(torch.amp, "GradScaler"):
    kinds["scaled"] = scaled
found = {}
make()  # which attaches
kept.clear()
agent = gradb.torch._agent
for name, kind in kinds.items():
    before = agent.steps.step
    kind()
    found[name] = [[clearing.whose, clearing.since - before + 1] for clearing in agent.clearing
                   if clearing.since and clearing.optimizer() is not None]
    kept.clear()
    gc.collect()
pathlib.Path(sys.argv[1], "found").write_text(json.dumps(found))
"""

# Nothing is found in the others. The steps of the judge's optimizer, or of net's, are those of the training.
FOUND = {
    "generator": [["SGD", 3]], "another parameter, not set back": [["Adam", 6]], "critic": [["", 2]], "both": [["", 2], ["SGD", 3]], "later": [["SGD", 9]],
    "closure, not set back": [["LBFGS", 3]], "accumulated, not set back": [["Adam", 9]],
    "rare, not set back": [["Adam", 7]], "set back by nobody": [["Adam", 3]],
    "many, not set back": [["SGD_%d" % number, 3] for number in range(1, 16)]}

# What the module finds about tensors: whether it is right, and which certainly have no gradient.
INSIDE = """
import json
import torch
import gradb.native, gradb.torch

class Tensor(torch.Tensor):
    pass

parameter = torch.nn.Parameter
kinds = {"parameter": parameter(torch.zeros(2)), "set": parameter(torch.zeros(3)), "unset": parameter(torch.zeros(3)),
         "tensor": torch.zeros(()), "leaf": torch.zeros(2, requires_grad=True),
         "subclass": torch.zeros(2).as_subclass(Tensor), "of modules": torch.nn.Linear(2, 3).weight}
torch.optim.SGD([kinds["parameter"]], lr=0.1)  # which attaches
for name in ("set", "unset", "leaf"):
    kinds[name].sum().backward()
kinds["unset"].grad = None
looks = gradb.native.module.looks
right = {name: looks(tensor)[0] == tensor._cdata for name, tensor in kinds.items()}
known = {name: looks(tensor)[1] for name, tensor in kinds.items()}
pathlib.Path(sys.argv[1], "found").write_text(json.dumps([right, known]))
"""

# A value with several views, and others that are written in between, in ways that PyTorch counts and in others: large
# numbers in step BAD.
VIEWS = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3, 4))
    def still(self):
        return (self.weight * 3).t().t().view(12)
    def in_place(self, bad):
        x = self.weight.detach() * 1
        y = x.t()
        x.add_(bad)
        return y.t().view(12)
    def by_data(self, bad):
        x = self.weight.detach() * 1
        y = x.t()
        x.data.add_(bad)
        return y.t().view(12)
    def by_numpy(self, bad):
        x = self.weight.detach() * 1
        y = x.t()
        x.numpy()[1, 1] += bad
        return y.t().view(12)
    def as_told(self, bad):
        x = self.weight.detach() * 1
        y = x.t()
        torch.nn.functional.threshold(x, bad, bad, inplace=True)
        return y.t().view(12)
    def changing(self, step):
        x = self.weight.detach() * 1
        kinds = (x, x.t().clone().t(), x.double(), torch._neg_view(x), x[1:])
        return kinds[step %% 5].unsqueeze(0).sum()
    def forward(self, step):
        bad = 1e6 if step >= %d else 0.0
        x = self.still()
        written = self.in_place(bad) + self.by_data(bad) + self.by_numpy(bad) + self.as_told(bad)
        return x + (written + self.changing(step)) * 0

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 100):
    optimizer.zero_grad()
    net(step).sum().backward()
    optimizer.step()
""" % BAD

# Nodes of `still` and of its backward pass that have the same elements.
HANDED_ON = (("net/t", "net/mul"), ("net/t_1", "net/mul"), ("net/view", "net/mul"),
             ("backward/net/t", "backward/net/view"), ("backward/net/view", "backward/net/add_4"))
# The view before the write, the write where it is one, and the views after it.
WRITTEN = {"in place": ("net/t_2", "net/add_", "net/t_3", "net/view_1"),
           "inplace=True": ("net/t_8", "net/_threshold", "net/t_9", "net/view_4"),
           ".data": ("net/t_4", "net/t_5", "net/view_2"), "numpy": ("net/t_6", "net/t_7", "net/view_3")}

OWN = ("pid",)  # members that differ in each run
UNORDERED = ("connected", "log")  # records: the address differs, and the program's output comes at any time


def without_own(value):
    """A record without what differs in each run."""
    if isinstance(value, dict):
        return {name: without_own(member) for name, member in value.items() if name not in OWN}
    return [without_own(member) for member in value] if isinstance(value, list) else value


class Native(torches.Folder):
    def setUp(self):
        super().setUp()
        torches.need_native(self)

    def script(self, text):
        """The path of a script. On a device, it cannot write through NumPy."""
        if torches.on_device(self):
            text = text.replace(".data.numpy()[:] = 0", ".data.zero_()")
        return self.write("script.py", WITH + text)

    def answers(self, native, script, *commands):
        """gradb's records of the commands, up to the last "info hits", of a run with the module or without."""
        path = self.script(script)
        args = ["-nx", "--json", "--batch", "--listen", "127.0.0.1:0",
                *harness.typed("set start-timeout 0", *commands, "kill")]
        done = harness.run_gradb(*args, "run", "--", *torches.warm(self.python), path, self.folder, cwd=self.folder,
                                 env=torches.environment(
                                     GRADB_NATIVE=native if native == "stable" else str(int(native))),
                                 timeout=4 * harness.DEADLINE)
        module = (self.folder / "module").read_text()
        self.assertEqual(module != "None", bool(native), module)
        records = harness.records(done, mixed=True)
        last = max(number for number, record in enumerate(records) if record["type"] == "hits")  # then it is killed
        return [without_own(record) for record in records[:last + 1] if record["type"] not in UNORDERED]


@torches.both
class Same(Native):
    maxDiff = 4000

    def test_a_session_is_the_same_with_the_module_and_without(self):
        commands = ["step 2", "info nodes -a", "trace -exact TO on all", "trace -exact 'max > 0.5' on all",
                    f"step {SETTLED - 1}", *["next"] * 12, "break net/last/linear", "continue", "stats net/last/linear",
                    "finish phase", *["next"] * 12, "delete 3", "finish phase", "step 2", "info nodes -a", "info graph",
                    "print net/room", "info node backward/net/last/linear", "info hits -a"]
        records, stable, plain = (self.answers(which, MIXED, *commands) for which in (True, "stable", False))
        self.assertEqual(records, stable)
        self.assertEqual(records, plain)
        self.assertEqual([record for record in records if record["type"] == "error"], [])
        self.assertIn("exception", [record.get("reason") for record in records])
        late = {hit["node"] for hit in records[-1]["hits"] if hit["step"] >= SETTLED}
        self.assertLessEqual({"net/add_", "backward/net/last/linear", "backward/net/last/linear.2", "net/room"}, late)


    def test_a_session_with_known_passes_is_the_same(self):
        commands = ["step 2", "info nodes -a", "trace -exact TO on all", "trace -exact 'max > 0.01' on all",
                    f"step {SETTLED - 1}", *["next"] * 8, "break backward/net/last/0/linear", "continue",
                    "stats backward/net/last/0/linear", "print backward/net/last/0/linear",
                    "print net/last/3/weight.grad", *["next"] * 12, "delete 3",
                    *["step", "info node backward/reshape", "info node net/norm/weight.grad"] * 7, "step 9",
                    "info nodes -a", "info graph", "info node backward/net/last/0/linear",
                    "info node net/table/weight.grad", "info hits -a"]
        records, stable, plain = (self.answers(which, PLAIN, *commands) for which in (True, "stable", False))
        self.assertEqual(records, stable)
        self.assertEqual(records, plain)
        late = {hit["node"] for hit in records[-1]["hits"] if hit["step"] >= SETTLED}
        self.assertLessEqual({"net/last/3/linear", "backward/net/last/0/linear", "net/last/0/weight.grad"}, late)


    def test_two_functions_of_a_package_at_one_place(self):
        (self.folder / "site-packages").mkdir()
        self.write("site-packages/pack.py", PACKAGE)
        script = ("import torch\nsys.path.insert(0, sys.argv[1] + '/site-packages')\nimport pack\n"
                  "net = torch.nn.Linear(3, 2)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
                  "for step in range(100):\n    optimizer.zero_grad()\n    pack.run(net, step)\n    optimizer.step()\n")
        commands = ["trace -exact 'max > -1e30' on all", f"step {BAD}", "info nodes -a", "info hits -a"]
        records, stable, plain = (self.answers(which, script, *commands) for which in (True, "stable", False))
        self.assertEqual(records, stable)
        self.assertEqual(records, plain)
        late = {hit["node"] for hit in records[-1]["hits"] if hit["step"] == BAD}
        self.assertLessEqual({"pack/first/mse_loss", "pack/second/mse_loss"}, late)


@torches.newest
class Below(Native):
    """What is hooked below Python is so only while it is watched, and only where it can be told what is there."""

    def found(self, *commands, **env):
        """What the script has found, and gradb's output."""
        done = self.gradb([self.python, self.script(BELOW), self.folder], *commands, **env)
        return json.loads((self.folder / "found").read_text()), done.stdout + done.stderr

    def test_nothing_remains(self):
        plain, _ = self.found("continue", GRADB_NATIVE="stable")
        self.assertEqual((plain["known"], plain["inside"]), (0, False))
        found, text = self.found("trace -exact TO on all", "step 30", "delete", "continue")
        self.assertGreater(found["known"], 20, text)
        self.assertTrue(found["inside"], text)
        for way in (plain, found):
            self.assertEqual((way["hooked"], way["same"], way["left"], way["step"]), (False, True, 0, 59))
        self.assertEqual(found["loss"], plain["loss"])

    def test_the_training_ends_inside_a_known_pass(self):
        found, text = self.found("trace -exact TO on all", "step 20", "break backward/net/last/linear", "continue",
                                 "kill training")
        self.assertGreater(found["known"], 5, text)
        self.assertEqual((found["left"], found["step"]), (0, 21), text)
        self.assertIn("The training ends at step 21", text)

    def test_where_something_is_missing_it_watches_as_ever(self):
        lie = "import gradb.torch.nodes as nodes\nnodes._HEADER = 'nowhere'\n"
        path = self.write("script.py", WITH + lie + BELOW.replace("if gradb.native.looks", "if False"))
        done = self.gradb([self.python, path, self.folder], "trace -exact TO on all", "step 30", "delete", "continue")
        found = json.loads((self.folder / "found").read_text())
        self.assertEqual((found["known"], found["step"]), (0, 59), done.stdout + done.stderr)


@torches.both
class Idle(Native):
    """Steps that nobody watches pass without Python, with the same results."""
    STEPS = 3 * 54 + 40  # turns of the script, which reports its loss itself in the last one
    SCALARS = ("loss", "loss_Adam", "lr", "lr_1", "epoch", "batch", "micro_batch", "norm")

    def test_steps_are_told_the_same(self):
        commands = ["step", "step 30", "watch -step 'batch > 3 && lr_1 < 0.01'", "step 20", "step 100", "delete",
                    "finish phase", "finish phase", "finish phase", f"step {self.STEPS - 60}", "next 2", "step 3",
                    *[f"info history {name} -n 250 -a" for name in self.SCALARS], "info graph", "info hits -a"]
        records, plain = (self.answers(which, IDLE, *commands) for which in (True, False))
        self.assertEqual(records, plain)
        self.assertEqual([record for record in records if record["type"] == "error"], [])

    def test_gradients_that_nobody_sets_back(self):
        found = []
        for native in (True, False):
            records = self.answers(native, FORGOTTEN, "step 60", "info timing", "agent training net/weight",
                                   "info hits -a")
            times = next(record["last"] for record in records if record["type"] == "timing")
            self.assertLess(0, min(times["forward"], times["backward"], times["optimizer"]), times)
            self.assertNotIn("data", times)
            found.append([record for record in records if record["type"] != "timing"])
        self.assertEqual(*found)
        self.assertIn('"since": 33', json.dumps(found[0]))

    def test_what_is_always_thrown_away_is_missed_a_step_late_at_most(self):
        python, = self.sinces(False)
        native, = self.sinces(True)
        self.assertEqual(python, 41)
        self.assertIn(native, (41, 42))

    def sinces(self, native):
        """The step since which the gradients of FORGOTTEN_LATE are said to be added up."""
        records = self.answers(native, FORGOTTEN_LATE, "step 60", "agent training net/weight", "info hits -a")
        return [int(number) for number in re.findall(r'"since\\*": (\d+)', json.dumps(records))]


@torches.both
class Optimizers(Native):
    maxDiff = 4000

    def test_what_nobody_sets_back_of_several_optimizers(self):
        path = self.script(OPTIMIZERS)
        for native in (True, False):
            with self.subTest(native=native):
                done = self.gradb([self.python, path, self.folder], "continue", GRADB_NATIVE="1" if native else "0")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual((self.folder / "module").read_text() != "None", native)
                found = json.loads((self.folder / "found").read_text())
                self.assertEqual({name: what for name, what in found.items() if what}, FOUND)
                self.assertLess(25, len(found))


@torches.both
class Beside(Native):
    """The module is found next to libgradb."""

    def module(self, **env):
        """The module's path, of the package in the source."""
        look = "from gradb import native; print(native.module and native.module.__file__)"
        done = subprocess.run([self.python, "-c", look], env=torches.environment(PYTHONPATH=str(torches.PACKAGE), **env),
                              capture_output=True, text=True, timeout=harness.DEADLINE, check=True)
        return done.stdout.strip()

    def test_where_the_loader_alone_knows_the_library(self):
        library, module = self.folder / "libgradb.so.1", self.folder / "gradb" / torches.NATIVE.name
        built = pathlib.Path(torches.library())
        library.symlink_to(built)
        module.parent.mkdir()
        module.symlink_to(built.parents[2] / "python" / "native" / torches.NATIVE.name)
        self.assertEqual(self.module(LD_LIBRARY_PATH=str(self.folder), GRADB_LIBRARY=""), str(module))
        self.assertEqual(self.module(LD_LIBRARY_PATH=str(self.folder / "none"), GRADB_LIBRARY=""), "None")
        self.assertEqual(self.module(LD_LIBRARY_PATH="", GRADB_LIBRARY=str(library)), str(module))


@torches.both
class Inside(Native):
    """Where libtorch has no function for it, the module reads an address where it has found it to be."""

    def test_tensors_of_all_kinds_are_found(self):
        path = self.write("script.py", WITH + INSIDE)
        done = self.gradb([self.python, path, self.folder], "continue")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        right, known = json.loads((self.folder / "found").read_text())
        self.assertEqual({name: is_right for name, is_right in right.items() if not is_right}, {})
        self.assertEqual(known, {"parameter": True, "set": False, "unset": True, "tensor": True, "leaf": False,
                                 "subclass": False, "of modules": True})


@torches.both
class Views(Native):
    def test_a_view_is_not_taken_for_what_was_written_to_since(self):
        found = []
        for native in (True, False):
            answers = self.answers(native, VIEWS, "step 1", "trace -exact 'max > -1e30 && norm >= 0' on all",
                                   f"step {BAD - 1}", "info hits -a")
            found.append(answers[-1]["hits"])
        self.assertEqual(*found)
        params = {(hit["step"], hit["node"]): hit["params"] for hit in found[0]}
        self.assertLessEqual({(step, "net/unsqueeze") for step in range(2, BAD + 1)}, set(params))
        for one, other in HANDED_ON:
            self.assertEqual(params[BAD, one], params[BAD, other], (one, other))
        large = {node for (step, node), given in params.items() if step == BAD and given[0]["actual"] > 1e5}
        for way, (before, *after) in WRITTEN.items():
            if way == "numpy" and torches.on_device(self):
                continue
            with self.subTest(way=way):
                self.assertNotIn(before, large)
                self.assertLessEqual(set(after), large)


if __name__ == "__main__":
    harness.main()
