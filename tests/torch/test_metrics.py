# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of PyTorch trainings: `metric`, `info metrics`. What they should be, the script computes itself."""
import json
import math
import re
import shlex
import subprocess

import harness
import torches
import venvs

# Prints what it has counted in each epoch and in its evaluation, and a digest of weights and random state.
CLASSIFIER = """
import sys, torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(3)
x = torch.randn(56, 4)
y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 1).long()
y[::9] = -100
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
checks = DataLoader(TensorDataset(x, y), batch_size=20)
criterion = nn.CrossEntropyLoss() if "module" in sys.argv else cross_entropy
def right(out, target):
    kept = target != -100
    return (out.argmax(1) == target)[kept].sum().item(), kept.sum().item()
for epoch in range(3):
    counts = torch.zeros(2)
    net.train()
    for a, b in loader:
        optimizer.zero_grad()
        out = net(a)
        criterion(out, b).backward()
        optimizer.step()
        counts += torch.tensor(right(out, b))
    net.eval()
    checked = torch.zeros(2)
    with torch.no_grad():
        for a, b in checks:
            out = net(a)
            criterion(out, b)
            checked += torch.tensor(right(out, b))
    print("epoch %.6g eval %.6g" % (counts[0] / counts[1], checked[0] / checked[1]), flush=True)
print("digest", float(sum(p.double().sum() for p in net.parameters())).hex(), float(torch.rand(1)).hex())
"""

TWO_LOSSES = """
import torch
import torch.nn.functional as F
net, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1)
for step in range(6):
    x, y = torch.randn(8, 3), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    first = F.cross_entropy(net(x), y)
    second = F.cross_entropy(other(x), y)
    (first + second).backward()
    optimizer.step()
"""

# The losses, with what a metric must find: printed by the script for each step.
LOSSES = """
import sys, torch
import torch.nn.functional as F
torch.manual_seed(1)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(32, 3)
    optimizer.zero_grad()
    out = net(x)
    y = (x[:, :1] > 0).float()
    if sys.argv[1] == "logits":
        loss, found = F.binary_cross_entropy_with_logits(out, y), ((out > 0) == (y > 0)).float().mean()
    elif sys.argv[1] == "probabilities":
        loss, found = F.binary_cross_entropy(out.sigmoid(), y), ((out > 0) == (y > 0)).float().mean()
    else:
        loss = {"mse": F.mse_loss, "l1": F.l1_loss, "smooth": F.smooth_l1_loss}[sys.argv[1]](out, x[:, :1])
        found = (out - x[:, :1]).double().pow(2).mean()
    loss.backward()
    optimizer.step()
    print("found %.9g" % found, flush=True)
"""

# The model computes the loss, of shifted labels, as language models do; or (N, C, H, W) against (N, H, W).
STYLES = """
import sys, torch
from torch import nn
torch.manual_seed(2)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(11, 8), nn.Linear(8, 11)
    def forward(self, tokens, labels):
        logits = self.head(self.embedding(tokens))
        shifted, target = logits[..., :-1, :].contiguous(), labels[..., 1:].contiguous()
        return {"loss": nn.CrossEntropyLoss()(shifted.view(-1, 11), target.view(-1)), "logits": logits}
language = sys.argv[1] == "language"
net = Model() if language else nn.Conv2d(3, 11, 3, padding=1)
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
for step in range(3):
    if language:
        tokens = torch.randint(0, 11, (4, 7))
        labels = tokens.clone()
        labels[:, -2:] = -100
        done = net(tokens, labels=labels)
        loss, out, y = done["loss"], done["logits"][:, :-1].reshape(-1, 11), labels[:, 1:].reshape(-1)
    else:
        labels = torch.randint(0, 11, (2, 8, 8)).masked_fill(torch.rand(2, 8, 8) < 0.1, -100)
        out = net(torch.randn(2, 3, 8, 8))
        loss = nn.functional.cross_entropy(out, labels)
        out, y = out.permute(0, 2, 3, 1).reshape(-1, 11), labels.reshape(-1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept = y != -100
    predicted, y = out.argmax(1)[kept], y[kept]
    found = [(predicted == c) | (y == c) for c in range(11)]
    f1 = [2 * float(((predicted == c) & (y == c)).sum()) / float((predicted == c).sum() + (y == c).sum())
          for c in range(11) if found[c].any()]
    print("found %.5g %.5g %.5g" % ((predicted == y).double().mean(), sum(f1) / len(f1),
          nn.functional.cross_entropy(out[kept].double(), y).exp()), flush=True)
"""

