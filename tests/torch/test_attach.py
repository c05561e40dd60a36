# SPDX-License-Identifier: GPL-3.0-or-later
"""Attaching by hand, in mid-run, in children, without a library; and detaching."""
import subprocess

import harness
import torches
from harness import free_port

# Trains until it is ended.
LONG = """
import torch
import gradb.torch
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
print("connected:", gradb.torch.attach(wait=0), flush=True)
while True:
    optimizer.zero_grad()
    torch.relu(net(torch.randn(4, 3))).pow(2).mean().backward()
    optimizer.step()
"""

DETACHED = """
import gc, sys, weakref
import torch
import gradb.torch

def hooks():
    module, optimizer, variable = torch.nn.Module, torch.optim.Optimizer, torch.autograd.Variable
    found = {"call": module.__call__, "made": optimizer.__init__, "step": torch.optim.SGD.step,
             "engine": variable._execution_engine, "backward": torch.Tensor.backward,
             "item": torch.Tensor.__getitem__, "loader": torch.utils.data.DataLoader.__iter__,
             "modes": torch._C._len_torch_function_stack() if hasattr(torch._C, "_len_torch_function_stack") else 0}
    for name in ("_global_optimizer_post_hooks", "_global_optimizer_pre_hooks"):
        found[name] = dict(getattr(sys.modules["torch.optim.optimizer"], name, {}))
    for name, value in vars(torch.cuda.amp.GradScaler).items():
        found["scaler." + name] = value
    return found

net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
before = hooks()
def train():
    optimizer.zero_grad()
    net(torch.ones(4, 3)).pow(2).mean().backward()
    optimizer.step()
connected = gradb.torch.attach(net, optimizer)
train()
during = hooks()
alive = weakref.ref(gradb.torch._agent)
gradb.torch.detach()
after = hooks()
changed = [name for name in before if before[name] != during[name]]
left = [name for name in before if before[name] != after[name]]
del during  # which holds the hooks
train()
gc.collect()
print("connected", connected, "hooked", len(changed) > 2, "left", left, "agent", alive() is not None)
assert not gradb.torch.is_attached()
"""

ATTACHES = """
import multiprocessing, os, sys
import torch
import gradb.torch
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
print("first", gradb.torch.attach(net, optimizer, wait=1e6))  # not waited for: nobody said that one will come
agent = gradb.torch._agent
print("again", gradb.torch.attach(net, optimizer), gradb.torch._agent is agent)
if agent is not None:
    pid = os.fork()
    if pid == 0:
        inherited = gradb.torch.is_attached()
        if os.fork() == 0:  # a child that only detaches
            gradb.torch.detach()
            os._exit(1 if gradb.torch.is_attached() else 0)
        inherited = inherited or os.wait()[1] != 0
        net(torch.ones(4, 3)).pow(2).mean().backward()  # the parent's hooks are here, and dead
        gradb.torch.attach(net, optimizer)
        ok = not inherited and gradb.torch.is_attached() and gradb.torch._agent is not agent
        net(torch.ones(4, 3)).pow(2).mean().backward()
        optimizer.step()
        gradb.torch.detach()
        os._exit(0 if ok else 1)
    print("child", os.waitpid(pid, 0)[1])
    optimizer.step()
print("parent", gradb.torch.is_attached(), not agent.dead if agent else None)
"""



