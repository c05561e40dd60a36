# SPDX-License-Identifier: GPL-3.0-or-later
"""Control of a PyTorch training: where it stops, what a step is, how it ends."""
import os
import re
import signal
import subprocess

import harness
import torches
from terminal import Terminal

BREAKS = """\
Breakpoint 1 at net/fc2/linear (pending: there is no node 'net/fc2/linear')
Temporary breakpoint 2 at net/fc1/weight.grad (pending: there is no node 'net/fc1/weight.grad')
Breakpoint 3 at backward/net/fc2/linear (pending: there is no node 'backward/net/fc2/linear')
Breakpoint 4 at optimizer/SGD/net/out/weight (pending: there is no node 'optimizer/SGD/net/out/weight')
Continuing.
Breakpoint 1, step 1, forward, net/fc2/linear (linear)
mlp.py:#\t        x = torch.relu(self.fc2(x))
Continuing.
Breakpoint 3, step 1, backward, backward/net/fc2/linear (AddmmBackward0)
mlp.py:#\t        x = torch.relu(self.fc2(x))
Continuing.
Temporary breakpoint 2, step 1, backward, net/fc1/weight.grad (Gradient)
Continuing.
Breakpoint 4, step 1, optimizer, optimizer/SGD/net/out/weight (SGD)
mlp.py:#\t        optimizer.step()
Continuing.
Breakpoint 1, step 2, forward, net/fc2/linear (linear)
mlp.py:#\t        x = torch.relu(self.fc2(x))
"""

MOVES = """\
Stopped at the end of step 2.
lr = 0.05, loss = #
step 3, forward, net/out/linear (linear)
mlp.py:#\t        return self.out(x)
Stopped at the end of the forward phase, step 3, main/cross_entropy (cross_entropy)
mlp.py:#\t            loss = F.cross_entropy(output, label[rows])
Stopped at the end of the backward phase, step 3, net/fc1/weight.grad (Gradient)
step 3, optimizer, optimizer/SGD/net/fc1/bias (SGD)
mlp.py:#\t        optimizer.step()
step 3, optimizer, optimizer/SGD/net/fc2/weight (SGD)
mlp.py:#\t        optimizer.step()
Stopped at the end of step 3.
lr = 0.05, loss = #
step 4, forward, net/out/linear (linear)
mlp.py:#\t        return self.out(x)
"""

# The whole of a first step, operator by operator.
FIRST = """\
main/randperm main/getitem main/getitem_1 net/fc1/linear net/relu net/fc2/linear net/relu_1 net/out/linear main/getitem_2
main/cross_entropy backward/main/cross_entropy backward/main/cross_entropy/LogSoftmaxBackward0 backward/net/out/linear net/out/bias.grad
backward/net/out/linear/TBackward0 net/out/weight.grad""".split()

# Two consecutive passes, through the same operators and through one of the same name.
PASSES = """
import torch
net = torch.nn.ModuleDict({"fc": torch.nn.Linear(3, 3), "out": torch.nn.Linear(3, 1)})
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    y = torch.tanh(net["fc"](net["fc"](torch.ones(2, 3))))
    first, second = net["out"](y).sum(), y.pow(2).mean()
    first.backward(retain_graph=True)
    second.backward()
    optimizer.step()
"""

# One operator that takes as long as it is allowed to.
BUSY = """
import os, sys, time
import torch
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def backward(ctx, gradient):
        open(sys.argv[1], "w").close()
        while not os.path.exists(sys.argv[2]):
            time.sleep(0.01)
        return gradient
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
while True:
    optimizer.zero_grad()
    Slow.apply(net(torch.ones(2, 3))).sum().backward()
    optimizer.step()
"""

EVALUATION = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(3, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(2, 3)).sum().backward()
optimizer.step()
while True:
    with torch.no_grad():
        net(torch.ones(2, 3))
"""

# Its optimizer raises in every second call, and the program continues.
RAISES = """
import torch
net = torch.nn.Linear(3, 1)
class Picky(torch.optim.SGD):
    calls = 0
    def step(self, closure=None):
        Picky.calls += 1
        if Picky.calls % 2 == 0:
            raise ValueError("not now")
        return super().step(closure)