# Two ranks with batches of their own; each writes its outputs and labels of each step to a file. KIND: classes, numbers.
# With "killed", rank 1 is gone in step 5; with "evaluates", rank 0 alone evaluates after the second epoch.
RANKS = """
import json, os, signal, sys, torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
dist.init_process_group("gloo")
kind, what = sys.argv[1:3]
rank = dist.get_rank()
torch.manual_seed(5)
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 3))
torch.manual_seed(rank)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
size = 10 + 3 * rank
x = torch.randn(3 * size, 4)
y = torch.randint(0, 3, (3 * size,)) if kind == "classes" else x[:, :3] * 2 + torch.randn(3 * size, 3)
loss_of = F.cross_entropy if kind == "classes" else F.mse_loss
seen, step = [], 0
for epoch in range(3):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=size):
        step += 1
        out = net(a)
        optimizer.zero_grad()
        loss = loss_of(out, b)
        if what == "killed" and rank == 1 and step == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        optimizer.step()
        if what == "late":
            import gradb.torch
            gradb.torch.log("loss", loss)
        seen.append([epoch, out.tolist(), b.tolist()])
    if what == "evaluates" and epoch == 1:
        if rank == 0:
            net.eval()
            with torch.no_grad():
                loss_of(net(x), y)
            net.train()
        dist.barrier()
json.dump(seen, open("seen%d.json" % rank, "w"))
dist.destroy_process_group()
"""

# scikit-learn's numbers of both: of each step, and of the epoch up to it.
REFERENCE = """
import json
import numpy as np
from sklearn import metrics
ranks = [json.load(open("seen%d.json" % rank)) for rank in (0, 1)]
def all_of(steps):
    return [np.concatenate([np.array(part[i]) for rank in ranks for part in (rank[step] for step in steps)])
            for i in (1, 2)]
def numbers(out, y):
    if y.ndim == 2:
        return {"r2": metrics.r2_score(y, out)}
    shares = np.exp(out) / np.exp(out).sum(1, keepdims=True)
    return {"accuracy": metrics.accuracy_score(y, out.argmax(1)), "f1": metrics.f1_score(y, out.argmax(1), average="macro"),
            "auc": metrics.roc_auc_score(y, shares, multi_class="ovr")}
print(json.dumps([[numbers(*all_of([step])), numbers(*all_of([
    other for other in range(step + 1) if ranks[0][other][0] == ranks[0][step][0]]))] for step in range(len(ranks[0]))]))
"""

OWN_LOSS = """
import sys, torch
net = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def loss_of(x, y):
    if sys.argv[1] == "own":
        return -net(x).log_softmax(1).gather(1, y[:, None]).mean()
    return torch.nn.functional.cross_entropy(net(x), y)
if sys.argv[1] == "compiled":
    loss_of = torch.compile(loss_of, backend="aot_eager")
for step in range(4):
    x, y = torch.randn(8, 3), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    loss_of(x, y).backward()
    optimizer.step()
"""

