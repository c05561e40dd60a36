# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds the memory: `info memory` counts real bytes and finds what grows; `catch oom` and `why` at an allocation
that fails (scripts/oom.py, emulated with a limit)."""
import json

import harness
import torches

SCRIPT = torches.SCRIPTS / "oom.py"
FLOAT = 4
COUNTED = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.last = torch.nn.Linear(16, 3)
    def forward(self, x):
        return self.last(torch.tanh(self.norm(self.first(x)))).square().mean()
net = Net()
view = net.first.weight.view(-1)  # shares its memory
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
other = torch.zeros(1000)
for _ in range(8):
    optimizer.zero_grad(set_to_none=False)
    loss = net(torch.ones(32, 8))
    loss.backward()
    optimizer.step()
"""
LOSSES = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
kept = []
def train():
    losses = kept
    while len(losses) < 9:
        optimizer.zero_grad()
        loss = net(torch.ones(32, 8)).square().mean()  # here
        loss.backward(retain_graph=True)
        losses.append(loss)
        optimizer.step()
train()
"""
HOOKS = """
import torch
class Watcher:
    def __init__(self):
        self.seen = {}
    def note(self, module, given, output):
        self.seen.setdefault("tanh", []).append(output.detach().clone())
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
watcher = Watcher()
net[1].register_forward_hook(watcher.note)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
cache = {}
for step in range(9):
    optimizer.zero_grad()
    x = torch.ones(32, 8)
    cache[step] = x * 2
    net(x).square().mean().backward()
    optimizer.step()
"""
# Tensors of all kinds, and an object that nobody may touch.
KINDS = """
import torch
class Own(torch.Tensor):
    pass
class Hostile:
    __class__ = property(lambda self: 1 / 0)
    def __getattr__(self, name):
        1 / 0
net = torch.nn.Linear(4, 3)
net.register_buffer("coo", torch.eye(3).to_sparse())
lazy, hostile = torch.nn.LazyLinear(3), [Hostile()]
kept = [torch.ones(3).as_subclass(Own), torch.ones(3, device="meta"), torch.eye(3).to_sparse_csr(),
        torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), torch.ones(3, dtype=torch.complex64).conj()]