optimizer = Picky(net.parameters(), lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    net(torch.ones(2, 3)).sum().backward()
    try:
        optimizer.step()
    except ValueError:
        pass
"""

# The optimizer is another one from the third step on; the first one is kept.
REPLACED = """
import torch
net = torch.nn.Linear(3, 1)
first = optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for step in range(8):
    if step == 3:
        optimizer = torch.optim.Adam(net.parameters(), lr=0.25)
    optimizer.zero_grad()
    net(torch.ones(2, 3)).pow(2).sum().backward()
    optimizer.step()
"""

PREPARED = """
import sys
import torch
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
try:
    while True:
        optimizer.zero_grad()
        net(torch.ones(2, 3)).pow(2).sum().backward()
        optimizer.step()
except KeyboardInterrupt as reason:
    print("saved:", reason)
    sys.exit(7)
"""


FIRST_NAN = '''
import torch
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
torch.nn.init.zeros_(net.weight)
torch.nn.init.zeros_(net.bias)
for step in range(2):
    x = net(torch.ones(2, 3))
    bad = torch.log(x.detach() * 0)
    for _ in range(9):
        x = x + 3
    x.sum().backward()
    optimizer.step()
'''


# Run as a module of a package; it copies and saves itself, and is ended by Ctrl-C.
COPIES = """
import copy, io, pickle, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, i):
        x = torch.randn(4, generator=torch.Generator().manual_seed(i))
        return x, x.pow(2).sum()

def main(path):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(Squares(), batch_size=8, num_workers=2, persistent_workers=True, shuffle=True)
    try:
        for epoch in range(3):
            for x, y in loader:
                optimizer.zero_grad()
                (net(x).squeeze(1) - y).pow(2).mean().backward()
                whole = io.BytesIO()
                torch.save({"net": net, "optimizer": optimizer}, whole)
                data = pickle.dumps((net, optimizer))
                assert b"gradb" not in data + whole.getvalue()
                copies = [pickle.loads(data), copy.deepcopy((net, optimizer))]
                optimizer.step()
                for twin, its in copies:
                    for ours, theirs in zip(net.parameters(), twin.parameters()):
                        theirs.grad = ours.grad.clone()
                    its.step()
                    assert all(map(torch.equal, net.parameters(), twin.parameters()))
            if epoch == 2:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        print("saved", flush=True)
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()["state"]}, path)

if __name__ == "__main__":
    main(sys.argv[1])
"""

TRANSFORM = """
import torch
try:
    from torch.func import vmap
except ImportError:
    from functorch import vmap
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    x = vmap(lambda row: row.sin())(torch.ones(2, 3))
    net(x).sum().backward()
    optimizer.step()
"""

COPIED = """
import copy, torch
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    optimizer.param_groups[0]["lr"] = 0.125 * (step + 1)
    optimizer.zero_grad()
    loss = net(torch.ones(2, 3)).pow(2).mean()
    loss.backward()
    twin, its = copy.deepcopy((net, optimizer))
    its.param_groups[0]["lr"] = 9.0
    its.step()
    optimizer.step()
"""

COMPILED = """
import torch
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
@torch.compile(backend="aot_eager")
def loss_of(x):
    return net(x).pow(2).mean()
for step in range(4):
    optimizer.zero_grad()
    loss = loss_of(torch.ones(2, 3))
    loss.backward()
    optimizer.step()
"""


class Control(torches.Folder):
    """What the cases share."""

    def script(self, name):
        """One of the training scripts, in the case's folder."""
        return self.write(name, (torches.SCRIPTS / name).read_text())

    def said(self, program, *commands):
        """gradb's output for the commands, after the stop before the first step."""
        done = self.gradb([self.python, *program], *commands)
        text = done.stdout.replace(str(self.folder) + os.sep, "")
        self.assertIn("Stopped before the first step.\n", text, done.stderr)
        text = text.split("Stopped before the first step.\n", 1)[1]
        self.assertEqual(done.stderr, "")
        # its text identifies a line
        return re.sub(r"loss = [-+.e\d]+", "loss = #", re.sub(r"(?m)^(\w+\.py):\d+\t", r"\1:#\t", text))

    def live(self, program, **env):
        """gradb reading from a pipe, with the program before its first step."""
        gradb = harness.Gradb(command=("run", "--", *torches.warm(self.python), *program),
                              env=torches.environment(**env), cwd=self.folder)
        self.addCleanup(gradb.__exit__)
        pid = int(gradb.expect(r"^Connected: .*, pid (\d+)\.$").group(1))
        self.addCleanup(end, pid)
        gradb.expect("Stopped before the first step")
        return gradb

    def interrupted(self, script, place):
        """gradb after Ctrl-C during a script that creates one file and then waits for another: it has said where the
        training still is, and the training continues."""
        begun, done = self.folder / "begun", self.folder / "done"
        gradb = self.live([self.write("busy.py", script), str(begun), str(done)])
        gradb.send("continue")
        gradb.expect("Continuing")
        harness.wait_for("the place where it waits", begun.exists)
        gradb.interrupt()
        gradb.expect(f"^still in {place}: it stops at the next operator")
        done.touch()
        return gradb