# Batches like the last one, and in many ways unlike it. Prints what the first loss of each step was given.
UNLIKE = """
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
torch.manual_seed(5)
net = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
slow = [0]
def watch():
    try:
        from gradb.torch.metrics import Metrics
    except ImportError:  # without gradb
        return
    original = Metrics._count
    def count(self, *args):
        slow[0] += 1
        return original(self, *args)
    Metrics._count = count
class Passing(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))
def loss_of(out, y, ignored=-100):
    return F.cross_entropy(out, y, ignore_index=ignored)
def other(out, y):
    return loss_of(out, y)
watch()
for step in range(1, 61):
    x = torch.randn(6 if step % 9 == 0 else 8, 4)
    y = torch.randint(0, 3, (len(x),))
    ignored = 1 if 12 <= step < 15 else -100
    optimizer.zero_grad()
    if step == 20:
        with torch.no_grad():
            loss_of(net(x[:3]), y[:3])
    out = net(x)
    if step == 30:
        out = torch._neg_view(out)
    if step == 33:
        out = out.t().contiguous().t()
    if step == 36:
        y = y.to(torch.int32).long()[::2].repeat_interleave(2)
    if step == 40:
        with Passing():
            loss = loss_of(out, y, ignored)
    elif step == 44:
        loss = loss_of(out.double(), y)
    else:
        loss = loss_of(out, y, ignored)
    if step % 10 == 0:
        loss = loss + other(net(x * 2), y)
    loss.backward()
    optimizer.step()
    kept = y != ignored
    print("found %d %.6g" % (step, (out.argmax(1) == y)[kept].double().mean()))
print("slow", slow[0])
"""

# Metrics that are counted on the device, with NaN, ties, ignored labels and a label that is not a class.
ANYWHERE = """
import sys, torch
import torch.nn.functional as F
torch.manual_seed(1)
net = torch.nn.Conv2d(4, 5, 1) if sys.argv[1] == "ce" else torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
joined = [0]
def watch():
    try:
        from gradb.torch.counter import Counter
    except ImportError:  # without gradb
        return
    join = Counter.join
    def counted(self, found):
        joined[0] += 1
        return join(self, found)
    Counter.join = counted
for step in range(4):
    if step == 1:
        watch()
    optimizer.zero_grad()
    if sys.argv[1] == "ce":
        x, y = torch.randn(3, 4, 5, 6), torch.randint(0, 5, (3, 5, 6))
        y[0, 0] = 255
        out = net(x) if step != 2 else (net(x) * 2).round() / 2
        if step == 3:
            out = out.masked_fill(torch.arange(6) == 4, float("nan"))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(out, y, ignore_index=255)
    elif sys.argv[1] == "bce":
        x, y = torch.randn(16, 4), torch.randint(0, 2, (16, 3)).float()
        loss = F.binary_cross_entropy_with_logits(net(x), y)
    else:
        x, y = torch.randn(16, 4), torch.randn(16, 3) * 5 + 2
        loss = F.mse_loss(net(x), y)
    if step == 3 and sys.argv[1] == "ce":
        loss = net(x).sum()
    loss.backward()
    optimizer.step()
print("joined", joined[0])
print("digest", float(sum(p.double().sum() for p in net.parameters()).detach()).hex(), float(torch.rand(1)).hex())
"""

OWN = """
import random, torch
class Share:
    def clear(self):
        self.right = self.all = 0
    def update(self, outputs, labels):
        torch.rand(3), random.random()  # the training must not notice
        assert not torch.is_grad_enabled()
        kept = labels != -100
        self.right += int((outputs.argmax(1) == labels)[kept].sum())
        self.all += int(kept.sum())
    def eval(self):
        return self.right / self.all
"""
WRONG = OWN.replace("self.all += int(kept.sum())", "labels.no_such_thing()")


class Metrics(torches.Folder):
    def said(self, program, *commands):
        done = self.gradb([self.python, *program], *commands)
        self.assertIn("Stopped before the first step.\n", done.stdout, done.stderr)
        self.assertNotIn("internal error", done.stdout + done.stderr)
        return done.stdout.split("Stopped before the first step.\n", 1)[1]

    def numbers(self, said, step):
        """The numbers at the end of a step."""
        line = re.search(r"end of step %d\.\n(.*)" % step, said)
        self.assertIsNotNone(line, said)
        return dict(re.findall(r"(\w+) = ([-\w.+]+)", line.group(1)))

    def digest(self, *program):
        done = subprocess.run([*torches.warm(self.python), *program], capture_output=True, text=True, check=True,
                              env=torches.environment(GRADB_DISABLE="1"), timeout=2 * harness.DEADLINE)
        return done.stdout