@torches.both
class ByHand(torches.Folder):
    def environment(self, **more):
        more.setdefault("GRADB_LIBRARY", torches.library())
        return torches.environment(PYTHONPATH=str(torches.PACKAGE), **more)

    def says(self, script, **more):
        """What a Python script prints, and what it writes to stderr."""
        done = subprocess.run([*torches.warm(self.python), self.write("script.py", script)], text=True,
                              env=self.environment(**more), capture_output=True, timeout=2 * harness.DEADLINE,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def visit(self, port, *more):
        """A debugger connects, shows the graph of a step, continues and disconnects. more: (line, its answer)."""
        with harness.Gradb("-nx", listen=f"127.0.0.1:{port}") as gradb:
            gradb.expect(r"Connected: training process 1, .*pytorch")
            first = int(gradb.expect(r"Stopped .*step (\d+)").group(1))
            last = int(gradb.run("step 2", r"Stopped at the end of step (\d+)").group(1))
            self.assertGreater(last, first)
            gradb.run("info node net/linear", "(?i)linear")
            gradb.run("print net/weight", r"\[.*\d")
            gradb.run("print net/weight.grad", r"\[.*\d")
            for line, answer in more:
                gradb.send(line)
                gradb.expect(answer)
            gradb.send("detach")
            gradb.expect("(?i)detached")
            gradb.send("quit")
            self.assertEqual(gradb.finish(), 0, gradb.text())
        return last

    def test_debugger_comes_later_and_again(self):
        port = free_port()
        trainer = subprocess.Popen([*torches.warm(self.python), self.write("train.py", LONG)], text=True,
                                   stdout=subprocess.PIPE,
                                   env=self.environment(GRADB_ADDRESS=f"127.0.0.1:{port}"))
        self.addCleanup(trainer.stdout.close)
        self.addCleanup(trainer.wait)
        self.addCleanup(trainer.kill)
        self.assertEqual(trainer.stdout.readline(), "connected: False\n")
        before = self.visit(port, ("set evaluate-code off\ncall 6 * 7", "evaluate-code` is off"))
        self.assertGreater(self.visit(port, ("set evaluate-code on\ncall 6 * 7", r"\b42\b")), before)

    def test_debugger_comes_to_an_unchanged_script(self):
        """README's `python -m gradb train.py`, and `gradb listen` while it trains."""
        port = free_port()
        plain = LONG.replace("import gradb.torch\n", "").replace("gradb.torch.attach(wait=0)", "False")
        self.assertNotIn("gradb", plain)
        trainer = subprocess.Popen([self.python, "-m", "gradb", self.write("train.py", plain)], text=True,
                                   stdout=subprocess.PIPE,
                                   env=self.environment(GRADB_ADDRESS=f"127.0.0.1:{port}", GRADB_WAIT="0"))
        self.addCleanup(trainer.stdout.close)
        self.addCleanup(trainer.wait)
        self.addCleanup(trainer.kill)
        self.assertEqual(trainer.stdout.readline(), "connected: False\n")
        self.visit(port)
        self.assertIsNone(trainer.poll())

    def test_detach_leaves_nothing(self):
        out, err = self.says(DETACHED)
        self.assertEqual(out, "connected False hooked True left [] agent False\n", out + err)
        self.assertEqual(err, "")
        with harness.Gradb("-nx") as gradb:
            address = f"127.0.0.1:{gradb.wait_listening()}"
            trainer = subprocess.Popen([*torches.warm(self.python), self.write("script.py", DETACHED)], text=True,
                                       stdout=subprocess.PIPE, env=self.environment(GRADB_ADDRESS=address))
            self.addCleanup(trainer.stdout.close)
            self.addCleanup(trainer.wait)
            self.addCleanup(trainer.kill)
            gradb.expect("Stopped before the first step")
            gradb.run("step", "Stopped at the end of step 1")  # operators and backward nodes are watched
            gradb.send("continue")
            gradb.expect("The training ended")
            self.assertEqual(trainer.stdout.readline(), "connected True hooked True left [] agent False\n")

    def test_attach_twice_and_in_a_child(self):
        out, err = self.says(ATTACHES)
        self.assertEqual(out.split("\n"), ["first False", "again False True", "child 0", "parent True True", ""], err)
        self.assertEqual(err, "")

    def test_disabled(self):
        out, err = self.says(ATTACHES, GRADB_DISABLE="1")
        self.assertEqual(out.split("\n"), ["first False", "again False True", "parent False None", ""])
        self.assertEqual(err, "")

    def test_library_is_missing_or_too_old(self):
        old = str(self.folder / "libgradb.so.1")
        source = self.write("old.c", "void *gradb_open(const void *options) { (void)options; return 0; }")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", old, source], check=True, capture_output=True)
        for library, why in (("/nowhere/libgradb.so.1", "No such file"), (old, "too old")):
            with self.subTest(library=library):
                out, err = self.says(ATTACHES.replace('print("again"', 'sys.exit(0); print("again"'),
                                     GRADB_LIBRARY=library)
                self.assertEqual(out, "first False\n")
                self.assertRegex(err, r"\Agradb: cannot attach to PyTorch: cannot load libgradb \(.*" + why
                                 + r".*\); set GRADB_LIBRARY.*\n\Z")


if __name__ == "__main__":
    harness.main()
