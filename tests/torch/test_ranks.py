# SPDX-License-Identifier: GPL-3.0-or-later
"""Several ranks: processes of one job over gloo, moved, stopped and compared together."""
import os
import re
import signal
import subprocess

import harness
import torches

# What happens to only one rank happens to rank 1: NaN in the data of step 4, a metric in step 6, and another weight
# from step 8 on. The model is gone when the group ends: see scripts/ddp.py.
TRAIN = """
import sys
import torch
import torch.distributed as dist
from torch import nn
import gradb.torch
def train(rank, steps):
    torch.manual_seed(7)
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    torch.manual_seed(100 + rank)
    for step in range(1, steps + 1):
        x = torch.randn(16, 4)
        y = x.sum(1, keepdim=True)
        if rank == 1 and step == 4:
            spoilt = y * float("nan")
        if rank == 1 and step == 8:
            with torch.no_grad():
                net.module[2].bias += 1
        loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        gradb.torch.log("odd", float(rank == 1 and step == 6))
        optimizer.step()
torch.set_num_threads(1)
dist.init_process_group("gloo")
train(dist.get_rank(), int(sys.argv[1]))
dist.destroy_process_group()
"""


SCRIPT = """\
[rank 0] Stopped before the first step.
All 3 ranks are stopped before the first step.
4 parameters are equal on 3 ranks at the first stop.
[rank 0] step 1, train/randn (randn)
train.py:13\t        x = torch.randn(16, 4)
[Training process #, rank 0 of 3, stopped]
here
[Training process #, rank 1 of 3, stopped]
here
[Training process #, rank 2 of 3, stopped]
here
[rank 0] Stopped at the end of step 1.
odd = 0, lr = 0.01, loss = #
All 3 ranks are stopped at the end of step 1.
[Training process #, rank 2 of 3, stopped]
[rank 2] Stopped at the end of step 2.
odd = 0, lr = 0.01, loss = #
All 3 ranks are stopped at the end of step 2.
Temporary breakpoint 1 at net/2/linear (linear)
Continuing.
[rank 2] Temporary breakpoint 1, step 3, forward, net/2/linear (linear)
train.py:20\t        loss = (net(x) - y).pow(2).mean()
All 3 ranks are stopped in step 3.
  0 net/2/linear
  1 net/2/linear
* 2 net/2/linear
[rank 2] Stopped at the end of the forward phase, step 3, train/mean (mean)
train.py:20\t        loss = (net(x) - y).pow(2).mean()
All 3 ranks are stopped in step 3.
[rank 2] step 4, forward, net/2/linear (linear)
train.py:20\t        loss = (net(x) - y).pow(2).mean()
All 3 ranks are stopped in step 4.
Continuing.
"""


class Ranks(torches.Folder):
    """What the cases share."""
    maxDiff = None

    def words(self, count, steps, **more):
        """The command line of a job."""
        return [*torches.ranks(self.python, count, **more), self.write("train.py", TRAIN), str(steps)]

    def interactive(self, count, steps):
        run = "run -- " + " ".join(self.words(count, steps, limit=0))
        gradb = harness.Gradb("-nx", command=(), env=torches.environment(), cwd=self.folder)
        self.addCleanup(gradb.__exit__)
        gradb.send("set start-timeout 0")
        gradb.send(run)
        return gradb