@torches.both
class Found(Metrics):
    def test_epochs_and_evaluations_as_the_script_counts_them(self):
        path = self.write("train.py", CLASSIFIER)
        for style in ("module", "function"):
            said = self.said([path, style], "metric accuracy", "metric f1 average=macro", "metric mean_loss = loss",
                             "step 4", "step", "step 3", "step", "step 3", "info metrics", "continue", "info log -a")
            script = re.findall(r"(?m)^epoch (\S+) eval (\S+)$", said)
            self.assertEqual(len(script), 3, said)
            for epoch, step in enumerate((4, 8, 12)):
                self.assertEqual(self.numbers(said, step)["accuracy"], script[epoch][0], said)
            for epoch, step in enumerate((5, 9)):  # it belongs to the step before, which it names
                self.assertIn("eval_accuracy = %s (step %d)" % (script[epoch][1], step - 1), said.split(
                    "end of step %d.\n" % step)[1].split("\n", 1)[0])
            self.assertRegex(said, r"accuracy: not counted: \d+ labels to be ignored")

    def test_a_command_waits_for_the_first_evaluation(self):
        said = self.said([self.write("train.py", CLASSIFIER), "module"], "metric accuracy",
                         "on epoch-end print epoch, eval_accuracy", "display eval_accuracy",
                         "on step-end if improved(eval_accuracy) info metrics", "step 9", "info breakpoints", "continue")
        self.assertIn("  eval_accuracy is known only after its step has ended: use eval-end", said)
        self.assertIn("1: eval_accuracy has no value yet: no evaluation has ended", said)
        self.assertRegex(said, r"(?m)^1: eval_accuracy = \S+ \(step 8\)$")
        self.assertRegex(said, r"epoch = 2 \(step 8\)\neval_accuracy = \S+ \(step 4\)\n")
        self.assertRegex(said, r"(?m)^1 +on +keep +y ")

    def test_named_nodes_are_counted_in_evaluations(self):
        said = self.said([self.write("train.py", CLASSIFIER), "module"], "watch nan > 0 on all", "step", "delete 1",
                         "metric named = accuracy of net/3/linear against data/stack_1 ignore=-100", "metric accuracy",
                         "step 4", "step 4", "info nodes eval/net/*", "continue", "info log -a")
        script = re.findall(r"(?m)^epoch (\S+) eval (\S+)$", said)
        for epoch, step in enumerate((5, 9)):
            self.assertEqual(self.numbers(said, step)["eval_named"], script[epoch][1], said)
            self.assertEqual(self.numbers(said, step)["named"], self.numbers(said, step)["accuracy"], said)
        self.assertNotIn("linear_1", said)  # each batch runs the same nodes

    def test_metrics_and_catchpoints_given_before_the_training_is_started(self):
        path = self.write("train.py", CLASSIFIER)
        done = self.gradb([self.python, path, "module"], "step 4",
                          options=harness.typed("metric accuracy", "catch exception uncaught"))
        self.assertIn('"metric accuracy" runs when a training process has connected.\n', done.stdout)
        self.assertIn("Stopped before the first step.\nMetric accuracy, by epoch.\nThe training will stop before",
                      done.stdout)
        self.assertIn("accuracy = ", done.stdout)

    def test_the_training_is_the_same_to_the_bit(self):
        path, own = self.write("train.py", CLASSIFIER), self.write("own.py", OWN)
        said = self.said([path, "module"], "metric accuracy", "metric auc", "metric share from " + own, "continue",
                         "info log -a")
        self.assertEqual(re.findall("(?m)^digest.*", said), re.findall("(?m)^digest.*", self.digest(path, "module")))

    def test_losses(self):
        path = self.write("losses.py", LOSSES)
        for loss, metric in (("logits", "accuracy"), ("probabilities", "accuracy"), ("mse", "mse"), ("l1", "mse"),
                             ("smooth", "mse")):
            said = self.said([path, loss], "metric %s by step" % metric, "step", "step", "step",
                             "info history " + metric, "continue", "info log -a")
            self.assertIn("%s: 3 steps recorded" % metric, said)  # with nothing watched
            found = re.findall(r"(?m)^found (\S+)$", said)
            self.assertEqual(len(found), 3, said)
            for step, number in enumerate(found, 1):
                self.assertTrue(math.isclose(float(self.numbers(said, step)[metric]), float(number), rel_tol=1e-5), loss)

    def test_styles(self):
        path = self.write("styles.py", STYLES)
        for style in ("language", "images"):
            said = self.said([path, style], "metric accuracy by step", "metric f1 by step", "metric perplexity by step",
                             "step", "step", "step", "continue", "info log -a")
            found = [self.numbers(said, step) for step in (1, 2, 3)]
            self.assertEqual([" ".join("%.5g" % float(of[name]) for name in ("accuracy", "f1", "perplexity"))
                              for of in found], re.findall(r"(?m)^found (.*)$", said)[:3])

    def test_the_nodes_are_named_once_they_are_known(self):
        said = self.said([self.write("train.py", CLASSIFIER), "module"], "step", "metric accuracy", "kill")
        self.assertRegex(said, r"Metric accuracy: net/3/linear against \S+ \(found at the loss\), by epoch\.")


