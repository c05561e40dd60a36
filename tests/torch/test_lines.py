# SPDX-License-Identifier: GPL-3.0-or-later
"""Stops at lines of a PyTorch script, with an operator or without."""
import os
import re
import shutil
import subprocess
import sys
import unittest

import harness
import torches

SCRIPT = """import sys
import torch
from torch import nn


class Nano(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.fc2 = nn.Linear(8, 1)

    def forward(self, x):
        # a comment
        h = torch.relu(self.fc1(x))

        return self.fc2(h)


def report(step, loss):
    text = "step %d: loss %.9g" % (step, loss)
    print(text)


def train(steps):
    torch.manual_seed(0)
    net = Nano()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        x = torch.randn(16, 4)
        loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 2 == 1:
            import other
            other.note(step)
        report(step, loss.item())
    print("random", torch.rand(1).item())


sys.stdout = open(sys.argv[1], "w")
train(8)
"""
OTHER = '''"""A module that is imported late."""


def note(step):
    value = step * 2
    return value
'''


# The same program in each version of Python, with an agent that only writes down what it would send.
PROGRAM = """def squares(n):
    for i in range(n):
        yield i * i


def total(n):
    s = 0

    for value in squares(n):
        s += value
    t = [v for v in range(n)]
    return s


def outer(n):
    pass
    agent.set(WISHES)
    result = total(n)
    result += 1
    return result
"""
STAND_IN = """
import sys
from gradb import _lib, lines
seen, found, events = [], {}, []
class Library:
    @staticmethod
    def gradb_line_found(handle, number, places, count, why):
        found[number] = [(place.line, place.function.decode()) for place in places[:count]] or why.decode()
    @staticmethod
    def gradb_line_reached(handle, ids, count, frames, frame_count):
        assert agent.lines.frame.f_lineno == frames[0].line
        seen.append((ids[0], frames[0].line, frames[0].function.decode()))
        reached(ids[0])
class Agent:
    dead, handle, library, before_line = False, 1, Library, None
    runs_aside = staticmethod(lambda: False)
    class timing:
        call_waiting = staticmethod(lambda function, *args: function(*args))
    class exceptions:
        is_ours = staticmethod(lambda frame: frame.f_code.co_filename.startswith(lines.OWN))
    def fault(self, error):
        raise SystemExit(repr(error))
    def set(self, wishes):
        self.lines.callback(None, (_lib.Line * (len(wishes) + 1))(*[_lib.Line(*wish) for wish in wishes]), len(wishes))
agent = Agent()
agent.lines = lines.Lines(agent)
"""
VERSIONS = STAND_IN + """
import prog
prog.agent = agent
def reached(number):
    if number == 1 and len(seen) in (1, 3):  # where the generator yields; in a frame with another tracer
        agent.lines.finish(8, 0)
    if number == 6:  # a line after it in a frame that runs
        agent.set([(7, b"prog.py", 20, b""), (9, b"", 0, b"")])
        agent.lines.finish(9, 0)
def tracer(frame, event, arg):
    if frame.f_code.co_filename.endswith("prog.py"):
        events.append((event, frame.f_lineno))
    return tracer
prog.WISHES = [(1, b"prog.py", 3, b""), (2, b"prog.py", 8, b""), (3, b"nosuch.py", 1, b""), (4, b"", 0, b"total"),
               (5, b"prog.py", 99, b""), (6, b"prog.py", 19, b""), (8, b"", 0, b"")]
prog.outer(2)
print(seen, found)
prog.WISHES, seen[:] = [], []
sys.settrace(tracer)
prog.outer(1)
plain, events[:], prog.WISHES = events[:], [], [(1, b"prog.py", 9, b"")]
prog.outer(1)
prog.WISHES = []
prog.outer(1)
print(sys.gettrace() is tracer, seen, events == plain + plain)
"""