if hasattr(torch, "nested"):
    kept.append(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
embedding = torch.nn.Embedding(10, 4, sparse=True)
optimizers = torch.optim.SGD(net.parameters(), lr=0.1), torch.optim.SparseAdam(embedding.parameters())
for _ in range(4):
    net(embedding(torch.tensor([1, 2]))).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
"""
PACKED = """
import torch
from torch.autograd.graph import saved_tensors_hooks
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
count = 0
def unpack(held):
    global count
    count += 1
    return held[0]
for step in range(3):
    optimizer.zero_grad()
    with saved_tensors_hooks(lambda tensor: (tensor,), unpack):
        loss = net(torch.ones(32, 8)).square().mean()
    loss.backward()
    optimizer.step()
    with open("printed", "a") as file:
        print(step, count, file=file)
"""


def records_of(done, kind):
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [line for line in lines if line["type"] == kind]


def line_of(text, wanted):
    return next(number for number, line in enumerate(text.splitlines(), 1) if wanted in line)


FORWARD = "oom.py:%d in forward" % line_of(SCRIPT.read_text(), "return x + self.down(")


@torches.both
class Memory(torches.Folder):
    def reports(self, text, *commands):
        """The records of `info memory`."""
        done = self.gradb([self.python, self.write("train.py", text)], *commands, options=("--json",))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return records_of(done, "memory")

    def test_bytes_are_real(self):
        first, = self.reports(COUNTED, "step 2", "info memory")
        weights = FLOAT * (8 * 16 + 16 + 16 + 16 + 16 * 3 + 3)
        kinds = {kind: total["bytes"] for kind, total in first["kinds"].items()}
        self.assertEqual(kinds["weights"], weights)
        self.assertEqual(kinds["gradients"], weights)
        self.assertEqual(kinds["optimizer"], weights)  # the momentum
        self.assertEqual(kinds["buffers"], FLOAT * 32 + 8)
        self.assertEqual(first["kinds"]["weights"]["count"], 6)
        self.assertIn(FLOAT * 1000, [row["bytes"] for row in first["nodes"] if row["kind"] == "other"])
        self.assertGreater(first["rss"], first["bytes"])
        self.assertTrue(first["counted"])
        self.assertIn("catch oom", first["peak"]["note"])
        rows = {row["name"]: row for row in first["nodes"]}
        self.assertEqual(rows["net/first/weight"]["bytes"], FLOAT * 8 * 16)
        self.assertEqual(rows["net/first/weight"]["where"], "train.py:%d" % line_of(COUNTED, "return self.last"))

    def test_tensors_of_all_kinds(self):
        for observes in ((), ("catch oom",)):
            report, = self.reports(KINDS, *observes, "step 2", "info memory", "continue")
            self.assertEqual(report["kinds"]["weights"]["bytes"], FLOAT * (4 * 3 + 3 + 10 * 4))

    def test_activations_within_a_step(self):
        held, = self.reports(COUNTED, "step", "run-to net/tanh", "info memory")
        rows = {row["name"]: row for row in held["nodes"] if row["kind"] == "activations"}
        self.assertEqual(rows["net/tanh"]["bytes"], FLOAT * 32 * 16)
        self.assertEqual(rows["net/tanh"]["where"], "train.py:%d" % line_of(COUNTED, "torch.tanh"))
        self.assertRegex(rows["net/tanh"]["detail"], r"^float32 \(32, 16\)%s$" % (" cuda:0" * torches.on_device(self)))
        self.assertGreaterEqual(held["kinds"]["activations"]["bytes"], 2 * FLOAT * 32 * 16)

    def test_healthy_training_does_not_grow(self):
        first, second, third = self.reports(COUNTED, "step 2", "info memory", "step 2", "info memory", "step 3",
                                            "info memory")
        self.assertNotIn("growth_from", first)
        for report in (second, third):
            self.assertEqual((report["growth_from"], report["growth"]), (2, []))

    def test_list_of_losses(self):
        for observes in ((), ("catch oom",)):
            _, report = self.reports(LOSSES, *observes, "step 2", "info memory", "step 4", "info memory")
            leak, = report["growth"]
            self.assertEqual((report["growth_from"], report["growth_to"]), (2, 6))
            self.assertIn("mean", leak["name"])
            self.assertEqual(leak["where"], "train.py:%d" % line_of(LOSSES, "# here"))
            self.assertRegex(leak["holder"], r"^(losses|kept)\[\.\.\.\] \(list of 6 items\) in (train \()?train.py")
            # The input, the output of tanh, of the last layer and of its square are kept, in each step.
            self.assertGreater(leak["per_step"], FLOAT * 32 * 16)

    def test_hooks_and_caches(self):
        for observes in ((), ("catch oom",)):
            _, report = self.reports(HOOKS, *observes, "step 2", "info memory", "step 4", "info memory")
            self.assertEqual(len(report["growth"]), 2, report["growth"])
            hook, cache = report["growth"]
            self.assertEqual((hook["per_step"], hook["count"]), (FLOAT * 32 * 16, 4))
            self.assertEqual(hook["holder"], "watcher.seen['tanh'][...] (list of 6 items) in train.py")
            self.assertEqual((cache["per_step"], cache["count"]), (FLOAT * 32 * 8, 4))
            self.assertRegex(cache["holder"], r"^cache\[\d\] \(dict of 6 items\) in train.py$")
            if observes:
                self.assertEqual(hook["where"], "train.py:%d" % line_of(HOOKS, "setdefault"))
                self.assertEqual(cache["where"], "train.py:%d" % line_of(HOOKS, "cache[step]"))

    def test_hooks_of_saved_tensors_do_not_run(self):
        found = []
        for commands in (("step", "run-to net/2/linear", "info memory"), ()):
            done = self.gradb([self.python, self.write("train.py", PACKED)], *commands, "continue")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual("bytes in" in done.stdout or "KiB in" in done.stdout, bool(commands), done.stdout)
            found.append((self.folder / "printed").read_text())
        self.assertEqual(found[1], found[0] * 2)  # one after the other

    def test_peak_of_a_step(self):
        report, = self.reports(COUNTED, "catch oom", "step 3", "info memory")
        self.assertEqual(report["peak"]["step"], 3)
        self.assertGreater(report["peak"]["bytes"], report["kinds"]["weights"]["bytes"] * 3)
        self.assertRegex(report["peak"]["name"], r"aten")

    def test_metrics(self):
        done = self.gradb([self.python, self.write("train.py", COUNTED)], "step", "set memory-metrics on",
                          "watch memory_rss > 1e6 && memory_allocated > 1e3 && memory_peak >= %s" % (
                              "memory_allocated" if torches.on_device(self) else "memory_rss"), "continue",
                          "set memory-metrics off", "delete", "step 2", "info history memory_rss")
        self.assertIn("Watchpoint 1, at the end of step 2.", done.stdout)
        self.assertIn("memory_rss: 1 step recorded", done.stdout)

    def test_bad_input(self):
        done = self.gradb([self.python, self.write("train.py", COUNTED)], "set on-error continue", "catch oom sideways",
                          "agent oom maybe", "agent memory-report later", "agent memory-metrics on", "info memory now", "tcatch oom")
        for text in ('catch oom: expected "off"', "oom takes 'on' or 'off', not 'maybe'", "memory-report takes 'end'",
                     "use `set memory-metrics on` or `set memory-metrics off`",
                     "info memory: takes no argument but -a", 'there is no event "oom"'):
            self.assertEqual(done.stderr.count(text) + done.stdout.count(text), 1, text + done.stderr)


@torches.both
class OutOfMemory(torches.Folder):
    def stopped(self, where, *commands, batches="16,32,4096"):
        done = self.gradb([self.python, SCRIPT, where, batches], *commands, "continue", "why", "continue")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def why(self, where, *commands, batches="16,32,4096"):
        done = self.gradb([self.python, SCRIPT, where, batches], *commands, "continue", "why", options=("--json",))
        answer = records_of(done, "oom")
        self.assertEqual(len(answer), 1, done.stdout + done.stderr)
        return answer[0]

    def printed(self):
        """What the script has written, since the last time."""
        path = self.folder / "printed"
        text = path.read_text() if path.exists() else ""
        path.unlink(missing_ok=True)
        return text

    def test_forward(self):
        answer = self.why("forward", "catch oom")
        self.assertRegex(answer["node"], r"^net/blocks/\d/")
        self.assertEqual(answer["where"], FORWARD)
        self.assertIn(answer["asked"], (4096 * 1024 * FLOAT, 4096 * 256 * FLOAT))
        self.assertEqual((answer["phase"], answer["step"], answer["batch"], answer["micro_batch"]), ("forward", 3, 4096, 1))
        self.assertTrue(answer["shapes"])
        held = answer["memory"]["kinds"]
        self.assertGreaterEqual(held["activations"]["bytes"], 16 << 20)
        fit = answer["fit"]
        self.assertEqual(fit["batches"], [16, 32])
        self.assertTrue(32 < fit["fits"] < 4096, fit)
        self.assertLessEqual(fit["fixed"] + fit["fits"] * fit["slope"], fit["held"])
        # The peak of a step with that batch, measured without a limit.
        done = self.gradb([self.python, SCRIPT, "none", "16,32,%d,1" % fit["fits"]], "catch oom", "step 3",
                          "info memory", options=("--json",))
        report, = records_of(done, "memory")
        self.assertEqual(report["peak"]["step"], 3)
        self.assertTrue(0.7 * fit["held"] < report["peak"]["bytes"] < 1.1 * fit["held"], (report["peak"], fit))

    def test_backward(self):
        answer = self.why("backward", "catch oom")
        self.assertRegex(answer["node"], r"^backward/net/")
        self.assertRegex(answer["where"], r"^oom\.py:\d+ in forward$")
        self.assertEqual((answer["phase"], answer["step"]), ("backward", 3))
        rows = {row["module"]: row for row in answer["checkpoints"]}
        self.assertIn("net/blocks/0", rows)
        self.assertNotIn("net/blocks", rows)  # a list does not run
        self.assertEqual(rows["net/blocks/0"]["bytes"], 4096 * 1024 * FLOAT)  # of tanh; the sum is the output
        self.assertGreater(rows["net/blocks/0"]["seconds"], 0)

    def test_custom_backward(self):
        answer = self.why("custom", "catch oom")
        self.assertEqual((answer["node"], answer["asked"]), ("backward/Greedy", (1 << 26) * FLOAT))
        self.assertEqual(answer["where"], "oom.py:%d in backward" % line_of(SCRIPT.read_text(), "return gradient *"))

    def test_first_step_of_the_optimizer(self):
        answer = self.why("optimizer", "catch oom", batches="16")
        self.assertRegex(answer["node"], r"^optimizer/Adam/net/")
        self.assertEqual(answer["phase"], "optimizer")
        self.assertIn("a smaller batch does not help", answer["fit"]["refused"])
        self.assertRegex(answer["where"], r"^oom\.py:\d+ in train$")

    def test_without_a_slope(self):
        answer = self.why("forward", "catch oom", batches="4096")
        self.assertIn("the slope was not measured", answer["fit"]["refused"])
        self.assertNotIn("fits", answer["fit"])

    def test_before_the_network_of_the_step(self):
        answer = self.why("between", "catch oom", batches="16,32")
        self.assertIn("the network had not run in the step", answer["fit"]["refused"])

    def test_text_and_program(self):
        text = self.stopped("forward", "catch oom")
        for part in ("out of memory in forward: ", "Asked:  ", "Held:   ", "What holds most", "Fits:   a batch of about "):
            self.assertIn(part, text)
        self.assertIn("caught", self.printed())

    def test_a_caught_one_is_not_kept(self):
        """Each of two attempts in one step stops the run, and afterwards nothing of it is referenced."""
        kept = self.folder / "kept"
        done = self.gradb([self.python, torches.SCRIPTS / "caught.py", kept], "catch oom", "continue", "continue",
                          "continue")
        self.assertEqual(done.stdout.count("Exception, step 2"), 2, done.stdout + done.stderr)
        self.assertEqual(kept.read_text().splitlines(), ["6 [False, False]", "5 [False, False]"])

    def test_uncaught(self):
        answer = self.why("uncaught-forward")
        self.assertEqual(answer["phase"], "forward")
        self.assertEqual(answer["where"], FORWARD)
        self.assertIn(answer["asked"], (4096 * 1024 * FLOAT, 4096 * 256 * FLOAT))
        self.assertIn("refused", answer["fit"])

    def test_results_are_the_same(self):
        self.gradb([self.python, SCRIPT, "none", "8,8,8,8"], "continue")
        plain = self.printed()
        self.assertRegex(plain, "weights [0-9a-f]{64}")
        observed = self.gradb([self.python, SCRIPT, "none", "8,8,8,8"], "catch oom", "step", "info memory", "step",
                              "info memory", "catch oom off", "continue")
        self.assertEqual(self.printed(), plain, observed.stdout)


if __name__ == "__main__":
    harness.main()
