# SPDX-License-Identifier: GPL-3.0-or-later
"""The PyTorch agent on the emulated device: gradb prints what it prints for the same training on the CPU, changes none of
its numbers, and waits for the device as often as stated here; each fault in the agent's code for devices is noticed."""
import pathlib
import re
import subprocess
import sys

import harness
import torches
import warmed

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ("emu", "cuda")
# name -> the commands, and how many more kernels, copies to the host and waits than a bare step they may cost.
WATCHES = {"idle": ((), 0, 1, 0), "watch -step on 6 weights": (("watch -step TO on weights",), 1, 2, 1),
           "watch on all": (("watch TO on all",), 1, 42, 42), "diagnose": (("agent observe on",), 0, 4, 1)}
WAITS = ("waits_implicit", "waits_stream", "waits_event", "waits_device")
LATE = ("lazy", "random:3")
TRAINING = """
import hashlib, sys
import torch
from torch import nn
device = torch.get_default_device()
torch.set_default_device("cpu")  # what is random comes from the CPU's generator
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 3000), nn.ReLU(), nn.Linear(3000, 3)).to(device)
data, label = torch.randn(32, 6).to(device), torch.randint(0, 3, (32,)).to(device)
large = torch.arange(30000.0).reshape(300, 100).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
if device.type != "cpu":  # not on the default stream
    stream = torch.Stream(device=device)
    stream.wait_stream(torch.accelerator.current_stream())
    torch.accelerator.set_stream(stream)
for step in range(8):
    wide = (large * (step + 1)).t()
    loss = nn.functional.cross_entropy(net(data) * (float("inf") if step == 6 else 1.0), label)
    optimizer.zero_grad()
    (loss if step != 6 else nn.functional.cross_entropy(net(data), label)).backward()
    optimizer.step()
digest = hashlib.sha256(b"".join(one.detach().cpu().numpy().tobytes() for one in net.parameters())).hexdigest()
open(sys.argv[1], "w").write(digest)
"""
COMMANDS = ("watch TO on all", "watch -step 'abs_mean(cur-prev) > 1e6' on weights",
            "watch -step 'max > 100' on weights, /[.]grad$/", "step 2", "print net/0/weight[0:2]",
            "stats net/0/weight", "stats net/0/weight.grad", "stats net/2/weight diff", "break net/2/linear",
            "continue", "print net/1/relu[0:2, 0:4]", "stats mul", "print mul[0, 0:3]", "stats t", "print t[5:9:2, -3:]",
            "print mul[:, 0:30]", "next", "finish phase", "print optimizer/SGD/net/2/weight.momentum_buffer[0, 0:4]", "delete", "catch overflow",
            "continue", "info hits", "info scalars", "delete", "continue")
# The loss arrives late: each of these needs that of the step at whose end it is looked at.
LOSSES = ("step 2", "info scalars", "tbreak net/0/linear", "continue", "info scalars", "delete",
          "catch step-end if loss < 0.9", "continue", "info scalars", "delete", "watch loss < 0.5", "continue",
          "info scalars", "delete", "watch -step 'max > 100 * loss' on weights", "step", "delete", "continue")
AMP = """
import hashlib, sys
import torch
from torch import nn
device = torch.get_default_device()
torch.set_default_device("cpu")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3)).to(device)
data, label = torch.randn(32, 6).to(device), torch.randint(0, 3, (32,)).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler(device.type, init_scale=2.0 ** 18)
for step in range(8):
    with torch.autocast(device.type, dtype=torch.float16):
        loss = nn.functional.cross_entropy(net(data), label)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
digest = hashlib.sha256(b"".join(one.detach().cpu().numpy().tobytes() for one in net.parameters())).hexdigest()
open(sys.argv[1], "w").write("%s %g" % (digest, scaler.get_scale()))
"""
# What an idle step, and one that is looked at, ask of the device: the counts of one step, late in the training.
COUNTED = """
import sys
import torch
from torch import nn
from emulated import native
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
data, label = torch.randn(32, 6), torch.randint(0, 3, (32,))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(24):
    native.reset_counts()
    loss = nn.functional.cross_entropy(net(data), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    counts = native.counts()
open(sys.argv[1], "w").write(" ".join("%s=%d" % pair for pair in counts.items()))
"""


# An allocation fails that is gradb's: the first ones after the optimizer's step are.
SHORT = """
import hashlib, sys
import torch
from torch import nn
from emulated import native
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 3))
data, label = torch.randn(32, 6), torch.randint(0, 3, (32,))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
optimizer.register_step_post_hook(lambda *_: native.fail_allocation(NUMBER if step in (2, 4) else 0))
for step in range(1, 7):
    loss = nn.functional.cross_entropy(net(data), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
digest = hashlib.sha256(b"".join(one.detach().cpu().numpy().tobytes() for one in net.parameters())).hexdigest()
open(sys.argv[1], "w").write(digest)
"""


