# SPDX-License-Identifier: GPL-3.0-or-later
"""While steps are idle our wrappers are out of use (Agent.take_back): the program finds what it would find without
gradb, and the wrappers are back when anything is asked."""
import json
import subprocess

import harness
import torches
from test_control import Control

STEPS = 100  # of the script
LATE = 40    # nobody has watched for a long time then

# A model whose first layer waits in step LATE and announces that; a loss that is a module.
WAITS = """
import pathlib, sys, time
import torch
begun, go_on = map(pathlib.Path, sys.argv[1:])
step = 0

class Waits(torch.nn.Module):
    def forward(self, x):
        if step == %d:
            begun.touch()
            while not go_on.exists():
                time.sleep(0.01)
        return x

net = torch.nn.Sequential(torch.nn.Sequential(Waits(), torch.nn.Linear(3, 4)), torch.nn.Tanh())
criterion = torch.nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, %d):
    optimizer.zero_grad()
    criterion(net(torch.ones(2, 3)), torch.zeros(2, 4)).backward()
    optimizer.step()
""" % (LATE, STEPS)

# What a program can find out about its classes, in step LATE and at its end; "ours": the classes of gradb's that it
# meets.
FINDS = """
import json, pickle, sys
import torch, torch.fx
Module, kinds = torch.nn.Module, (torch.nn.Module, torch.nn.Linear, torch.nn.Conv2d)

class Net(Module):
    def __init__(self):
        super().__init__()
        self.first, self.parts = torch.nn.Linear(3, 4), torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    def forward(self, x):
        return self.parts(self.first(x))

net, late = Net(), torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Tanh())
optimizer = torch.optim.SGD([*net.parameters(), *late.parameters()], lr=0.1)
found = {}

def find(name):
    found[name] = {
        "ours": [kind.__name__ for kind in kinds if "gradb" in str(getattr(kind.__call__, "__module__", kind.__call__))],
        "entrances": [kind.__name__ for kind in (Net, torch.nn.Sequential, *kinds[1:]) if "__call__" in vars(kind)],
        "copied": all(pickle.loads(pickle.dumps(vars(kind)["__call__"])) is Module.__call__
                      for kind in (Net, torch.nn.Sequential) if "__call__" in vars(kind)),
        "traced": torch.fx.symbolic_trace(net).code,
        "scripted": torch.jit.script(net).code,
        "bound": net.__call__(torch.ones(1, 3)).tolist() == net(torch.ones(1, 3)).tolist()}

class Aside(Module):
    def forward(self, x):
        return x.exp()

aside = Aside()
for step in range(1, %d):
    optimizer.zero_grad()
    if step in (%d, 98):
        find("idle at " + str(step))
    x = net(torch.ones(2, 3))
    if step > 60:  # nobody has heard of it before
        net(torch.ones(2, 3)).sum().backward()
        x = late(x.detach())
    if step == 70:
        with torch.no_grad():
            aside.eval()(x)
    x.pow(2).mean().backward()
    optimizer.step()
if "_gradb_run.torch" in sys.modules:
    sys.modules["_gradb_run.torch"].detach()
find("end")
json.dump(found, open(sys.argv[1], "w"))
""" % (STEPS, LATE)

# After some steps no module is called any more.
PLAIN = """
import json, sys
import torch
net = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
found = set()
for step in range(1, 400):
    optimizer.zero_grad()
    x = torch.ones(2, 3)
    (net(x) if step < 20 else x @ net.weight.t()).sum().backward()
    optimizer.step()
    found.add(torch.nn.Module.__call__.__module__.split(".")[0])
json.dump([sorted(found), torch.nn.Module.__call__.__module__.split(".")[0]], open(sys.argv[1], "w"))
"""