@torches.both
class Stops(Control):
    def test_breakpoints_are_set_before_there_is_a_graph(self):
        said = self.said([self.script("mlp.py"), "--steps", "3"], "break net/fc2/linear",
                         "tbreak net/fc1/weight.grad", "break backward/net/fc2/linear",
                         "break optimizer/SGD/net/out/weight", *5 * ["continue"])
        self.assertEqual(said, BREAKS)

    def test_moves(self):
        said = self.said([self.script("mlp.py"), "--steps", "5"], "step 2", "run-to net/out/linear", "finish phase",
                         "finish phase", "run-to optimizer/SGD/net/fc1/bias", "next", "finish phase", "until net/out/linear")
        self.assertEqual(said, MOVES)

    def test_the_stack_where_no_operator_is_selected(self):
        said = self.said([self.script("mlp.py"), "--steps", "4"], "bt", "step 2", "bt", "list", "next", "bt", "step", "up",
                         "finish")
        before, second, _, third = re.split("Stopped at the end of step.*|step 3.*", said)
        self.assertRegex(before, r"#\d+  mlp\.py:\d+ in main\n")
        self.assertRegex(second, r"(?s)\n#\d+  mlp\.py:89 in main\n      optimizer\.step\(\)\n#\d+  mlp\.py:\d+ in <module>\n.*"
                         r"\n=>    89 +optimizer\.step\(\)\n")
        self.assertRegex(third, r"\n#\d+  mlp\.py:\d+ in <module>\n")
        self.assertIn("\nStopped at the end of the forward phase, step 4, ", said)

    def test_the_panes_show_where_the_program_is(self):
        with Terminal(run=[self.python, self.script("mlp.py"), "--steps", "4"]) as t:
            t.expect_ready()
            t.command("layout src", r"source mlp\.py:\d+")
            t.command("step", r"source mlp\.py:89 ")
            t.expect(r">#\d+ +mlp\.py:89 in main +optimizer\.step")
            t.expect(r"=>.* \b89 +optimizer\.step\(\)")

    def test_finish_is_the_end_of_one_backward_pass(self):
        said = self.said([self.write("passes.py", PASSES)], "tbreak backward/net/fc/linear_1", "continue",
                         *5 * ["finish phase"], "break backward/net/fc/linear_1.2", "continue", "bt")
        self.assertEqual(re.findall(r"^Stopped at the end of (.*)[.)]$", said, re.M), [
            "the backward phase, step 1, net/fc/weight.grad (Gradient", "the backward phase, step 1, net/fc/weight.grad "
            "(Gradient", "step 1", "the forward phase, step 2, mean (mean", "the backward phase, step 2, "
            "net/fc/weight.grad (Gradient"])
        self.assertRegex(said, r"Breakpoint 2, step 2, backward, backward/net/fc/linear_1\.2 \(AddmmBackward0\)\n"
                         r"passes\.py:#\t    y = torch\.tanh")

    def test_what_is_waited_for_is_not_missed(self):
        said = self.said([self.script("mlp.py"), "--steps", "3"], "set watch-when exact",
                         "watch max > -1 on *fc2/linear", "watch max > 0 on net/fc3", "tbreak relu_1", "continue",
                         "next", "continue", "next", "info watchpoints")
        self.assertIn("Watchpoint 1: 'max > -1' on *fc2/linear (pending: no node matches yet)\n"
                      "Watchpoint 2: 'max > 0' on net/fc3 (pending: there is no node 'net/fc3')\n", said)
        self.assertEqual(re.findall(r"^(?:.*, )?step 1, (?:\w+(?: \S+)?, )?(\S+) ", said, re.M),
                         ["net/fc2/linear", "net/relu_1", "backward/net/fc2/linear", "net/fc2/bias.grad"])
        self.assertIn("\n       waits: there is no node 'net/fc3'\n", said)

    def test_a_watchpoint_by_kind_is_exact_from_the_first_operator(self):
        for watch, expected in (("TO on all", ["log", "add"]), ("'max > 5' on activations", ["add_1", "add_2"])):
            said = self.said(["-c", FIRST_NAN], "set watch-when exact", "watch " + watch, "continue", "next")
            self.assertEqual(re.findall(r"^(?:.*, )?step 1, (?:\w+(?: \S+)?, )?(\S+) ", said, re.M), expected, said)

    def test_a_breakpoint_with_a_condition(self):
        said = self.said([self.script("mlp.py"), "--steps", "5"], "break net/relu_1 if max > -1 && step > 2",
                         "tbreak net/fc2/linear if step > 3", "break net/relu if max > 1e9", "continue", "continue",
                         "continue", "info breakpoints")
        self.assertEqual(re.findall(r"^(?:.*, )?step (\d), \w+, (\S+) ", said, re.M),
                         [("3", "net/relu_1"), ("4", "net/fc2/linear"), ("4", "net/relu_1")])
        self.assertNotIn("fc2", said[said.index("\nNum "):])

    def test_each_node_of_the_first_step(self):
        said = self.said([self.script("mlp.py"), "--steps", "2"], *len(FIRST) * ["next"])
        self.assertEqual(re.findall(r"^step 1, (?:\w+, )?(\S+) ", said, re.M), FIRST)

    def test_next_counts_nodes_of_a_later_step(self):
        said = self.said([self.script("mlp.py"), "--steps", "3"], "step", "next %d" % len(FIRST))
        self.assertIn("\nstep 2, backward, net/out/weight.grad (Gradient)\n", said)