@torches.newest
class Chosen(Metrics):
    def test_several_losses(self):
        path = self.write("two.py", TWO_LOSSES)
        said = self.said([path], "metric accuracy", "step 2", "kill")
        self.assertIn("metrics count the first loss of a step; another one is at two.py:10: name the nodes", said)
        done = self.gradb([self.python, path], "step 2", "metric accuracy")
        self.assertIn("2 losses (cross_entropy, cross_entropy_1): name the nodes with `of OUTPUTS against LABELS`",
                      done.stderr)
        said = self.said([path], "step 2", "metric a = accuracy of other/linear against randint", "step", "info metrics",
                         "kill")
        self.assertRegex(said, r"(?m)^a +[\d.]+ +8 +1 +3 +3$")

    def test_tensors_that_do_not_belong_together(self):
        said = self.said([self.write("two.py", TWO_LOSSES)], "step 2",
                         "metric a = accuracy of other/linear against randn", "step 2", "info metrics", "kill")
        self.assertEqual(said.count("metric a: a batch of step 3 was not counted: outputs of shape (8, 2)"), 1, said)
        self.assertIn("a: batches not counted: 2: outputs of shape (8, 2)", said)

    def test_a_loss_that_is_not_seen(self):
        path = self.write("own_loss.py", OWN_LOSS)
        said = self.said([path, "own"], "metric accuracy", "step 3", "kill")
        self.assertEqual(said.count("metric accuracy: step 1 called no loss function of PyTorch: name nodes with"), 1)

    def test_a_loss_in_compiled_code(self):
        torches.need_compile(self)
        said = self.said([self.write("own_loss.py", OWN_LOSS), "compiled"], "metric accuracy", "step 2", "kill")
        self.assertIn("called no loss function of PyTorch outside code of torch.compile, which", said)

    def test_a_watchpoint_stops_at_the_step(self):
        said = self.said([self.write("train.py", CLASSIFIER), "module"], "metric best = accuracy by step",
                         "watch best > 0.6", "continue", "kill")
        step = int(re.search(r"Watchpoint 1, at the end of step (\d+)\.", said).group(1))
        self.assertGreater(float(re.search(r"best = ([\d.]+)", said.split("end of step %d" % step)[1]).group(1)), 0.6)


@torches.newest
class Own(Metrics):
    def test_a_file(self):
        path, own = self.write("train.py", CLASSIFIER), self.write("own.py", OWN)
        said = self.said([path, "module"], "metric accuracy", "metric share from " + own, "step 4", "step", "kill")
        for step in (4, 5):
            numbers = self.numbers(said, step)
            self.assertEqual(numbers["share"], numbers["accuracy"])
        self.assertEqual(numbers["eval_share"], numbers["eval_accuracy"])

    def test_an_exception_switches_it_off(self):
        path, wrong = self.write("train.py", CLASSIFIER), self.write("wrong.py", WRONG)
        said = self.said([path, "module"], "metric accuracy", "metric share from " + wrong, "step 4", "continue",
                         "info log -a")
        self.assertRegex(said, r"metric share is off: AttributeError: .*no_such_thing.* \(wrong.py:11\)")
        self.assertEqual(said.count("metric share is off"), 1 + said.count("unseen at step 1: metric share"), said)
        self.assertIn("accuracy", self.numbers(said, 4))
        self.assertNotIn("share", self.numbers(said, 4))
        self.assertEqual(re.findall("(?m)^digest.*", said), re.findall("(?m)^digest.*", self.digest(path, "module")))

    def test_files_that_are_no_metrics(self):
        path = self.write("train.py", CLASSIFIER)
        for text, word in (("x = 1", "no class that is a metric"), ("import nonsense_that_is_missing", "No module named"),
                           ("def", "SyntaxError"), ("raise SystemExit(3)", "SystemExit")):
            done = self.gradb([self.python, path, "module"], "metric m from " + self.write("other.py", text))
            self.assertIn(word, done.stderr)
        done = self.gradb([self.python, path, "module"], "metric m from /no/such/file.py")
        self.assertIn("cannot open /no/such/file.py", done.stderr)

    def test_an_expression_equals_the_metric(self):
        said = self.said([self.write("losses.py", LOSSES), "mse"], "metric mse",
                         "metric own = update s += sum(square(outputs - labels)), n += count(labels) result s / n",
                         "step 3", "kill")
        self.assertEqual(self.numbers(said, 3)["own"], self.numbers(said, 3)["mse"])