# It compiles after a long idle time, and counts the compilations.
COMPILES = """
import json, sys
import torch
count = 0

def backend(module, _inputs):
    global count
    count += 1
    return module.forward

net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())
compiled = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
optimizer = torch.optim.SGD([*net.parameters(), *compiled.parameters()], lr=0.1)
for step in range(1, 300):
    if step == 50:
        compiled = torch.compile(compiled, backend=backend)
    optimizer.zero_grad()
    compiled(net(torch.ones(2, 3))).sum().backward()
    optimizer.step()
json.dump(count, open(sys.argv[1], "w"))
"""

# A compiler that keeps the function that calls a module, like that of 2.1.
KEEPS = """
import json, sys
import torch
torch.compile = lambda module: module.__call__
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
run, found = net, []
for step in range(1, 100):
    if step == 50:
        found.append(type(type(net).__call__).__name__)
        run = torch.compile(net)
        found.append(type(run.__func__).__name__)
    optimizer.zero_grad()
    run(torch.ones(2, 3)).sum().backward()
    optimizer.step()
json.dump(found, open(sys.argv[1], "w"))
"""


class Handed(Control):
    def setUp(self):
        super().setUp()
        torches.need_native(self)

    def found(self, script, *commands, **env):
        """What the script has written under gradb."""
        path = self.folder / "found"
        done = self.gradb([self.python, self.write("script.py", script), str(path)], *commands, **env)
        self.assertEqual(done.stderr, "")
        return json.loads(path.read_text()), done.stdout


@torches.both
class Idle(Handed):
    def test_an_interrupt_is_heard_inside_of_the_forward_pass(self):
        gradb = self.interrupted(WAITS, f"the forward phase of step {LATE}")
        gradb.expect(rf"^Interrupted, step {LATE}, forward, net/0/1/linear \(")
        gradb.run("next", "net/1/tanh ")
        gradb.run("next", "zeros ")
        gradb.run("next", "criterion/mse_loss ")
        gradb.run("finish phase", "Stopped at the end of the forward phase")

    def bare(self, script):
        """What it writes without gradb."""
        path = self.folder / "bare"
        subprocess.run([self.python, self.write("script.py", script), path], check=True, cwd=self.folder,
                       env=torches.environment(GRADB_DISABLE="1"), timeout=2 * harness.DEADLINE)
        return json.loads(path.read_text())

    def test_the_program_finds_what_it_would_find_without_us(self):
        expected = self.bare(FINDS)
        found, _ = self.found(FINDS, "step 3", "continue")
        entrances = [found[f"idle at {step}"].pop("entrances") for step in (LATE, 98)]
        self.assertEqual(entrances, [["Net"], ["Net", "Sequential"]])  # that of `late`
        self.assertEqual([expected[f"idle at {step}"].pop("entrances") for step in (LATE, 98)], [[], []])
        self.assertEqual(found, expected)
        self.assertEqual(found["end"]["ours"], [])

    def test_a_model_that_was_not_there_before_is_heard_of(self):
        done = self.gradb([self.python, self.write("script.py", FINDS), "found"], "step 80", "tbreak aside/exp",
                          "tbreak late/1/tanh", "continue", "info nodes /aside|late.*/", "kill")
        self.assertRegex(done.stdout, r"\nTemporary breakpoint 2, step 81, forward \[2/2\], late/1/tanh \(")

    def test_nothing_is_waited_for_that_does_not_come(self):
        found, _ = self.found(PLAIN, "step 3", "continue")
        self.assertEqual(found, [["_gradb_run", "torch"], "_gradb_run"])

    def test_what_is_compiled_stays_so(self):
        torches.need_compile(self)
        found, _ = self.found(COMPILES, "step 3", "step 100", "next 3", "step 100", "step", "next 3", "continue")
        self.assertEqual(found, self.bare(COMPILES))

    def test_what_a_compiler_keeps_is_a_function(self):
        found, _ = self.found(KEEPS, "step 3", "continue")
        self.assertEqual(found, ["Entrance", "function"])


if __name__ == "__main__":
    harness.main()
