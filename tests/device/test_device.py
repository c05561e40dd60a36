# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulated device itself: it computes what the CPU does, and shows each of the mistakes that it is made to show.

Each program runs alone, under both names of the device. Without build/emulated-venv, which ./dev test makes, the cases
are skipped."""
import os
import signal
import subprocess
import unittest

import harness
import torches

PYTHON = torches.emulated()
NAMES = ("emu", "cuda")
LATE = ("lazy", "random:1", "random:2")
START = """
import torch
from emulated import native
D = torch.get_default_device().type
device = getattr(torch, D)
"""

# Mistakes, each a function that returns whether what it computed is right; with `fixed`, the same without the mistake.
MISTAKES = """
def reads_too_early_on_another_stream(fixed):
    side = device.Stream()
    x = torch.zeros(4096)
    device.synchronize()
    x.fill_(1)
    if fixed:
        side.wait_stream(device.current_stream())
    with device.stream(side):
        seen = x.sum()
    side.synchronize()
    return seen.item() == 4096

def host_reads_a_copy_too_early(fixed):
    x = torch.full((1000,), 1.0)
    host = pinned()
    host.copy_(x, non_blocking=True)
    if fixed:
        device.current_stream().synchronize()
    return host[0] == 1

def event_is_recorded_too_early(fixed):
    x = torch.full((1000,), 1.0)
    host, event = pinned(), device.Event()
    if not fixed:
        event.record()
    host.copy_(x, non_blocking=True)
    if fixed:
        event.record()
    event.synchronize()
    return host[0] == 1

def memory_is_freed_while_another_stream_uses_it(fixed):
    side = device.Stream()
    x = torch.full((4096,), 1.0)
    side.wait_stream(device.current_stream())
    with device.stream(side):
        y = x * 2
    if fixed:
        x.record_stream(side)
    del x
    device.current_stream().synchronize()
    side.synchronize()
    return y.sum().item() == 8192

def host_writes_what_a_copy_still_reads(fixed):
    host = pinned().fill_(1)
    x = host.to(D, non_blocking=True)
    if fixed:
        device.current_stream().synchronize()
    host.fill_(-1)
    return x.sum().item() == 1000

def pinned_memory_is_freed_and_used_again(fixed):
    host = pinned().fill_(1)
    first = host.data_ptr()
    x = host.to(D, non_blocking=True)
    place = host.numpy() if not fixed else None
    del host
    if place is not None:
        place[:] = -1
    return x.sum().item() == 1000

def memory_is_read_before_it_is_written(fixed):
    return (torch.ones(100) if fixed else torch.empty(100)).sum().item() == 100

def memory_is_read_after_it_is_freed(fixed):
    x = torch.full((1000,), 1.0)
    y = x.view(10, 100)
    kept = x.untyped_storage()
    if not fixed:
        kept.resize_(0)
        kept.resize_(4000)
    return y.sum().item() == 1000

def waits_for_the_stream_of_another_device(fixed):
    x = torch.full((1000,), 1.0, device=torch.device(D, 1))
    host = pinned()
    host.copy_(x, non_blocking=True)
    torch.accelerator.current_stream(1 if fixed else 0).synchronize()
    return host[0] == 1

def reads_what_a_device_still_copies_to_another(fixed):
    side = device.Stream()
    x = torch.full((4096,), 1.0)
    y = torch.zeros(4096, device=torch.device(D, 1))
    torch.accelerator.synchronize(0)
    torch.accelerator.synchronize(1)
    with device.stream(side):
        y.copy_(x + 1, non_blocking=True)
    if not fixed:
        other = torch.Stream(device=torch.device(D, 1))
        with other:
            return y.sum().item() == 8192
    return y.sum().item() == 8192

def pinned():
    return torch.zeros(1000, device="cpu", pin_memory=True)

import sys
for name, function in list(globals().items()):
    if callable(function) and getattr(function, "__code__", None) and function.__code__.co_varnames[:1] == ("fixed",):
        found = [bool(function(sys.argv[1] == "fixed")) for _ in range(8) if not device.synchronize()]
        print("%s: %d of %d right" % (name, sum(found), len(found)))
"""

SAME = """
def check(name, made, wanted):
    if not torch.equal(made.cpu(), wanted):
        print("differs:", name, made.cpu().flatten()[:4], wanted.flatten()[:4])

def run(where):
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
                              torch.nn.Linear(288, 10)).to("cpu").to(where)
    x = torch.randn(4, 3, 8, 8, device="cpu").to(where)
    y = torch.randint(0, 10, (4,), device="cpu").to(where)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.cat([one.detach().cpu().flatten() for one in net.parameters()])

import copy
torch.set_default_device("cpu")
apart = float((run(D) - run("cpu")).abs().max())
if apart > 1e-6:
    print("differs: training", apart)