@torches.both
class Ranks(Metrics):
    """Metrics over two ranks, against scikit-learn on the samples of both."""

    def ranks(self, kind, what, *commands):
        path = self.write("ranks.py", RANKS)
        done = self.gradb([*torches.ranks(self.python, 2), path, kind, what], *commands, options=["--json"])
        return harness.records(done, mixed=True), done.stdout + done.stderr

    def reference(self):
        """Of each step: the numbers of the step, and of the epoch so far."""
        python = venvs.python("dump")
        if not python:
            self.skipTest("no build/dump-venv with scikit-learn: ./dev makes it")
        done = subprocess.run([python, "-c", REFERENCE], cwd=self.folder, capture_output=True, text=True, check=True,
                              timeout=harness.DEADLINE)
        return json.loads(done.stdout)

    @staticmethod
    def history(records, name):
        """The steps and values of a metric."""
        record, = (r for r in records if r["type"] == "history" and r["name"] == name)
        return [(step["step"], step["value"]) for step in record["history"]]

    def check(self, found, wanted, said):
        self.assertEqual([step for step, _ in found], list(range(1, 1 + len(wanted))), said)
        for (step, value), number in zip(found, wanted):
            self.assertAlmostEqual(value, number, 6, (step, said))

    def test_each_step_and_epoch(self):
        records, said = self.ranks(
            "classes", "plain", "metric now = accuracy by step ranks", "metric accuracy ranks", "metric f1 average=macro ranks",
            "metric auc ranks", "metric confusion ranks", "on epoch-end print accuracy, f1", "step 3", "info metrics",
            "step 6", "info history now -a", "info history accuracy -a", "info history f1 -a", "info history auc -a",
            "continue")
        wanted = self.reference()
        self.check(self.history(records, "now"), [step["accuracy"] for step, _ in wanted], said)
        for name in ("accuracy", "f1", "auc"):
            self.check(self.history(records, name), [epoch[name] for _, epoch in wanted], said)
        listed, = (r for r in records if r["type"] == "metrics")
        for metric in listed["metrics"]:
            over = metric["train"]["ranks"]
            self.assertEqual((over["ranks"], over["of"], over["step"]), (2, 2, 3), said)
            self.assertEqual(over["samples"], 23 if metric["name"] == "now" else 69, said)
            for number in over["numbers"]:
                name = "accuracy" if metric["name"] == "now" else metric["name"]
                self.assertAlmostEqual(number["value"], wanted[2][metric["name"] != "now"][name], 6, said)
        printed = [(number["name"], round(number["value"], 6)) for r in records if r["type"] == "tensors"
                   for number in r["tensors"]]
        self.assertEqual(printed[:4], [(name, round(wanted[at][1][name], 6)) for at in (2, 5)
                                       for name in ("accuracy", "f1")], said)

    def test_regression(self):
        records, said = self.ranks("numbers", "plain", "metric r2 ranks", "step 9", "info history r2 -a", "continue")
        self.check(self.history(records, "r2"), [epoch["r2"] for _, epoch in self.reference()], said)

    def test_conditions_fire_at_the_step(self):
        """Where the number of both says so, not that of rank 0."""
        records, said = self.ranks("classes", "plain", "metric now = accuracy by step ranks",
                                   "catch step-end if now > 0.43 && step > 1", "continue", "delete 1",
                                   "watch now > best(now) - 0.001 && step > 3", "continue", "delete 2", "continue")
        wanted = [step["accuracy"] for step, _ in self.reference()]
        stops = [(r["reason"], r["step"]) for r in records if r["type"] == "stopped" and r["reason"] in ("event", "hit")]
        first = next(step for step in range(2, 10) if wanted[step - 1] > 0.43)
        later = next(step for step in range(max(4, first + 1), 10) if wanted[step - 1] >= max(wanted[:step]) - 0.001)
        self.assertEqual(stops, [("event", first), ("hit", later)], (wanted, said))

    def test_a_loss_that_is_logged_after_the_step(self):
        """It is new at the end of the next step, as that of one rank is."""
        records, said = self.ranks("classes", "late", "metric now = loss by step ranks",
                                   "on step-end if improved(now, min) print now", "step 6", "info history now -a",
                                   "kill")
        losses = self.history(records, "now")
        self.assertEqual([step for step, _ in losses], [1, 2, 3, 4, 5], said)
        best = [value for at, (_, value) in enumerate(losses) if value < min([v for _, v in losses[:at]] + [1e9])]
        self.assertGreater(len(best), 1)
        self.assertEqual([r["value"] for r in records if r["type"] == "scalar"], best, said)

    def test_a_rank_is_killed(self):
        records, said = self.ranks("classes", "killed", "metric accuracy ranks", "on step-end if accuracy < 2 print accuracy",
                                   "continue", "info metrics", "continue")
        self.assertEqual([r["step"] for r in records if r["type"] == "scalar"], [1, 2, 3, 4], said)
        for record in records:
            if record["type"] == "metrics":
                self.assertEqual(record["metrics"][0]["train"]["ranks"]["step"], 4, said)

    def test_one_rank_evaluates(self):
        """In a barrier, the other one waits for it."""
        records, said = self.ranks("classes", "evaluates", "metric accuracy ranks",
                                   "on eval-end if eval_accuracy > 0 print eval_accuracy", "continue")
        self.assertEqual([r["name"] for r in records if r["type"] == "scalar"], ["eval_accuracy"], said)
        self.assertIn("metric eval_accuracy is over 1 of 2 ranks", said)
        self.assertEqual(len(self.reference()), 9)  # both went to the end

    def test_a_dump_of_two_ranks(self):
        """Equal to what the training reported."""
        dump = "dump d on net/linear, data/stack_1 --steps 2-4"
        records, said = self.ranks(
            "classes", "plain", "step", dump, "rank 1", dump, "rank 0", "metric now = accuracy by step ranks", "step 3",
            "info history now -a", "open d", "metric now = accuracy of net/linear against data/stack_1 by step ranks",
            "metric own = accuracy of net/linear against data/stack_1 by step", "rank 1", "print now")
        live = self.history(records, "now")
        over, own = (r for r in records if r["type"] == "metric" and "steps" in r)
        self.assertEqual([(step["step"], step["numbers"][0]["value"]) for step in over["steps"]], live, said)
        self.assertEqual([step["samples"] for step in over["steps"]], [23, 23, 23], said)
        self.assertEqual([step["samples"] for step in own["steps"]], [10, 10, 10], said)
        self.assertEqual((over["ranks"], len(live)), (2, 3), said)
        shown = [r for r in records if r["type"] == "scalar"]
        self.assertEqual(shown[-1]["value"], live[0][1], said)

    def test_two_trainings_are_not_added_up(self):
        """Two jobs of two ranks each, and what each of them counts."""
        path = self.write("ranks.py", RANKS)
        jobs = []
        for name in ("one", "two"):
            (self.folder / name).mkdir(exist_ok=True)
            words = [*torches.ranks(self.python, 2), path, "classes", "plain"]
            jobs.append("(cd %s && TORCHELASTIC_RUN_ID=%s %s)" % (name, name, shlex.join(map(str, words))))
        gradb = harness.Gradb("-nx", command=("run", "--", "/bin/sh", "-c", " & ".join(jobs) + " & wait"),
                              env=torches.environment(), cwd=self.folder)
        self.addCleanup(gradb.__exit__)
        for _ in range(4 + 2):
            gradb.expect("^(Connected: |All 2 ranks are stopped before the first step)")
        gradb.run("metric accuracy ranks", r"^Metric accuracy, by epoch, over 2 of 2 ranks\.$")
        gradb.run("step", "^All 2 ranks are stopped at the end of step 1")
        gradb.run("info metrics", r"^accuracy +\S+ +23 +2 +1$")
        gradb.expect("^accuracy: over 2 of 2 ranks$")


