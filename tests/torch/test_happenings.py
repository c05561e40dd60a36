# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of a PyTorch training: catch, on, and what an unmodified script is seen to do."""
import math
import re

import harness
import torches

SCRIPT = """
import torch
from torch.utils.data import DataLoader
torch.manual_seed(1)
def main():
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loader, checks = DataLoader(torch.ones(200, 4), batch_size=2), DataLoader(torch.ones(6, 4), batch_size=2)
    for epoch in range(2):
        net.train()
        for x in loader:
            optimizer.zero_grad()
            net(x).pow(2).mean().backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            for x in checks:
                net(x)
        if epoch == 0:
            torch.save({"model": net.state_dict()}, "state.pt")
        else:
            torch.save(obj={"model": net.state_dict()}, f="state.pt")
main()
"""
# What looks like an evaluation, and is none: networks in evaluation mode that are trained, or that a loss needs.
TRAINED = """
import torch
torch.manual_seed(1)
frozen, judge, net = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1), torch.nn.Linear(2, 2)
of_judge, optimizer = (torch.optim.SGD(module.parameters(), lr=0.1) for module in (judge, net))
frozen.requires_grad_(False).eval()
net.eval()
for step in range(6):
    of_judge.zero_grad()
    judge.train()(torch.ones(2, 2)).mean().backward()
    of_judge.step()
    optimizer.zero_grad()
    (judge.eval()(net(frozen(torch.ones(2, 2)))).mean() + net(torch.ones(2, 2)).mean()).backward()
    optimizer.step()
judge(torch.ones(2, 2))
"""
RANKS = """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for epoch in range(3):
    for x in DataLoader(torch.ones(4, 2), batch_size=2):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
"""
AGAIN = """
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    try:
        for _ in range(5):
            optimizer.zero_grad()
            net(torch.ones(2, 2)).sum().backward()
            optimizer.step()
    except KeyboardInterrupt:
        print("caught")
raise SystemExit(3)
"""
LOADERS = """
import sys
import torch
from torch.utils.data import DataLoader
kind = sys.argv[1]
nets = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
optimizers = [torch.optim.SGD(net.parameters(), lr=0.01) for net in nets]
def loader(rows=6):
    return DataLoader(torch.ones(rows, 4), batch_size=2)
def step(x, index=0):
    optimizers[index].zero_grad()
    nets[index](x).pow(2).mean().backward()
    optimizers[index].step()
kept, second, checks = loader(), loader(), loader(4)
next(iter(kept))
for epoch in range(3):
    nets[0].train()
    if kind == "zip":
        for x, y in zip(kept, second):
            step(x + y)
    else:
        others = iter(second)
        for number, x in enumerate(loader() if kind == "new" else kept):
            step(x)
            if kind == "two":
                step(next(others), 1)
            if kind == "break" and number == 1:
                break
    nets[0].eval()
    with torch.no_grad():
        for x in checks:
            nets[0](x)
"""
SCORES = """
import random
import torch
import gradb.torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
dice = random.Random(3)
scores = [float("nan") if dice.random() < 0.1 else dice.randint(0, 400) / 100 + max(0, 9 - step) for step in range(60)]
for score in scores:
    optimizer.zero_grad()
    net(torch.ones(2, 2)).sum().backward()
    gradb.torch.log("score", score)
    optimizer.step()
print("scores", *scores)
"""


def improved(scores):
    """Whether the last one is the smallest so far."""
    return math.isfinite(scores[-1]) and all(score > scores[-1] for score in scores[:-1] if math.isfinite(score))


def stalled(scores, count):
    """Whether the last `count` were not better than the best before them."""
    last = max([at for at in range(len(scores)) if improved(scores[:at + 1])], default=-1)
    return len(scores) > count and len(scores) - 1 - last >= count


def least(scores):
    """The least finite one."""
    return min([score for score in scores if math.isfinite(score)], default=math.nan)