x = torch.randn(5, 6, dtype=torch.float64)
y = x.to(D)
views = {"t": lambda a: a.t(), "step": lambda a: a[::2, 1:], "row": lambda a: a[3], "diagonal": lambda a: a.diagonal(),
         "unfold": lambda a: a.unfold(1, 2, 2), "expand": lambda a: a[:1].expand(5, 6), "view": lambda a: a.view(3, 10),
         "chosen": lambda a: a[a > 0], "index": lambda a: a[[1, 2]], "real": lambda a: torch.view_as_real(
             torch.complex(a, a)), "conj": lambda a: torch.complex(a, a).conj().resolve_conj(), "sort": lambda a:
         a.sort(1)[1], "unique": lambda a: (a > 0).unique(), "nonzero": lambda a: (a > 0).nonzero(), "where": lambda a:
         torch.where(a > 0, a, -a), "cumsum": lambda a: a.cumsum(0), "mm": lambda a: a @ a.t(), "cat": lambda a:
         torch.cat([a, a]), "max": lambda a: a.max(1)[0], "topk": lambda a: a.topk(2)[0], "bfloat16": lambda a:
         a.bfloat16().float(), "clone": lambda a: a.t().clone(), "stack": lambda a: torch.stack([a, a], 1),
         "mse": lambda a: torch.nn.functional.mse_loss(a, a + 1), "smooth": lambda a:
         torch.nn.functional.smooth_l1_loss(a, a + 2), "copied": lambda a: copy.deepcopy(a)}
for name, view in views.items():
    check(name, view(y), view(x))
out = torch.empty(0, device=D)
torch.add(y.float(), y.float(), out=out)
check("out", out, x.float() + x.float())
y[1:3] = 7
x[1:3] = 7
check("setitem", y, x)
print("done")
"""

ENDS = {
    "a read by the host": ("import ctypes; x = torch.ones(4); device.synchronize(); "
                           "ctypes.c_float.from_address(x.data_ptr()).value", -signal.SIGSEGV,
                           "the host has read or written device memory"),
    "out of memory": ("native.fail_allocation(3)\nfor _ in range(3): torch.ones(4, device=D)\n", 1, "OutOfMemoryError"),
    "an error that surfaces later": (
        "x = torch.ones(4)\nnative.fail_kernel(1)\nx.add_(1)\nprint('launched', flush=True)\ndevice.synchronize()\n", 1,
        "launched"),
    "two devices in one operator": ("torch.ones(2) + torch.ones(2, device=D + ':1')", 1, "on the same device"),
    "a forked process": ("torch.ones(1)\nimport os\npid = os.fork()\nif pid == 0:\n    torch.ones(1)\n    os._exit(0)\n"
                         "import sys\nsys.exit(1 if os.waitpid(pid, 0)[1] else 0)\n", 1, "forked"),
}


class Device(unittest.TestCase):
    def setUp(self):
        if PYTHON is None:
            self.skipTest("no build/emulated-venv: ./dev test makes it where pip can install PyTorch 2.13")
        self.folder = harness.folder_of(self)

    def run_program(self, text, *args, name="emu", schedule="eager"):
        """The finished process; its stderr without PyTorch's warning about kernels that are replaced."""
        script = self.folder / "program.py"
        script.write_text(START + text, encoding="utf-8")
        env = dict(os.environ, OMP_NUM_THREADS="1", GRADB_EMULATED=name, GRADB_EMULATED_SCHEDULE=schedule)
        return subprocess.run([PYTHON, str(script), *args], env=env, text=True, capture_output=True, check=False,
                              timeout=4 * harness.DEADLINE)

    def test_mistakes_are_shown_and_right_programs_are_right(self):
        for schedule in LATE:
            with self.subTest(schedule=schedule):
                right = self.run_program(MISTAKES, "fixed", schedule=schedule)
                self.assertEqual(right.returncode, 0, right.stderr)
                self.assertEqual(right.stdout.count("8 of 8 right"), 10, right.stdout)
                wrong = self.run_program(MISTAKES, "mistake", schedule=schedule)
                self.assertEqual(wrong.returncode, 0, wrong.stderr)
                self.assertEqual(len(wrong.stdout.splitlines()), 10)
                self.assertNotIn("8 of 8 right", wrong.stdout)

    def test_it_computes_what_the_cpu_does(self):
        for name in NAMES:
            for schedule in ("eager", *LATE):
                with self.subTest(name=name, schedule=schedule):
                    done = self.run_program(SAME, name=name, schedule=schedule)
                    self.assertEqual((done.stdout, done.returncode), ("done\n", 0), done.stderr)

    def test_what_ends_a_program(self):
        for what, (text, status, said) in ENDS.items():
            with self.subTest(what=what):
                done = self.run_program(text)
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                self.assertIn(said, done.stdout + done.stderr)

    def test_what_is_counted(self):
        done = self.run_program("""
x = torch.ones(100)
device.synchronize()
native.reset_counts()
y = x * 2
y.sum().item()
device.current_stream().synchronize()
event = device.Event()
event.record()
event.synchronize()
found = native.counts()
print({name: found[name] for name in ("kernels", "waits_implicit", "waits_stream", "waits_event", "records")})
""")
        self.assertEqual(done.stdout, "{'kernels': 2, 'waits_implicit': 1, 'waits_stream': 1, 'waits_event': 1, "
                                      "'records': 1}\n", done.stderr)


if __name__ == "__main__":
    harness.main()