@torches.both
class Copies(Control):
    def test_what_is_copied_and_saved_has_nothing_of_ours(self):
        """A module of a package, with persistent workers; models and optimizers are pickled while hooks are installed.
        """
        self.write("pkg/__init__.py", "")
        self.write("pkg/train.py", COPIES)
        bare, seen = self.folder / "bare.pt", self.folder / "seen.pt"
        subprocess.run([self.python, "-m", "pkg.train", bare], env=torches.environment(GRADB_DISABLE="1"), check=True,
                       stdout=subprocess.DEVNULL, timeout=2 * harness.DEADLINE, cwd=self.folder)
        done = self.gradb([self.python, "-m", "pkg.train", seen], "watch TO on all", "step", "next 20", "step",
                          "info scalars", "catch overflow", "continue")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?s)end of step 2\..*\nepoch +1 +2\nbatch +2 +2\n.*The training ended\.\n")
        self.assertTrue(same(self.python, bare, seen))


@torches.both
class Unseen(Control):
    """Where there is no value or no operator, the message says which."""

    def test_a_tensor_inside_a_transform(self):
        done = self.gradb([self.python, self.write("transform.py", TRANSFORM)], "step", "run-to sin", "print")
        self.assertIn("error: it stands for other tensors inside a transform (vmap, grad)", done.stderr)

    def test_the_line_of_a_compiled_function(self):
        torches.need_compile(self)
        for backend, node in (("aot_eager", "backward/compiled"), ("eager", "backward/MeanBackward0")):
            said = self.said([self.write("compiled.py", COMPILED.replace("aot_eager", backend))], "step 2",
                             "run-to " + node, "where")
            self.assertRegex(said, r"(?m)^#\d+ +compiled\.py:\d+ in <module>\n +loss\.backward\(\)$")


