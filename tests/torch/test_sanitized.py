# SPDX-License-Identifier: GPL-3.0-or-later
"""libgradb and the native module in a training under AddressSanitizer: test_sanitized.py RUNTIME...

Only in a sanitized build, whose runtimes are the arguments. They are preloaded into the interpreter, which takes all
its memory from them (PYTHONMALLOC): so the use of an object after its last reference and a read beyond a tensor are
found."""
import os
import subprocess
import sys

import harness
import torches

RUNTIMES = sys.argv[1:]
LIBRARY = harness.BUILD / "src" / "agent" / "libgradb.so.1"
FOUND = 66   # exit status after a report
SETTLED = 8  # steps after which the native module does everything that it can
NEXT = 25    # nodes at which the run stops one by one

# Everything that the native module does, and everything that ends it: several optimizers, operators that raise,
# interrupts in both passes, threads and forks, a detached agent and another one. The results are in the file "told".
TRAINER = """
import os, signal, sys, threading
import torch
from torch.utils.checkpoint import checkpoint
import gradb.native
import gradb.torch
torch.manual_seed(5)

def tell(*words):
    with open(os.path.join(sys.argv[1], "told"), "a") as file:
        print(*words, file=file)

class Double(torch.autograd.Function):
    interrupted = None  # the pass that Ctrl-C comes in
    @staticmethod
    def forward(context, x):
        Double.interrupt("forward")
        context.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(context, gradient):
        Double.interrupt("backward")
        return gradient * 2
    @staticmethod
    def interrupt(where):
        if Double.interrupted == where:
            Double.interrupted = None
            signal.raise_signal(signal.SIGINT)

class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, index):
        return torch.relu(torch.full((4,), 0.1 * index))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 6)
        self.deep = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh())
        self.last = torch.nn.Linear(6, 2)
        self.register_buffer("room", torch.zeros(3, 6))

    def forward(self, x, bad):
        x = torch.relu(self.first(x))
        try:
            torch.cat([x, x.t()] if bad else [x, x])
        except RuntimeError:
            pass
        y = x.t().reshape(-1).view(6, 3).t()
        with torch.no_grad():
            self.room.mul_(0.5).add_(y.detach())
            torch.add(self.room, 1, out=self.room)
        parts = torch.chunk(Double.apply(y), 2, dim=1)
        y = checkpoint(self.deep, torch.cat((parts[1], parts[0]), dim=1)) + self.room
        y += 1
        y[:, 0] = 0
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.last(y)
        return y.float()

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
others = []  # an optimizer that comes and goes

def aside(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread

def train(x, bad=False):
    optimizer.zero_grad()
    x = x.clone().requires_grad_(True)
    loss = net(x, bad).pow(2).mean()
    other = aside(lambda: net.deep(torch.ones(2, 6)).sum())
    loss.backward(retain_graph=True)
    loss.backward()
    other.join()
    aside(lambda: net.deep(torch.ones(2, 6)).sum().backward()).join()
    penalty, = torch.autograd.grad(net.first(x).tanh().sum(), x, create_graph=True)
    penalty.pow(2).sum().backward()
    for other in others:
        other.step()
    optimizer.step()
    others.append(torch.optim.SGD(net.last.parameters(), lr=0.0))
    del others[:-1]

def interrupt(where):
    Double.interrupted = where
    try:
        train(torch.ones(3, 4))
    except KeyboardInterrupt:
        tell("interrupted in the", where, "pass")

tell("module", os.path.realpath(gradb.native.module.__file__))
for agent in ("first", "second"):
    for step in range(24):
        train(torch.full((3, 4), 0.5))
    for x in torch.utils.data.DataLoader(Samples(), batch_size=3, num_workers=2):
        train(x)
    interrupt("forward")
    interrupt("backward")
    train(torch.ones(3, 4), bad=True)
    if agent == "first":
        gradb.torch.detach()
        train(torch.ones(3, 4))
        tell("attached again", gradb.torch.attach(net, optimizer, wait=60))
tell("at the end")
"""
TOLD = ["module %s" % torches.NATIVE, "interrupted in the forward pass", "interrupted in the backward pass",
        "attached again True", "interrupted in the forward pass", "interrupted in the backward pass", "at the end"]


@torches.both
class Sanitized(torches.Folder):
    plain = False

    def setUp(self):
        super().setUp()
        torches.need_native(self)
        missing = [path for path in RUNTIMES if not os.path.isabs(path)]
        if missing or not RUNTIMES:
            self.skipTest("the compiler has no %s to preload" % ", ".join(missing or ["runtime"]))
        done = subprocess.run([*self.preloaded(), self.python, "-c", "pass"], text=True, capture_output=True,
                              timeout=2 * harness.DEADLINE, check=False)
        if done.returncode != 0 or done.stderr:
            self.skipTest("the runtime cannot be preloaded: %s" % (done.stderr.splitlines() or [done.returncode])[0])

    def preloaded(self):
        """The start of a command line that runs under the sanitizers; reports become files."""
        reports = "log_path=%s" % (self.folder / "report")
        asan = f"{reports}:exitcode={FOUND}:detect_leaks=0:alloc_dealloc_mismatch=0:quarantine_size_mb=64"
        ubsan = f"{reports}:exitcode={FOUND}:halt_on_error=1:print_stacktrace=1"
        return ["env", "LD_PRELOAD=" + ":".join(RUNTIMES), "PYTHONMALLOC=malloc", f"ASAN_OPTIONS={asan}",
                f"UBSAN_OPTIONS={ubsan}"]

    def visit(self, gradb):
        """A debugger session to which the training reports everything, up to its exception."""
        gradb.expect("Stopped before the first step")
        gradb.run(f"step {SETTLED}", f"end of step {SETTLED}")
        gradb.run("trace -exact TO on all", "Trace .*nodes")
        gradb.run("trace -exact 'max > 1e30 || norm < 0' on all", "Trace .*nodes")
        gradb.run("step", f"end of step {SETTLED + 1}")
        for _ in range(NEXT):
            gradb.run("next", f"^step {SETTLED + 2}, ")
        gradb.run(f"next {NEXT}", f"^step {SETTLED + 2}, backward, backward/")
        gradb.run("tbreak net/last/linear", "reakpoint")
        gradb.run("continue", f"step {SETTLED + 3}, forward, net/last/linear")
        gradb.run("print net/last/linear", r"\[.*\d")
        gradb.run("print net/first/weight", r"\[.*\d")
        gradb.run("finish phase", "end of the forward phase")
        gradb.run("finish phase", "end of the backward phase")
        gradb.run("stats net/first/weight.grad", "^  mean ")
        gradb.run("info hits", "No watchpoint has fired")
        gradb.run("continue", "net/cat.* raised RuntimeError")

    def test_a_session_that_uses_all_of_it(self):
        with harness.Gradb("-nx", "-ex", "set start-timeout 0", cwd=self.folder,
                           env=torches.environment(GRADB_LIBRARY=str(LIBRARY)),
                           command=("run", "--", *self.preloaded(), self.python, self.write("train.py", TRAINER),
                                    self.folder)) as gradb:
            try:
                self.visit(gradb)
                gradb.run("continue", "The training ended")  # as far as this agent knows
                self.visit(gradb)
                gradb.run("continue", r"exited with status 0\b")
            finally:
                reports = [path.read_text(errors="replace") for path in sorted(self.folder.glob("report*"))]
                if reports:
                    self.fail("\n".join(reports))
        self.assertEqual((self.folder / "told").read_text().splitlines(), TOLD)


if __name__ == "__main__":
    del sys.argv[1:]  # they do not name a case
    harness.main()