# Two ranks, each on its own device; gradients are averaged over gloo, on the host.
RANKS = """
import os, sys
import torch
import torch.distributed as dist
from torch import nn
rank, kind = int(os.environ["RANK"]), torch.get_default_device().type
device = torch.device(kind, rank) if kind != "cpu" else torch.device("cpu")
torch.set_default_device("cpu")
if kind != "cpu":
    torch.accelerator.set_device_index(rank)
def train():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
    torch.manual_seed(rank)
    data, label = torch.randn(32, 6).to(device), torch.randint(0, 3, (32,)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        loss = nn.functional.cross_entropy(net(data) * (float("inf") if step == 3 and rank == 1 else 1.0), label)
        optimizer.zero_grad()
        (loss if step != 3 else nn.functional.cross_entropy(net(data), label)).backward()
        for one in net.parameters():
            gradient = one.grad.cpu()
            dist.all_reduce(gradient)
            one.grad.copy_(gradient / 2)
        optimizer.step()
torch.set_num_threads(1)
dist.init_process_group("gloo")
train()
dist.destroy_process_group()
"""


class Agent(torches.Folder):
    which = staticmethod(torches.emulated)

    def setUp(self):
        super().setUp()
        self.digest = self.folder / "digest"

    def environment(self, name="emu", schedule="eager", **more):
        return torches.environment(GRADB_EMULATED=name, GRADB_EMULATED_SCHEDULE=schedule, **more)

    def words(self, text, python=None, name="emu", schedule="eager", **_):
        """The command line of a program, with torch and the device imported."""
        started = torches.warm(python) if python else warmed.command(
            self.python, "torch", self.environment(name, schedule, OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1"))
        return [*started, self.write("train.py", text), str(self.digest)]

    def taken(self):
        text = self.digest.read_text() if self.digest.exists() else ""
        self.digest.unlink(missing_ok=True)
        return text

    def bare(self, text, python=None, **env):
        """What a training computes without gradb."""
        done = subprocess.run(self.words(text, python, **env), env=self.environment(GRADB_DISABLE="1", **env), text=True,
                              capture_output=True, check=False, timeout=2 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.taken()

    def said(self, text, commands, python=None, **env):
        """What gradb says, and what the training computes."""
        words = " ".join('"%s"' % word for word in self.words(text, python, **env))
        done = harness.run_gradb("-nx", "--batch", "--listen", "127.0.0.1:0",
                                 *harness.typed("set start-timeout 0", "set on-error continue", "run -- " + words, *commands),
                                 env=self.environment(**env), cwd=self.folder, timeout=4 * harness.DEADLINE)
        text = (done.stdout + done.stderr).partition("Stopped before the first step.\n")[2]
        text = re.sub(r"\b(emu|cuda)(:0)?\b", "cpu", text)
        return text, self.taken()

    def counts(self, *commands, bare=False, text=COUNTED, **env):
        """name -> number in a step at the end, with these commands before the first one."""
        text = self.bare(text, **env) if bare else self.said(text, (*commands, "continue", "continue"), **env)[1]
        return {name: int(number) for name, number in (pair.split("=") for pair in text.split())}


    def waits(self, **env):
        """How often a step waits in which nothing is asked for."""
        return sum(number for name, number in self.counts(**env).items() if name in WAITS)


class Values(Agent):
    def test_it_says_what_it_says_on_the_cpu(self):
        expected, digest = self.said(TRAINING, COMMANDS, python=torches.pip())
        self.assertIn("float32 (2, 6)", expected)
        self.assertNotIn("error:", expected)
        for name in NAMES:
            for schedule in ("eager", *LATE):
                with self.subTest(name=name, schedule=schedule):
                    self.assertEqual(self.said(TRAINING, COMMANDS, name=name, schedule=schedule), (expected, digest))

    def test_losses_are_of_their_steps(self):
        expected, digest = self.said(TRAINING, LOSSES, python=torches.pip())
        self.assertNotIn("error:", expected)
        for schedule in ("eager", *LATE):
            with self.subTest(schedule=schedule):
                self.assertEqual(self.said(TRAINING, LOSSES, schedule=schedule), (expected, digest))

    def test_it_survives_allocations_that_fail(self):
        commands = ("watch -step TO on weights", "watch -step 'abs_mean(cur-prev) < 1e-9' on weights", "step 3",
                    "stats net/2/weight", "continue")
        expected = self.said(SHORT.replace("NUMBER", "0"), commands)
        self.assertIn("net/2/weight", expected[0])
        for number in (1, 2, 9, 30):
            with self.subTest(number=number):
                self.assertEqual(self.said(SHORT.replace("NUMBER", str(number)), commands), expected)

    def test_mixed_precision_computes_the_same(self):
        commands = ("watch TO on all", "step 3", "stats net/0/weight.grad", "catch overflow", "continue", "delete",
                    "continue")
        for name in NAMES:
            alone = self.bare(AMP, name=name, schedule="lazy")
            self.assertEqual(self.said(AMP, commands, name=name, schedule="lazy")[1], alone)

    def test_each_fault_is_noticed(self):
        sys.path.insert(0, str(HERE))
        from faults import FAULTS
        expected = self.said(TRAINING, COMMANDS, schedule="lazy")
        amp, idle = self.bare(AMP, schedule="lazy"), self.waits()
        for fault in ("", *FAULTS):
            with self.subTest(fault=fault):
                probes = {  # one after the other, until one notices it
                    "what gradb says": lambda: self.said(TRAINING, COMMANDS, schedule="lazy", GRADB_FAULT=fault) != expected,
                    "what the training computes": lambda: self.said(
                        AMP, ("step 2", "print net/0/weight", "stats net/0/weight", "continue"), schedule="lazy",
                        GRADB_FAULT=fault)[1] != amp,
                    "the waits of idle steps": lambda: self.waits(GRADB_FAULT=fault) != idle}
                noticed = next((what for what, differs in probes.items() if differs()), "nothing")
                print("# %s: noticed by %s" % (fault or "no fault", noticed))
                self.assertEqual(noticed != "nothing", bool(fault))


class Ranks(Agent):
    def together(self, python=None, **env):
        """What gradb says of the ranks."""
        words = [torches.DEBIAN, "-S", str(torches.HERE / "by_hand.py"), "2", str(harness.free_port()), str(harness.DEADLINE),
                 *self.words(RANKS, python, **env)]
        commands = ("watch TO on all", "step 2", "stats net/0/weight", "print net/2/bias", "rank 1",
                    "stats net/0/weight.grad", "continue", "info hits", "info ranks", "kill")
        done = harness.run_gradb("-nx", "--batch", "--listen", "127.0.0.1:0",
                                 *harness.typed("set start-timeout 0", "run -- " + " ".join('"%s"' % word for word in words),
                                                *commands),
                                 env=self.environment(**env), cwd=self.folder, timeout=4 * harness.DEADLINE)
        said, _, ranks = done.stdout.partition("Stopped before the first step.\n")[2].partition("Rank 0 is running")
        return re.sub(r"Training process \d+", "Training process #", said), re.findall(r"(cpu|cuda(?::\d)?) ", ranks)

    def test_each_on_its_device(self):
        expected, devices = self.together(python=torches.pip())
        self.assertIn("[rank 1] Watchpoint 1, step 4, forward, train/mul (mul)", expected)
        self.assertEqual(devices, ["cpu", "cpu"])
        said, devices = self.together(name="cuda", schedule="random:1")
        self.assertEqual(said, expected)
        self.assertEqual(devices, ["cuda:0", "cuda:1"])


class Check(Agent):
    """./dev device-check, which is for people with an accelerator."""

    def test_it_finds_nothing_wrong(self):
        code = ("import device_check, sys; device_check.MODELS = ('network',); "
                "device_check.WAYS = {'idle': (), 'watch -step on weights': device_check.WAYS['watch -step on weights']}; "
                "sys.argv[0] = 'device_check.py'; device_check.main()")
        done = subprocess.run([self.python, "-c", code, "--gradb", str(harness.GRADB), "--seconds", "0"],
                              env=self.environment("cuda", "lazy", PYTHONPATH=str(HERE)), text=True, capture_output=True,
                              check=False, timeout=4 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("device: cuda: emulated device", done.stdout)
        self.assertRegex(done.stdout, r"checks: [5-9]\d passed, 0 failed")
        self.assertRegex(done.stdout, r"(?m)^watch -step on weights +\d+ +2 +1$")


class Counts(Agent):
    def test_idle_steps_wait_for_nothing(self):
        """The loss is copied into pinned memory, and an event says when it is there: it is reported then."""
        for schedule in ("eager", *LATE):
            bare, idle = self.counts(bare=True, schedule=schedule), self.counts(schedule=schedule)
            for name in ("copies_to_host", "pinned", "records", "queries"):
                self.assertLessEqual(idle.pop(name), bare.pop(name) + (1 if name != "queries" else 9), name)
            self.assertEqual(idle, bare)

    def test_large_weights_are_looked_at_with_one_wait(self):
        large = COUNTED.replace("16", "300")
        bare = self.counts(bare=True, text=large)
        found = self.counts("watch -step TO on weights", "watch -step 'abs_mean(cur-prev) > 1e6' on weights", text=large)
        print("# watch -step, one of 360 kB   %s" % " ".join("%s=%d" % pair for pair in found.items() if pair[1]))
        self.assertEqual(sum(found[name] for name in WAITS), 1)
        self.assertLessEqual(found["kernels"], bare["kernels"] + 70)

    def test_what_each_way_of_watching_asks(self):
        """The numbers in docs/performance.md. Small tensors are copied; those of a whole step by one kernel."""
        bare = self.counts(bare=True)["kernels"]
        for what, (commands, kernels, copies, waits) in WATCHES.items():
            found = self.counts(*commands)
            self.assertLessEqual(found["kernels"], bare + kernels, what)
            self.assertLessEqual(found["copies_to_host"], copies, what)
            self.assertLessEqual(sum(found[name] for name in WAITS), waits, what)
            print("# %-24s %s" % (what, " ".join("%s=%d" % pair for pair in found.items() if pair[1])))


if __name__ == "__main__":
    harness.main()