@torches.both
class Two(Ranks):
    """Two ranks, from a prompt."""

    def test_together(self):
        gradb = self.interactive(2, 1000000)
        gradb.expect(r"^\[rank 0\] Stopped before the first step\.$")
        gradb.expect(r"^All 2 ranks are stopped before the first step\.$")
        gradb.send("info ranks")
        pids = [int(gradb.expect(rf"{mark}\s+\d+\s+{rank} of 2\s+(\d+) .*\bstopped\s+0\b").group(1))
                for rank, mark in enumerate((r"\*", " "))]
        self.steps(gradb)
        self.a_hit_between_steps(gradb)
        self.divergence(gradb)
        self.a_pause(gradb)
        self.one_is_lost(gradb, pids[1])

    def steps(self, gradb):
        gradb.run("step 2", r"^\[rank 0\] Stopped at the end of step 2\.$")
        gradb.expect("^All 2 ranks are stopped at the end of step 2")
        gradb.send("rank all print loss")
        losses = []
        for rank in range(2):
            gradb.expect(rf"^\[Training process \d, rank {rank} of 2, stopped\]$")
            losses.append(gradb.expect(r"^loss = (\S+) \(step 2\)$").group(1))
        self.assertNotEqual(*losses)
        gradb.run("rank check", "^8 tensors agree on 2 ranks")  # four parameters and their momentum
        gradb.run("rank 2", "there is no rank 2: the job has ranks 0 to 1")

    def a_hit_between_steps(self, gradb):
        """In the middle of the step the other rank waits in the all-reduce; at its end both are stopped there."""
        gradb.run("watch TO on mul*", "^Watchpoint 1")
        gradb.send("continue")
        gradb.expect(r"^\[rank 1\] Watchpoint 1, step 4, (?:\w+, )?(?:\w+/)?mul ")
        gradb.expect("^Rank 0 is running: it may be waiting in a collective")
        gradb.expect("^Rank 1 is stopped in step 4")
        gradb.run("info hits", "^Rank 1 of 2:")  # of the rank that hit it, which is selected
        gradb.expect("#1 .*mul:0")
        gradb.run("rank check", "error: .*rank 0 is not stopped")
        gradb.send("delete")
        gradb.run("step", r"^\[rank 1\] Stopped at the end of step 4\.$")
        gradb.expect("^All 2 ranks are stopped at the end of step 4")
        gradb.run("rank 0", "rank 0 of 2, stopped")
        gradb.run("info hits", "^Rank 1 has 1 hit ")
        gradb.run("info hits -ranks", r"^\[rank 1\] #1 .* step 4 .*mul:0")
        gradb.run("watch odd > 0", "^Watchpoint 2")
        gradb.send("continue")
        gradb.expect(r"^\[rank 1\] Watchpoint 2, at the end of step 6")
        gradb.expect("^All 2 ranks are stopped at the end of step 6")
        gradb.run("rank", "rank 1 of 2, stopped")
        gradb.send("delete 2")

    def divergence(self, gradb):
        gradb.run("tcatch divergence", "^Temporary catchpoint 3")
        gradb.send("continue")
        gradb.expect(r"^\[rank 1\] Catchpoint 3: divergence, step 8$")
        gradb.expect(r"^  net/2/bias:0$")
        gradb.expect("^All 2 ranks are stopped at the end of step 8")
        gradb.run("why", "^net/2/bias is not the same on all ranks: rank 1 is the first that differs,$")
        gradb.expect("^though net/2/bias.grad is: ")
        gradb.run("rank check", "^1 of 8 tensors differs between 2 ranks")
        gradb.expect(r"^net/2/bias\s+1$")
        gradb.run("rank check *weight", "^2 tensors agree on 2 ranks")

    def a_pause(self, gradb):
        """They run freely until they are asked to stop at the same boundary."""
        for _ in range(3):
            gradb.run("continue", "^Continuing")
            gradb.interrupt()
            step = gradb.expect(r"^\[rank 1\] Interrupted, at the end of step (\d+)\.$").group(1)
            gradb.expect(f"^All 2 ranks are stopped at the end of step {step}\\.$")
        gradb.send("watch odd > 1")  # from boundary to boundary, in the background
        gradb.send("continue &")
        gradb.send("step")
        gradb.send("interrupt")
        step = gradb.expect(r"^\[rank 1\] Interrupted, at the end of step (\d+)\.$").group(1)
        gradb.expect(f"^All 2 ranks are stopped at the end of step {step}\\.$")
        gradb.send("delete")

    def one_is_lost(self, gradb, pid):
        gradb.run("print loss", r"^loss = (\S+)")
        os.kill(pid, signal.SIGKILL)
        gradb.expect(r"^\[rank 1\] The training process was lost")
        gradb.run("print loss", r"^loss = (\S+)")
        gradb.run("rank 0", "rank 0 of 2, stopped")
        gradb.send("step")
        gradb.expect(r"^\[rank 0\] (Exception|The training ended)")
        gradb.run("info ranks", r"0 of 2 ")
        gradb.expect(r"1 of 2 .* lost ")
        gradb.send("kill")
        gradb.send("quit")
        gradb.finish()