@torches.both
class Interrupts(Control):
    def test_a_run_at_full_speed(self):
        gradb = self.live([self.script("mlp.py"), "--steps", "100000000"])
        gradb.send("step 3")
        gradb.expect("at the end of step 3")
        gradb.send("continue")
        gradb.expect("Continuing")
        gradb.interrupt()
        gradb.expect(r"Interrupted, (step \d+, |at the end of step \d+)")
        gradb.send("next")
        gradb.expect(r"^(\S+ )?step \d+, (?:\w+, )?\S+ \(")

    def test_in_the_background(self):
        """A value belongs to the step in which the training is stopped: while it runs there is none, and one line says
        so."""
        gradb = self.live([self.script("mlp.py"), "--steps", "100000000"])
        gradb.run("step", "at the end of step 1")
        gradb.send("continue &")
        gradb.expect("Continuing")
        for command in ("print net/fc1/bias", "stats net/fc1/bias", "x net/fc1/bias", "tensor net/fc1/bias",
                        "save net/fc1/bias b.npy", "first-nonfinite", "recheck", "next", "why", "overflow",
                        "tensors -s"):
            gradb.run(command, '^error: (cannot .* while )?the training is running: .*"interrupt".*$')
        gradb.run("interrupt", r"Interrupted, (step \d+, |at the end of step \d+)")
        gradb.run("print net/fc1/bias", r"^\$1 = net/fc1/bias:0(, of step \d+ \(now at step \d+\))?$")
        gradb.run("first-nonfinite", r"^No NaN or infinity: \d+ tensors checked")
        done = self.gradb([self.python, self.script("mlp.py"), "--steps", "3"], "continue &")
        self.assertIn("The training ended.", done.stdout)
        self.assertIn("warning: --batch runs nothing in the background", done.stderr)

    def test_an_operator_that_takes_long(self):
        gradb = self.interrupted(BUSY, r"the backward phase of step 1(, after \S+)?")
        gradb.expect(r"^Interrupted, step 1, backward, backward/\S+")

    def test_an_evaluation_without_steps(self):
        gradb = self.live([self.write("evaluate.py", EVALUATION)])
        gradb.send("step")
        gradb.expect("at the end of step 1")
        place = "at the end of step 1."
        while place == "at the end of step 1.":  # it had not begun yet
            gradb.send("continue")
            gradb.expect("Continuing")
            gradb.interrupt()
            place = gradb.expect("^Interrupted, (.*)$").group(1)
        self.assertRegex(place, r"^step 2, (?:\w+, )?\S+ \(\w+\)$")


@torches.both
class Steps(Control):
    def test_an_optimizer_that_raises_ends_no_step(self):
        said = self.said([self.write("raises.py", RAISES)], *4 * ["step"])
        self.assertEqual(re.findall(r"end of step (\d+)", said), ["1", "2", "3", "4"])
        said = self.said([self.write("raises.py", RAISES)], "step 3", "continue")
        self.assertTrue(said.endswith("Continuing.\nThe training ended.\n"), said)
        said = self.said([self.write("raises.py", RAISES)], "step 5")
        self.assertTrue(said.endswith("The training ended.\n"), said)  # eight calls, of which four raise

    def test_an_optimizer_takes_the_place_of_another(self):
        said = self.said([self.write("replaced.py", REPLACED)], "catch lr", "continue")
        # its first step does not count yet: the two optimizers might take turns
        self.assertIn("Catchpoint 1 (lr), at the end of step 4.\nlr = 0.25,", said)

    def test_a_copy_that_steps_first_ends_no_step(self):
        said = self.said([self.write("copied.py", COPIED)], "step 4")
        self.assertRegex(said, r"Stopped at the end of step 4\.\nlr_SGD_1 = 9, lr = 0\.5, loss = ")

    def test_the_optimizer_is_chosen(self):
        script = self.script("gan.py")
        said = self.said([script], "step", "agent step-of Adam_1", "step 2", "info scalars")
        self.assertRegex(said, r"at the end of step 3\.\n")
        self.assertRegex(said, r"(?m)^loss_Adam +\S+ +3$")
        done = self.gradb([self.python, script], "step", "agent step-of Adam_9")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no optimizer 'Adam_9': the optimizers are Adam, Adam_1", done.stderr)

    def test_the_end_is_the_same_however_it_is_controlled(self):
        scripts = ["gan.py", "accumulate.py", "lbfgs.py", "manual.py"]
        if hasattr_amp(self.python):
            scripts.append("amp.py")
        for name in scripts:
            with self.subTest(name):
                script = self.script(name)
                bare, seen = self.folder / "bare.pt", self.folder / "seen.pt"
                subprocess.run([*torches.warm(self.python), script, "--save", bare],
                               env=torches.environment(GRADB_DISABLE="1"), check=True, stdout=subprocess.DEVNULL, timeout=2 * harness.DEADLINE)
                self.said([script, "--save", str(seen)], "watch TO on all", "catch lr", "set stop-on-hit off",
                          "next 3", "finish phase", "step", "set timing on", "step", "next", "continue")
                self.assertTrue(same(self.python, bare, seen), name)