CONDITIONS = (
    ("if stall(score, 3, min)", lambda step, scores: stalled(scores, 3)),
    ("every 4 if stall(score, 5, min)", lambda step, scores: step % 4 == 0 and stalled(scores, 5)),
    ("if improved(score, min)", lambda step, scores: improved(scores)),
    ("every 2 if improved(score, min) || step == 50",
     lambda step, scores: step % 2 == 0 and (improved(scores) or step == 50)),
    ("if isnan(score)", lambda step, scores: math.isnan(scores[-1])),
    ("if best(score, min) < 0.5",
     lambda step, scores: min([score for score in scores if math.isfinite(score)], default=9) < 0.5),
    ("if stall(score, 4, min) && score > 3", lambda step, scores: stalled(scores, 4) and scores[-1] > 3),
    ("if mean(score, 3) < 1.5", lambda step, scores: len(scores) > 2 and sum(scores[-3:]) / 3 < 1.5),
    ("if step > 20 && !isnan(score)", lambda step, scores: step > 20 and not math.isnan(scores[-1])),
    ("if elapsed > 100000 || step == 7", lambda step, scores: step == 7),
    ("if score > 1.5 * prev(score)", lambda step, scores: step > 1 and scores[-1] > 1.5 * scores[-2]),
    ("if abs(score - prev(score)) <= 1 && step != 9",
     lambda step, scores: step > 1 and abs(scores[-1] - scores[-2]) <= 1 and step != 9),
    ("if prev(score) < 1", lambda step, scores: step > 1 and scores[-2] < 1),
    ("if mean(score, 2) < mean(score, 5)",
     lambda step, scores: step > 4 and sum(scores[:-3:-1]) / 2 < sum(scores[:-6:-1]) / 5),
    ("every 3 if score >= 2 * best(score, min) || mean(score, 4) > step / 10",
     lambda step, scores: step % 3 == 0 and (scores[-1] >= 2 * least(scores) or step > 3
                                             and sum(scores[:-5:-1]) / 4 > step / 10)),
    ("if max(score, prev(score)) < 2 - mean(score, 1) / 4", lambda step, scores: step > 1 and not math.isnan(
        scores[-2]) and max(scores[-1], scores[-2]) < 2 - scores[-1] / 4),
)
HAPPENED = [("begin", ""), ("epoch-begin", "epoch 1"), ("epoch-end", "epoch 1"), ("eval-begin", "epoch 1"),
            ("eval-end", "epoch 1"), ("checkpoint", "state.pt"), ("epoch-begin", "epoch 2"), ("epoch-end", "epoch 2"),
            ("eval-begin", "epoch 2"), ("eval-end", "epoch 2"), ("checkpoint", "state.pt"), ("end", "")]
STOPS = ["begin), stopped before the first step.", "epoch-end, epoch 1), at the end of step 100.",
         "eval-begin, epoch 1), at the end of step 100.", "eval-end, epoch 1), at the end of step 100.",
         "checkpoint state.pt, epoch 1), at the end of step 100."]