# Everything that calls Python code: generators, coroutines, C functions, a[i], threads, exec.
WALK = """import asyncio
import sys
import threading
agent, WISHES, traced = None, [], []

def leaf(n):
    traced.append(sys.gettrace() is not None)
    return n + 1

def fails(n):
    leaf(n)
    if n % 3 == 0:
        raise ValueError(n)
    return n

def numbers(n):
    try:
        for i in range(n):
            got = yield leaf(i)
            if got:
                n -= got
    except KeyError:
        yield -1
    finally:
        leaf(0)

def key(value):
    return -value

class Data:
    def __getitem__(self, i):
        value = leaf(i)
        return value
    @property
    def size(self):
        return leaf(3)
    def __len__(self):
        return self.size

async def sleeper(n):
    await asyncio.sleep(0)
    return leaf(n)

async def gather():
    return await asyncio.gather(sleeper(1), sleeper(2))

def deep(n):
    if n == 0:
        return sorted([3, 1, 2], key=key)
    return deep(n - 1)

def walk(n):
    data, total = Data(), 0
    generator = numbers(2 * n)
    for i in range(n):
        try:
            total += fails(i)
        except ValueError:
            total -= 1
        total += next(generator)
        total += len(data)
        total += data[i]
    generator.send(1)
    generator.throw(KeyError())
    total += sum(map(key, [leaf(v) for v in range(3)]))
    total += sum(asyncio.run(gather()))
    thread = threading.Thread(target=fails, args=(1,))
    thread.start()
    thread.join()
    code = compile("def made(n):\\n    m = leaf(n)\\n    return m\\nvalue = made(2)\\n", __file__, "exec")
    exec(code, globals())
    return deep(3) and total

def middle(n):
    total = walk(n)
    agent.set(WISHES)
    total += walk(n)
    return total

def top(n):
    total = middle(n)
    total += leaf(1)
    total += walk(n)
    agent.set([])
    return total
"""
RANDOM = STAND_IN + """
import random
import walk
kinds = set()
def some():
    return [(i + 1, b"walk.py", draw.randrange(5, 100), b"") for i in range(draw.randrange(4))]
def reached(number):
    kinds.add(type(agent.lines._watcher).__name__)
    if draw.random() < 0.1:
        agent.set(some())
walk.agent = agent
for seed in range(60):
    draw = random.Random(seed)
    walk.WISHES = some()
    seen.append(walk.top(5))
    assert sys.gettrace() is None, seed
print(seen)
print(len(seen), sorted(kinds), "%.2f" % (sum(walk.traced) / len(walk.traced)), file=sys.stderr)
"""