# Each rank holds one half of each parameter.
SHARDED = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(7)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
whole = [tuple(parameter.shape) for parameter in net.parameters()]
for part in (net[0], net[2], net):
    fully_shard(part, mesh=init_device_mesh("cpu", (2,)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
torch.manual_seed(100 + dist.get_rank())
for step in range(3):
    x = torch.randn(8, 4)
    loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 100.0)
    optimizer.step()
    if step == 1:
        os.write(1, b"bias %d %s\\n" % (dist.get_rank(), str(net[0].bias.to_local().tolist()).encode()))
dist.destroy_process_group()
"""


# Older versions have no fully_shard, or only one for CUDA.
SHARDS = """
import torch, torch.distributed.fsdp
print(hasattr(torch.distributed.fsdp, "fully_shard") and hasattr(torch.cpu.Stream, "record_event"))
"""


class Sharded(Ranks):
    """A model that fully_shard spreads over two ranks: each shows its part and says so."""
    which = staticmethod(torches.pip)

    def setUp(self):
        super().setUp()
        shards = subprocess.run([*torches.warm(self.python), "-c", SHARDS], capture_output=True, text=True, check=True,
                                env=torches.environment(GRADB_DISABLE="1"), timeout=harness.DEADLINE)
        if shards.stdout.strip() != "True":
            self.skipTest("this PyTorch's fully_shard does not work on the CPU")

    def test_the_local_part(self):
        done = self.gradb([*torches.ranks(self.python, 2), self.write("sharded.py", SHARDED)],
                          "watch 'norm > 1e9' on weights,gradients", "watch TO on all", "step 2",
                          "info node net/0/weight", "rank all print net/0/bias", "step",
                          "info node net/0/weight.gathered", "info nodes input/*", "inputs clip_grad_norm_/_foreach_norm",
                          "continue", "info log")
        self.assertEqual((done.stderr, done.returncode), ("", 0), done.stdout)
        self.assertRegex(done.stdout, r"output :0 +float32 \(4, 4\), 64 B\n(?s:.*)value = local shard of \(8, 4\)")
        # Parameters that are gathered while it runs are watched as it runs, and are not weights.
        self.assertRegex(done.stdout, r"net/0/weight\.gathered\n(?s:.*)output :0 +float32 \(8, 4\), 128 B")
        self.assertNotIn("could not be checked", done.stdout)
        printed = [[round(float(number), 4) for number in numbers.split()]
                   for numbers in re.findall(r"net/0/bias:0\nfloat32 \(4,\) .*\n\[([^\]]*)\]", done.stdout)]
        told = sorted(re.findall(r"bias (\d) \[(.*)\]", done.stdout))
        self.assertEqual(printed, [[round(float(number), 4) for number in numbers.split(",")] for _, numbers in told])
        self.assertEqual(len(printed), 2)
        self.assertNotIn("input/tensor", done.stdout)  # the parts of the gradients are clipped
        self.assertRegex(done.stdout, r"clip_grad_norm_/_foreach_norm \(_foreach_norm\)\n.*net/0/weight\.grad ")
        # Each rank has its own part of every tensor: nothing agrees, and nothing differs.
        self.assertNotRegex(done.stdout, r"(equal|differ).* at the first stop")

    def test_watchers_compute_with_no_part(self):
        """That would be a collective, or a read at address 0. Module.to() swaps parts, which may have weak references."""
        converted = SHARDED.replace("    if step == 1:", "    net.double()\n    net.float()\n    if step == 1:", 1)
        script = self.write("converted.py", converted)
        done = self.gradb([*torches.ranks(self.python, 2), script], "set on-error continue", "watch TO on all", "step",
                          "rank all why", "continue", "info log -a")
        self.assertIn("From now on the order of calls", done.stdout)
        self.assertEqual(done.stdout.count("The training ended."), 2, done.stdout + done.stderr)
        self.assertEqual(len(re.findall(r"(?m)^bias \d", done.stdout)), 2)

    def test_no_part_is_compared(self):
        done = self.gradb([*torches.ranks(self.python, 2), self.write("sharded.py", SHARDED)], "step 2", "rank check")
        self.assertRegex(done.stderr, r"(?m)^error: no tensor was compared on 2 ranks: [1-9]\d* are sharded or "
                                      r"unreadable, 0 are on one rank only$")
        self.assertEqual(done.returncode, 1, done.stdout)


@torches.both
class Three(Ranks):
    """Three ranks, from a command file."""

    def test_a_script(self):
        """A rank that was moved alone is joined by the others; breakpoints and runs to a node hold for all."""
        done = self.gradb(self.words(3, 6), "set rank-patience 3600", "next", "rank all echo here\\n", "step", "rank 2",
                          "step", "tbreak net/2/linear", "continue", "info ranks", "finish phase", "until net/2/linear",
                          "continue")
        text = done.stdout
        for pattern, instead in ((re.escape(str(self.folder)) + "/", ""),
                                 (r"Connected: .*\n|Starting program: .*\n|   Num  Rank .*\n", ""),
                                 (r"(Rank 0 runs alone|Waiting for rank).*\n", ""),  # printed on a slow machine
                                 (r"loss = [\d.]+\n", "loss = #\n"), (r"\[Training process \d", "[Training process #"),
                                 (r"([* ])    \d  (\d) of 3 .* stopped +3  (\S+) .*", r"\1 \2 \3")):
            text = re.sub(pattern, instead, text)
        ended = text.rindex("Continuing.\n") + len("Continuing.\n")
        self.assertEqual(text[:ended], SCRIPT, done.stderr)
        self.assertEqual(sorted(text[ended:].splitlines()), ["[rank %d] The training ended." % rank for rank in range(3)])
        self.assertEqual((done.stderr, done.returncode), ("", 0))


@torches.both
class AtLines(Ranks):
    """Two ranks that stop at lines of the script."""

    def test_the_stop_names_the_rank(self):
        done = self.gradb(self.words(2, 4), "set rank-patience 1", "break train.py:13", "continue", "rank all backtrace",
                          "finish", "delete", "until 16", "rank 1", "info line", "continue")
        said = done.stdout.replace(str(self.folder) + "/", "")
        self.assertEqual((done.stderr, done.returncode), ("", 0), said)
        for text in ("Breakpoint 1 at train.py:13 (train)\n",
                     "[rank 0] Breakpoint 1, before the first step, in train\ntrain.py:13\t        x = torch.randn(16, 4)\n"
                     "All 2 ranks are stopped before the first step.\n",
                     "Run till exit from #0  train.py:13 in train\n[rank 0] Breakpoint 1, after step 1, in train\n",
                     "[rank 1] after step 3, in train\ntrain.py:16\t",  # only this rank runs that line
                     "Rank 1 is stopped at the end of step 3.\n", "Line 16 of train.py is in train\n"):
            self.assertIn(text, said)
        self.assertEqual(said.count("#0  train.py:13 in train\n      x = torch.randn"), 2, said)


# Nothing makes the weights equal.
UNEQUAL = """
import sys
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(7)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
early = sys.argv[1] == "early"
if early and dist.get_rank() == 1:
    with torch.no_grad():
        net[2].weight += 1
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
if not early and dist.get_rank() == 1:
    with torch.no_grad():
        net[2].weight += 1
for step in range(3):
    loss = net(torch.ones(2, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    dist.barrier()
dist.destroy_process_group()
"""


@torches.both
class Unequal(Ranks):
    """Ranks that do not start with the same weights."""

    def test_said_once(self):
        """At the first stop, by name; and what dprintf prints names its rank."""
        done = self.gradb([*torches.ranks(self.python, 2), self.write("unequal.py", UNEQUAL), "early"],
                          'dprintf type:mean,"step %d",step', "step", "step")
        self.assertEqual(re.findall(r"^.* at the first stop.*$", done.stdout, re.M),
                         ["1 of 4 parameters differs between 2 ranks at the first stop: net/2/weight (rank 1) (see \"rank "
                          "check\")."], done.stdout)
        self.assertEqual(sorted(re.findall(r"^\[rank \d\] step \d$", done.stdout, re.M)),
                         ["[rank %d] step %d" % (rank, step) for rank in range(2) for step in (1, 2)], done.stdout)
        self.assertEqual((done.stderr, done.returncode), ("", 0))

    def test_after_the_first_stop(self):
        """What the script changes between the first stop and step 1 is seen at the end of that step."""
        done = self.gradb([*torches.ranks(self.python, 2), self.write("unequal.py", UNEQUAL), "late"], "step", "step")
        self.assertIn("4 parameters are equal on 2 ranks at the first stop.\n", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^\d of 4 parameters differ between 2 ranks at the end of step 1: .*\(rank 1\)")
        self.assertEqual((done.stderr, done.returncode), ("", 0))


# Two epochs of three steps, each rank with data of its own.
EPOCHS = """
import hashlib
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(7)
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
torch.manual_seed(100 + dist.get_rank())
loader = DataLoader(torch.randn(12, 4), batch_size=4, shuffle=True)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        (net(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
held = b"".join(parameter.detach().numpy().tobytes() for parameter in net.parameters())
print("rank %d: %s\\n" % (dist.get_rank(), hashlib.sha256(held).hexdigest()), end="", flush=True)
dist.destroy_process_group()
"""


@torches.both
class Events(Ranks):
    """Events of a training: those of rank 0 count, once."""

    def test_stops_and_commands(self):
        program = [*torches.ranks(self.python, 2), self.write("epochs.py", EPOCHS)]
        done = self.gradb(program, "on step-end every 2 print step", "on epoch-end print epoch",
                          "tcatch step-end if step == 2", "catch epoch-end", "continue", "rank check", *["continue"] * 2,
                          "info breakpoints", "continue", "info log -a")
        said = done.stdout
        self.assertEqual((done.stderr, done.returncode), ("", 0), said)
        self.assertEqual(re.findall(r"(?m)^(.*atchpoint \d \(.*)$", said), [
            "[rank 0] Temporary catchpoint 3 (step-end, epoch 1, batch 2), at the end of step 2.",
            "[rank 0] Catchpoint 4 (epoch-end, epoch 1), at the end of step 3.",
            "[rank 0] Catchpoint 4 (epoch-end, epoch 2), at the end of step 6."])
        self.assertIn("All 2 ranks are stopped at the end of step 2.\n", said)
        self.assertIn("\n4 tensors agree on 2 ranks.\n", said)
        self.assertEqual(re.findall(r"(?m)^(?:\[rank \d\] )?((?:step|epoch) = \d \(step \d\))$", said), [
            "step = 2 (step 2)", "epoch = 1 (step 3)", "step = 4 (step 4)", "step = 6 (step 6)", "epoch = 2 (step 6)"])
        self.assertEqual(re.findall("already hit (.*)", said), ["3 times", "2 times", "2 times"])
        self.assertEqual(sorted(re.findall(r"\[rank (\d)\] The training ended", said)), ["0", "1"])
        bare = subprocess.run(program, env=torches.environment(GRADB_DISABLE="1"), cwd=self.folder, capture_output=True,
                              text=True, check=True, timeout=harness.DEADLINE).stdout
        weights = sorted(re.findall(r"(?m)^rank \d: \w{64}$", said))
        self.assertEqual((len(weights), weights), (2, sorted(bare.splitlines())))


class Hanging(Ranks):
    """How the tests end a job that would never end."""
    which = staticmethod(torches.debian)

    def test_where_it_stood(self):
        """It ends by itself and prints where each rank was, which would otherwise only be in gradb's log."""
        script = self.write("hangs.py", "import threading\ndef hang():\n    threading.Event().wait()\nhang()\n")
        done = self.gradb([*torches.ranks(self.python, 2, limit=3), script])
        for rank in range(2):
            self.assertRegex(done.stderr, rf"rank {rank} did not end in 3 s(?s:.*)hangs\.py\", line 3 in hang\n")
        self.assertIn("exited with status 1", done.stdout + done.stderr)


if __name__ == "__main__":
    harness.main()