@torches.both
class Happenings(torches.Folder):
    def said(self, *commands):
        done = self.gradb([self.python, self.write("script.py", SCRIPT)], *commands)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def test_the_training_stops_at_each_event(self):
        said = self.said("catch begin", "catch epoch end", "catch eval_begin", "catch eval-end", "catch checkpoint",
                         *["continue"] * 5, "delete", "catch end", "continue", "print net/0/weight[0]", "info events",
                         "continue")
        for stop in STOPS:
            self.assertIn(stop, said)
        self.assertIn("(end), at the end of step 200.\n", said)
        self.assertIn("$1 = net/0/weight:0[0]\n", said)
        log = said.split("$1 = ")[1]
        seen = [line.split(None, 2)[1:] for line in log.splitlines() if line[:4].strip().isdigit()]
        self.assertEqual([(kind[0], " ".join(kind[1:])) for kind in seen], HAPPENED)

    def test_epochs_of_loaders_that_nothing_else_holds(self):
        script = SCRIPT.replace("for x in loader:", "for x in DataLoader(torch.ones(200, 4), batch_size=2):")
        done = self.gradb([self.python, self.write("script.py", script)], "on epoch-end print step", "continue")
        self.assertIn("step = 100 (step 100)\n", done.stdout)
        self.assertIn("step = 200 (step 200)\n", done.stdout)

    def test_networks_that_are_trained_in_evaluation_mode(self):
        done = self.gradb([self.python, self.write("script.py", TRAINED)], "on eval-begin print step",
                          "on eval-end print step", "continue")
        self.assertEqual(done.stdout.count("step = "), 2, done.stdout)
        self.assertEqual(done.stdout.count("step = 7 (step 7)\n"), 2, done.stdout)

    def test_epochs_are_those_of_the_training(self):
        """Also where each has its own loader, a loader was tried before, or a step reads from two."""
        path = self.write("loaders.py", LOADERS)
        for kind in ("new", "kept", "zip", "two", "break"):
            with self.subTest(kind=kind):
                done = self.gradb([self.python, path, kind], f"on step-end table {kind}.csv epoch batch", "continue",
                                  "info events")
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                rows = [tuple(map(int, row.split(",")[1:3])) for row in
                        (self.folder / (kind + ".csv")).read_text().splitlines()[1:]]
                batches = (1, 2) if kind == "break" else (1, 2, 3)
                self.assertEqual(rows, [(epoch, batch) for epoch in (1, 2, 3) for batch in batches])
                for event in ("epoch-begin", "epoch-end", "eval-begin", "eval-end"):
                    self.assertEqual(re.findall(r"(?m) %s +epoch (\d)$" % event, done.stdout), ["1", "2", "3"])

    def test_commands_run_while_the_training_continues(self):
        said = self.said("on step-end every 50 if loss < 1e9 print step", "on epoch-end print epoch",
                         "on step-end if loss > 1e9 print loss", "catch end", "continue", "info breakpoints")
        for step in (50, 100, 150, 200):
            self.assertIn("step = %d (step %d)\n" % (step, step), said)
        self.assertIn("epoch = 2 (step 200)\n", said)
        self.assertIn("step-end every 50 if loss < 1e9: print step\n        already hit 4 times\n", said)
        self.assertNotIn("loss = nan", said)

    def test_the_epoch_of_an_event_is_the_one_that_begins(self):
        said = self.said("on epoch-begin print epoch", "on epoch-begin checkpoint -f of-{epoch}.pt", "continue")
        self.assertIn("epoch = 1 (step 1)\n", said)
        self.assertIn("epoch = 2 (step 100)\n", said)
        for epoch in (1, 2):
            self.assertTrue((self.folder / ("of-%d.pt" % epoch)).exists(), said)

    def test_the_training_ends_where_it_is_told_to(self):
        """No step more, and the script has not failed."""
        where = {"step-end": 101, "step-begin": 100, "epoch-end": 100, "eval-begin": 100, "eval-end": 100,
                 "checkpoint": 100, "begin": 0}
        counting = SCRIPT.replace("            optimizer.step()", "            optimizer.step(); steps.append(1)").replace(
            "\nmain()", "\nsteps = []\ntry:\n    main()\nfinally:\n    print('steps', len(steps))")
        path = self.write("script.py", counting)
        for event, last in where.items():
            with self.subTest(event=event):
                guard = "if step > 100 " if event.startswith("step-") else ""
                done = self.gradb([self.python, path], f"on {event} {guard}kill training", "on end print step", "continue",
                                  "info log -a")
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                line = "after step %d" % last if last else "before its first step"
                self.assertIn("gradb: the training was ended %s (kill training)\n" % line, done.stdout)
                # the optimizer's call of the last step does not return where its end is the end of the training
                self.assertIn("steps %d\n" % (last - event.startswith("step-")), done.stdout)
                self.assertNotIn("Traceback", done.stdout)
                if last:
                    self.assertIn("step = %d (step %d)\n" % (last, last), done.stdout)

    def test_a_script_that_catches_the_end_trains_on_and_fails_by_itself(self):
        done = self.gradb([self.python, self.write("script.py", AGAIN)], "on step-end if step == 3 kill training",
                          "continue", "info scalars", "info log -a")
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        self.assertIn("exited with status 3", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^loss +\S+ +8$")
        self.assertEqual(done.stdout.count("caught\n"), 1, done.stdout)

    def test_all_ranks_end_after_the_same_step(self):
        for event, last in (("step-end", 2), ("epoch-end", 3)):
            with self.subTest(event=event):
                done = self.gradb([*torches.ranks(self.python, 2), self.write("ranks.py", RANKS)],
                                  f"on {event} if step == 2 kill training", "continue", "info log -a")
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                self.assertEqual(done.stdout.count("gradb: the training was ended after step %d " % last), 2, done.stdout)

    def test_conditions_hold_where_they_should(self):
        """Whatever the training process tests by itself, no step is missed: against the same in Python."""
        said = self.gradb([self.python, self.write("scores.py", SCORES)], *(
            f"on step-end {text} table c{number}.csv score" for number, (text, _) in enumerate(CONDITIONS)), "continue",
            "info log -a", PYTHONPATH=str(torches.PACKAGE))
        self.assertEqual(said.returncode, 0, said.stderr)
        scores = [float(word) for word in said.stdout.split("scores ")[1].split("\n")[0].split()]
        for number, (text, holds) in enumerate(CONDITIONS):
            with self.subTest(text=text):
                file = self.folder / ("c%d.csv" % number)
                rows = file.read_text().splitlines()[1:] if file.exists() else []
                self.assertEqual([int(row.split(",")[0]) for row in rows], [
                    step for step in range(1, len(scores) + 1) if holds(step, scores[:step])])

    def test_a_checkpoint_of_an_event_is_of_the_step_that_has_ended(self):
        said = self.said("on epoch-end checkpoint of-{step}", "on eval-begin checkpoint -f eval-{step}", "continue",
                         "info events")
        for step in (100, 200):
            self.assertRegex(said, r"(?m)^checkpoint of step %d: \S*/of-%d\.pt \(" % (step, step))
            self.assertRegex(said, r"(?m)^ *%d +checkpoint +\S*/of-%d\.pt \(" % (step, step))
            self.assertRegex(said, r"(?m)^ *%d +eval-end " % step)

    def test_a_scope_named_before_the_first_step_waits_for_its_operators(self):
        said = self.said('dprintf net/0,"first %d\\n",step', "step 2")
        self.assertIn("first 1\n", said)
        self.assertIn("first 2\n", said)

    def test_of_several_scopes_the_forward_models_is_meant(self):
        """Not backward/net/0, nor that of the evaluation."""
        said = self.said('dprintf 0,"in %d\n",step', "step 2", "info breakpoints")
        self.assertEqual(said.count("in 1\n"), 1, said)

    def test_a_wrong_file_name_is_refused_before_the_step_ends(self):
        done = self.gradb([self.python, self.write("script.py", SCRIPT)], "set on-error continue", "checkpoint a{loss",
                          "checkpoint a{step:q}", "checkpoint a{loss:.1f}", "info breakpoints", "kill")
        self.assertIn("a{loss: a '{' has no '}'", done.stderr)
        self.assertIn('"q" is not a format', done.stderr)
        self.assertEqual(done.stdout.count("The checkpoint will be saved at the end of the step."), 1, done.stdout)


if __name__ == "__main__":
    harness.main()