class Versions(unittest.TestCase):
    def test_each_python_stops_at_the_same_lines(self):
        folder = harness.folder_of(self)
        (folder / "prog.py").write_text(PROGRAM, encoding="utf-8")
        (folder / "agent.py").write_text(VERSIONS, encoding="utf-8")
        names = [sys.executable] + ["python3.%d" % minor for minor in range(8, 15)]
        env = dict(os.environ, PYTHONPATH=str(torches.PACKAGE), PYTHONDONTWRITEBYTECODE="1")
        for name in filter(shutil.which, names):
            if subprocess.run([name, "-c", ""], env=env, capture_output=True).returncode != 0:
                continue  # a stand-in for a version that is not selected
            done = subprocess.run([name, "agent.py"], cwd=folder, env=env, capture_output=True, text=True)
            self.assertEqual(done.stdout + done.stderr, "%s %s\nTrue %s True\n" % (
                [(4, 7, "total"), (2, 9, "total"), (1, 3, "squares"), (8, 9, "total"), (2, 9, "total"), (1, 3, "squares"),
                 (2, 9, "total"), (6, 19, "outer"), (7, 20, "outer"), (9, 42, "<module>")],
                {1: [(3, "squares")], 2: [(9, "total")], 3: "", 4: [(7, "total")],
                 5: "prog.py has no code at or after line 99", 6: [(19, "outer")], 7: [(20, "outer")]},
                [(1, 9, "total")] * 2 + [(8, 18, "outer")]), name)

    def test_the_native_module_misses_no_line(self):
        """Lines are set and deleted at random, and frames are there that run, wait or return: with the native module
        and without it, each line that is reached is reported."""
        folder = harness.folder_of(self)
        (folder / "walk.py").write_text(WALK, encoding="utf-8")
        (folder / "agent.py").write_text(RANDOM, encoding="utf-8")
        said = []
        for name in ("0", "1"):
            env = dict(os.environ, PYTHONPATH=str(torches.PACKAGE), PYTHONDONTWRITEBYTECODE="1", GRADB_NATIVE=name,
                       GRADB_LIBRARY=str(torches.library()))
            done = subprocess.run([sys.executable, "agent.py"], cwd=folder, env=env, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            said.append((done.stdout, done.stderr.split(" ", 1)))
        self.assertEqual(said[0][0], said[1][0])
        if sys.version_info[:2] == (3, 11):
            self.assertEqual(said[0][1][1].rsplit(" ", 1)[0], "['_Tracer']")
            self.assertEqual(said[1][1][1].rsplit(" ", 1)[0], "['_Frames', '_Tracer']")  # the latter for __getitem__
            self.assertLess(10 * float(said[1][1][1].rsplit(" ", 1)[1]), float(said[0][1][1].rsplit(" ", 1)[1]))


# What runs in a backward pass.
PASSES = """\
import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        doubled = gradient * 2
        return doubled
def look(gradient):
    largest = gradient.abs().max()
    assert largest > 0
net = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train():
    out = Double.apply(net(torch.ones(2, 4)))
    out.register_hook(look)
    optimizer.zero_grad()
    out.sum().backward()
    optimizer.step()
for step in range(4):
    train()
"""


@torches.both
class Lines(torches.Folder):
    def setUp(self):
        super().setUp()
        self.write("other.py", OTHER)
        self.script = self.write("nano.py", SCRIPT)

    def said(self, *commands, status=0, options=()):
        done = self.gradb([self.python, self.script, self.folder / "output"], *commands, options=options)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        return done.stdout.replace(str(self.folder) + "/", "")

    def test_stops_at_lines(self):
        said = self.said(
            "break nano.py:13", "break nano.py:19", "tbreak other.py:5", "break nano.py:16 if step == 3",
            "info breakpoints", "continue", "backtrace", "list", "up", "continue", "continue", "continue", "continue",
            "disable 1", "ignore 2 1", "continue", "info breakpoints", "delete", "break report", "continue", "break 21",
            "continue", "delete", "print 7", "continue")
        for text in ("Breakpoint 1 at nano.py:14 (Nano.forward); line 13 has no code\n",
                     "Breakpoint 2 at nano.py:20 (report); line 19 has no code\n",
                     "Temporary breakpoint 3 at other.py:5 (pending: no source file named other.py is loaded)\n",
                     "Breakpoint 4 at nano.py:16 (Nano.forward)\n",
                     "Breakpoint 1, step 1 (forward), in Nano.forward\nnano.py:14\t        h = torch.relu(self.fc1(x))\n",
                     "#0  nano.py:14 in Nano.forward\n", "nano.py:30 in train\n", "nano.py:42 in <module>\n",
                     "=>    14          h = torch.relu(self.fc1(x))\n", 
                     "Breakpoint 2, after step 1, in report\nnano.py:20\t    text = ",
                     "Breakpoint 1, step 2 (forward), in Nano.forward\n",
                     "Temporary breakpoint 3, after step 2, in note\nother.py:5\t    value = step * 2\n",
                     "Breakpoint 2, after step 2, in report\n", "Breakpoint 4, step 3 (forward), in Nano.forward\n",
                     "nano.py:16\t        return self.fc2(h)\n", "Breakpoint 5 at nano.py:20 (report)\n",
                     "Breakpoint 5, after step 3, in report\n", "Breakpoint 6 at nano.py:21 (report)\n",
                     "Breakpoint 6, after step 3, in report\nnano.py:21\t    print(text)\n"):
            self.assertIn(text, said)
        self.assertEqual(said.count("already hit 2 times"), 2, said)  # lines 14 and 20
        self.assertNotIn("Breakpoint 1, step 3", said)

    def test_until_and_dprintf_and_info_line(self):
        said = self.said(
            "until nano.py:31", "until 33", "info line", "tbreak Nano.forward",
            'dprintf nano.py:20,"printed in step %d: %.4g\\n",step,loss if step > 1', "info line nano.py:13",
            "info line nano.py:report", "continue", "info line 14", "break nosuch", "break nosuch.py:3",
            "info breakpoints", "delete")
        for text in ("step 1 (forward), in train\nnano.py:31\t        optimizer.zero_grad()\n",
                     "in train\nnano.py:33\t        optimizer.step()\nLine 33 of nano.py is in train\n",
                     "Temporary breakpoint 1 at nano.py:14 (Nano.forward)\n", "Dprintf 2 at nano.py:20 (report)\n",
                     "Line 13 of nano.py has no code: the next is line 14, in Nano.forward\n",
                     "Line 20 of nano.py is in report\n", "Temporary breakpoint 1, step 2 (forward), in Nano.forward\n",
                     "Line 14 of nano.py is in Nano.forward\n", "net/fc1/linear",
                     "Breakpoint 3 at nosuch (pending: ",
                     "Breakpoint 4 at nosuch.py:3 (pending: no source file named nosuch.py is loaded)\n"):
            self.assertIn(text, said)

    def test_functions_and_finish(self):
        commands = self.write("commands.gdb", "commands 2\nprint step\ninfo line\nup\ninfo args\nend\n")
        said = self.said(
            "until Nano.forward", "finish", "info locals", "until nano.py:report", "finish", "break nano.py:14",
            "break nano.py:Nano.forward", "tbreak 14", "source %s" % commands, "continue", "finish", "delete",
            "tbreak note", "continue", "break nano.py:21", "finish", "finish", "delete", "tbreak fc1", "continue",
            "finish", "finish", "finish phase", "ni fc1")
        for text in ("step 1 (forward), in Nano.forward\nnano.py:14\t",
                     "Run till exit from #0  nano.py:14 in Nano.forward\nstep 1 (forward), in train\nnano.py:30\t",
                     "Variables in train (nano.py:30), step 1:\n",
                     "Run till exit from #0  nano.py:20 in report\nafter step 1, in train\nnano.py:37\t",
                     "Breakpoint 1, Breakpoint 2, Temporary breakpoint 3, step 2 (forward), in Nano.forward\n",
                     "step = 2 (step 2)\nLine 14 of nano.py is in Nano.forward\n",  # the commands of 2
                     "Arguments in train (nano.py:30), step 2:\n",
                     "Run till exit from #0  other.py:5 in note\nafter step 4, in train\nnano.py:36\t",
                     "Run till exit from #0  nano.py:36 in train\nBreakpoint 5, after step 4, in report\nnano.py:21\t",
                     "Run till the end of net\nstep 5, forward, net/fc2/linear (linear)\n",
                     "Stopped at the end of the forward phase, step 5, ",
                     "Stopped at the end of the backward phase, step 5, ",
                     "net/fc1/  Linear, 5 nodes\n"):
            self.assertIn(text, said)
        # `up` selected train, on whose way out the breakpoints stop again
        self.assertRegex(said, r"Run till exit from #[23]  nano.py:30 in train\nBreakpoint 1, Breakpoint 2, step 3 \(")

    def test_lines_of_a_backward_pass(self):
        """Of a hook and of a custom function; on a device they run on another thread. What is asked for there holds for
        the training thread, too."""
        script = self.write("passes.py", PASSES)
        done = self.gradb([self.python, script], "tbreak look", "break Double.backward", "continue", "backtrace",
                          "break passes.py:16", "continue", "info locals", "up", "continue", "continue", "delete",
                          "continue")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        stops = re.findall(r"(?m)^((?:Temporary b|B)reakpoint \d, .*)\n.*passes.py:(\d+)", done.stdout)
        self.assertEqual(stops, [("Temporary breakpoint 1, step 1 (backward), in look", "11"),
                                 ("Breakpoint 2, step 1 (backward), in Double.backward", "8"),
                                 ("Breakpoint 3, after step 1, in train", "16"),
                                 ("Breakpoint 2, step 2 (backward), in Double.backward", "8")], done.stdout)
        self.assertRegex(done.stdout, r"(?m)^#0 .*in look\n(.*\n)*#\d .*passes.py:19 in train\n")
        self.assertRegex(done.stdout, r"Variables in backward .*\n(.*\n)*.*gradient")
        self.assertIn("passes.py:19", done.stdout.partition("Variables in backward")[2])

    def test_break_main_before_run(self):
        script = self.write("main.py", SCRIPT.replace("def train(", "def main(").replace("train(8)", "main(3)"))
        done = harness.run_gradb(
            "-nx", "--batch", "--listen", "127.0.0.1:0", *harness.typed(
                "set start-timeout 0", "break main", "run -- %s %s %s" % (self.python, script, self.folder / "output"),
                "continue", "finish"),
            env=torches.environment(), cwd=self.folder, timeout=4 * harness.DEADLINE)
        said = done.stdout.replace(str(self.folder) + "/", "")
        self.assertEqual((done.returncode, done.stderr), (0, ""), said)
        self.assertIn("Breakpoint 1, before the first step, in main\nmain.py:25\t    torch.manual_seed(0)\n", said)
        self.assertIn("after step 3, in <module>\nmain.py:42\tmain(3)\n", said)

    def test_a_line_before_the_training(self):
        done = harness.run_gradb(
            "-nx", "--batch", "--listen", "127.0.0.1:0", *harness.typed(
                "set start-timeout 0", "break nano.py:9", "break nano.py:36", "run -- %s %s %s" % (
                    self.python, self.script, self.folder / "output"), "continue", "backtrace", "continue", "step 2"),
            env=torches.environment(), cwd=self.folder, timeout=4 * harness.DEADLINE)
        said = done.stdout.replace(str(self.folder) + "/", "")
        for text in ("Breakpoint 1 at nano.py:9 (pending: no training process yet)\n",
                     "Breakpoint 1, before the first step, in Nano.__init__\nnano.py:9\t        self.fc1 = ",
                     "nano.py:26 in train\n", "Breakpoint 2, after step 2, in train\nnano.py:36\t"):
            self.assertIn(text, said)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_never_matches_is_reported(self):
        done = self.gradb([self.python, self.script, self.folder / "output"], "break nosuch.py:3", "break nosuch",
                          "break other.py:5", "dprintf nano.py:20,\"%d of 8\\n\",step", "break 7", "continue 2",
                          "continue", "delete 3", "continue", options=("-ex", "set on-error continue"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "breakpoint 1 (nosuch.py:3) never matched\nbreakpoint 2 (nosuch) never matched\n", done.stdout)
        self.assertIn("8 of 8\n", done.stdout)
        self.assertIn("Breakpoint 5 at ", done.stdout)  # of line 7, in the file that makes the first optimizer

    def test_the_training_does_not_notice(self):
        alone = self.folder / "alone"
        subprocess.run([self.python, self.script, alone], cwd=self.folder, check=True, env=torches.environment())
        self.said("break nano.py:14", "break nano.py:31", "break nano.py:36", *["continue"] * 20, "delete", "continue")
        self.assertEqual((self.folder / "output").read_text(), alone.read_text())

    def test_a_killed_debugger(self):
        """It is killed while the training runs to a line, and while it waits at one: the training runs on as alone."""
        script = self.write("long.py", SCRIPT.replace("train(8)", "train(60)"))
        outputs = []
        for where in ("alone", "armed", "stopped"):
            outputs.append(self.folder / where)
            env = torches.environment(PYTHONPATH=str(torches.PACKAGE / "gradb" / "_boot"))
            env.setdefault("GRADB_LIBRARY", torches.library())
            if where == "alone":
                subprocess.run([self.python, script, outputs[-1]], cwd=self.folder, check=True, env=env)
                continue
            with harness.Gradb("-nx") as gradb:
                env["GRADB_ADDRESS"] = "127.0.0.1:%d" % gradb.wait_listening()
                program = subprocess.Popen([self.python, script, outputs[-1]], cwd=self.folder, env=env)
                self.addCleanup(program.kill)
                gradb.expect("topped before the first step")
                gradb.run("break long.py:20", "Breakpoint 1 at ")
                gradb.run("continue", "Breakpoint 1, after step 1, in report")
                if where == "armed":
                    gradb.run("condition 1 step == 1000000", "Breakpoint 1 |.*")
                    gradb.run("continue", "Continuing")
                gradb.process.kill()
                self.assertEqual(program.wait(4 * harness.DEADLINE), 0)
        self.assertEqual(outputs[0].read_text(), outputs[1].read_text())
        self.assertEqual(outputs[0].read_text(), outputs[2].read_text())


if __name__ == "__main__":
    harness.main()