@torches.both
class Anywhere(Metrics):
    """Counting on the device of the tensors, here the CPU, against libgradb's counting."""
    KINDS = {"ce": ("accuracy", "topk k=2", "precision average=none", "f1 average=weighted", "confusion", "auc",
                    "perplexity", "own = update s += sum(argmax(outputs)), n += count(labels) result s / n"),
             "bce": ("accuracy threshold=0.1", "recall average=none", "perplexity", "confusion"),
             "mse": ("mse", "mae per=sample", "r2", "own = update s += sum(abs(outputs - labels) / (1 + square(labels)))"
                     ", m += mean(outputs * 2 > 1) result s - m")}

    def test_counts_are_the_same(self):
        path = self.write("anywhere.py", ANYWHERE)
        for kind, metrics in self.KINDS.items():
            said = []
            for on_device in ("0", "1"):
                done = self.gradb([self.python, path, kind], "step 1", *("metric " + metric for metric in metrics),
                                  "step 2", "step 1", "info metrics", "continue", "info log -a",
                                  GRADB_METRICS_ON_DEVICE=on_device)
                self.assertNotIn("metrics copy", done.stdout)
                self.assertRegex(done.stdout, "(?m)^joined %s$" % ("[1-9][0-9]*" if on_device == "1" else "0"))
                said.append(re.sub("(?m)^joined.*", "", done.stdout.split("Metric ", 1)[1]))
            self.assertEqual(*said)
            self.assertIn(self.digest(path, kind).splitlines()[1], said[0])