FIRES = """
import os, torch
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
try:
    for step in range(1, 1000):
        x = net(torch.ones(2, 4))
        for _ in range(3):
            torch.log(0 * x)
        optimizer.zero_grad()
        x.sum().backward()
        optimizer.step()
except KeyboardInterrupt:
    with open(os.path.join(os.path.dirname(__file__), "saved"), "w") as file:
        file.write("in step %d" % step)
"""


@torches.both
class Ends(Control):
    def test_kill_ends_it_as_control_c_would(self):
        with harness.Gradb() as gradb:
            port = gradb.wait_listening()
            program = subprocess.Popen(
                [*torches.warm(self.python), self.write("prepared.py", PREPARED)], stdout=subprocess.PIPE, text=True,
                env=torches.environment(GRADB_ADDRESS="127.0.0.1:%d" % port, GRADB_LIBRARY=torches.library(),
                                        PYTHONPATH=str(torches.PACKAGE / "gradb" / "_boot")))
            self.addCleanup(program.kill)
            gradb.expect("Stopped before the first step")
            gradb.send("step 2")
            gradb.expect("at the end of step 2")
            gradb.send("kill")
            self.assertEqual(program.communicate(timeout=harness.DEADLINE)[0],
                             "saved: the debugger ended the training\n")
            self.assertEqual(program.returncode, 7)

    def test_kill_is_not_held_up_by_what_fires_in_the_rest_of_the_step(self):
        program = self.write("fires.py", FIRES)
        said = self.said([program], "watch TO on all", "continue", "kill")
        self.assertEqual((self.folder / "saved").read_text(encoding="utf-8"), "in step 1")
        self.assertEqual(said.count("Watchpoint 1, step 1, forward, log"), 1, said)

    def test_detach_lets_it_run_to_its_end(self):
        script = self.script("mlp.py")
        gradb = self.live([script, "--steps", "20", "--save", str(self.folder / "seen.pt")])
        gradb.send("next 5")
        gradb.expect("^step 1, ")
        gradb.send("detach")
        gradb.expect("Detached")
        bare = self.folder / "bare.pt"
        subprocess.run([*torches.warm(self.python), script, "--steps", "20", "--save", bare],
                       env=torches.environment(GRADB_DISABLE="1"), check=True, stdout=subprocess.DEVNULL,
                       timeout=2 * harness.DEADLINE)
        harness.wait_for("the detached training's end",
                         lambda: (self.folder / "seen.pt").exists() and same(self.python, bare,
                                                                              self.folder / "seen.pt"))

    def test_checkpoint(self):
        where = self.folder / "elsewhere"
        where.mkdir()
        script = self.script("mlp.py")
        self.said(["-c", f"import os, runpy, sys; os.chdir({str(where)!r}); sys.argv[0] = {str(script)!r}; "
                   "runpy.run_path(sys.argv[0], run_name='__main__')", "--steps", "5"],
                  "step 2", "checkpoint", "step", "continue")
        keys = subprocess.run(
            [*torches.warm(self.python), "-c",
             "import sys, torch\nstate = torch.load(sys.argv[1], **eval(sys.argv[2]))\n"
             "print(state['step'], *state['models'], *state['optimizers'], *sorted(state['rng']))",
             str(where / "mlp.step2.pt"), loading(self.python)],
            env=torches.environment(), capture_output=True, text=True, check=True, timeout=harness.DEADLINE)
        self.assertRegex(keys.stdout, r"^2 net SGD %s(numpy )?python torch\n$" % (
            "cuda " * torches.on_device(self)))


def end(pid):
    """Kills a program that would train forever."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def loading(python):
    """The arguments that let torch.load read more than tensors, where it needs them."""
    return "{}" if python == torches.DEBIAN else "{'weights_only': False}"


def hasattr_amp(python):
    """Whether its gradient scaler works on the CPU."""
    return torches.release_of(python) >= (2, 3)


def same(python, first, second):
    """Whether two saved states are equal, bit for bit."""
    code = ("import sys, torch\n"
            "def flat(value):\n"
            "    return [value] if torch.is_tensor(value) else [x for v in value.values() for x in flat(v)]\n"
            "try:\n"
            "    a, b = (flat(torch.load(path)) for path in sys.argv[1:])\n"
            "except (EOFError, OSError, RuntimeError):\n"
            "    sys.exit(1)\n"
            "sys.exit(not (len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))))\n")
    return subprocess.run([*torches.warm(python), "-c", code, str(first), str(second)], env=torches.environment(),
                          timeout=2 * harness.DEADLINE, check=False, stderr=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    harness.main()