@torches.newest
class Again(Metrics):
    """A batch like the last one, which goes to libgradb without Python."""

    def test_each_step_has_its_own_batch(self):
        path = self.write("unlike.py", UNLIKE)
        for native in ("1", "0"):
            done = self.gradb([self.python, path], "metric accuracy by step", "step 59", "info history accuracy -a",
                              "continue", "info log -a", GRADB_NATIVE=native)
            found = dict(re.findall(r"(?m)^found (\d+) (\S+)$", done.stdout))
            self.assertEqual(len(found), 60, done.stdout)
            del found["40"], found["60"]  # under a mode, the program calls it at another place; not stopped there
            self.assertEqual(dict(re.findall(r"(?m)^ +(\d+) +(\S+)$", done.stdout)), found, native)
            slow = int(re.search(r"(?m)^slow (\d+)$", done.stdout).group(1))
            without = native == "1" and torches.release_of(self.python) > (1, 13) and not torches.on_device(self)
            self.assertEqual(slow < 40, without, slow)


@torches.newest
class Listed(Metrics):
    def test_a_matrix_and_removal(self):
        said = self.said([self.write("train.py", CLASSIFIER), "module"], "metric confusion", "metric accuracy", "step 4",
                         "info metrics", "metric delete confusion", "metric delete", "step 2", "info metrics", "kill")
        rows = re.findall(r"(?m)^ +(\d) +(\d+) +(\d+) +(\d+)$", said)
        matrix = [list(map(int, row[1:])) for row in rows]
        samples = int(re.search(r"(?m)^confusion +- +(\d+)", said).group(1))
        self.assertEqual(sum(map(sum, matrix)), samples)
        self.assertEqual("%.6g" % (sum(matrix[i][i] for i in range(3)) / samples), self.numbers(said, 4)["accuracy"])
        self.assertNotIn("accuracy", self.numbers(said, 6))
        self.assertIn("No metrics: ", said)


if __name__ == "__main__":
    harness.main()
