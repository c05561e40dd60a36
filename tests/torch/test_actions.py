# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that act on a PyTorch training: learning rates, checkpoints."""
import json
import re
import subprocess

import harness
import shipped
import torches

# Prints the rates that each step used and a digest of the weights. Arguments: the scheduler, and the file of a
# checkpoint to resume from.
TRAIN = """
import hashlib, sys
import torch
from torch import nn
from torch.optim import lr_scheduler as schedules
torch.manual_seed(1)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 2))
optimizer = torch.optim.Adam([{"params": net[0].parameters()}, {"params": net[2].parameters(), "lr": 0.02}], lr=0.1)
scheduler = {
    "none": lambda: None,
    "step": lambda: schedules.StepLR(optimizer, 3, 0.5),
    "lambda": lambda: schedules.LambdaLR(optimizer, lambda step: 0.9 ** step),
    "cosine": lambda: schedules.CosineAnnealingLR(optimizer, 8),
    "linear": lambda: schedules.LinearLR(optimizer, 0.5, total_iters=6),
    "cycle": lambda: schedules.OneCycleLR(optimizer, 0.4, total_steps=10),
    "chain": lambda: schedules.SequentialLR(optimizer, [schedules.ConstantLR(optimizer, 0.5, 3),
                                                        schedules.ExponentialLR(optimizer, 0.9)], [4]),
}[sys.argv[1]]()
first = 1
if len(sys.argv) > 2:
    safe = {"weights_only": True} if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 0) else {}
    state = torch.load(sys.argv[2], **safe)
    net.load_state_dict(state["models"]["net"])
    optimizer.load_state_dict(state["optimizers"]["Adam"])
    for held in state["schedulers"].values():
        scheduler.load_state_dict(held)
        scheduler.step()
    torch.set_rng_state(state["rng"]["torch"])
    if "cuda" in state["rng"]:
        torch.cuda.set_rng_state_all(state["rng"]["cuda"])
    first = state["step"] + 1
for step in range(first, 9):
    optimizer.zero_grad()
    loss = net(torch.randn(16, 4)).pow(2).mean()
    loss.backward()
    print("rates", step, *(group["lr"] for group in optimizer.param_groups), flush=True)
    optimizer.step()
    if scheduler is not None:
        scheduler.step()
print("digest", hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest())
"""
SECOND = """
import torch
nets = [torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)]
rate = torch.tensor(0.5) if torch.__version__ >= "2" else 0.5
optimizers = [torch.optim.SGD(nets[0].parameters(), lr=0.1), torch.optim.Adam(nets[1].parameters(), lr=rate)]
for step in range(4):
    for net, optimizer in zip(nets, optimizers):
        optimizer.zero_grad()
        net(torch.ones(3, 2)).sum().backward()
        optimizer.step()
    print("rates", *(float(one.param_groups[0]["lr"]) for one in optimizers), rate is optimizers[1].param_groups[0]["lr"],
          flush=True)
"""
RANKS = """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.5 / (1 + dist.get_rank()))
for step in range(3):
    optimizer.zero_grad()
    net(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    print("rank %d rate %g\\n" % (dist.get_rank(), optimizer.param_groups[0]["lr"]), end="", flush=True)
dist.destroy_process_group()
"""
WRONG = (
    ("set lr = nope * 2", "nope * 2: no metric \"nope\" has been reported yet: see \"info scalars\""),
    ("set lr = lr - 1", "set lr: lr - 1 gives -0.9: a learning rate is 0 or more"),
    ("set lr = 1 / 0", "set lr: 1 / 0 gives inf: a learning rate is 0 or more"),
    ("set lr = 0 / 0", "0 / 0: the result is undefined"),
    ("set lr = max(cur)", "max(cur): only metrics can be used here, not statistics of a tensor"),
    ("set lr =", "set lr: specify a number or an expression"),
    ("set lr[2] = 1", "set lr: Adam has no group 2: its groups are 0 to 1"),
    ("set lr[SGD] = 1", "no optimizer 'SGD': the optimizers are Adam"),
    ("set lr[0 = 1", "set lr: '[' without ']'"),
    ("set lr[Adam:x] = 1", "\"x\" is not a number: expected a count of 0 or more"),
    ("checkpoint a{.pt", "a{.pt: a '{' has no '}'"),
    ("checkpoint a}.pt", "a}.pt: a '}' has no '{'"),
    ("checkpoint a{nope}.pt", "nope: no metric \"nope\" has been reported yet"),
    ("checkpoint a{loss:.4z}.pt", "\".4z\" is not a format such as .4f, 06d or .3e"),
    ("checkpoint a.pt b.pt", "checkpoint: specify one file"),
    ("checkpoint keep=2", "checkpoint: specify the file, too"),
    ("checkpoint a.pt keep=0", "0 is out of range: 1 to 1000000"),
    ("checkpoint /nowhere/a.pt", "/nowhere is not a directory of the training's host"),
    ("checkpoint .", " is a directory"),
    ("table a.txt", "table: a.txt does not end in .csv, .tsv or .jsonl"),
    ("table", "table: specify a file"),
    ("table a.csv max(cur)", "max(cur): only metrics can be used here, not statistics of a tensor"),
    ("table a.csv 'loss +'", "a statistic or a number is missing at the end"),
    ("table /nowhere/a.csv", "table: cannot write /nowhere/a.csv: No such file or directory"),
    ("table other.csv loss", "table: other.csv has other columns: choose another file, or remove it"),
    ("table other.csv", "table: other.csv has other columns: choose another file, or remove it"),
    ("kill softly", "kill: expected nothing, or \"training\""),
    ("checkpoint train.py", "train.py exists and is not a checkpoint of this run: replace it with checkpoint -f"),
)


ENDS = """
import torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
try:
    for step in range(50):
        optimizer.zero_grad()
        net(torch.ones(3, 2)).sum().backward()
        optimizer.step()
except KeyboardInterrupt as error:
    print("saved after", step + 1, error)
"""


# The loss falls for ten steps, then stays; with an argument it is NaN from step 7 on.
PLATEAU = """
import sys
import torch
import gradb.torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
try:
    for step in range(1, 41):
        value = float("nan") if len(sys.argv) > 1 and step > 6 else max(1.0, 2 - step / 10)
        loss = net(torch.ones(1, 2)).sum() * 0 + value
        optimizer.zero_grad()
        loss.backward()
        gradb.torch.log("accuracy", 0.1 * (step % 7) + 0.01 * (step // 7))
        print("loss", step, loss.item(), optimizer.param_groups[0]["lr"], flush=True)
        optimizer.step()
except KeyboardInterrupt:
    print("stopped after", step)
"""


@torches.both
class Examples(shipped.Shipped, torches.Folder):
    def trained(self, commands, *arguments):
        done = self.gradb([self.python, self.write("plateau.py", PLATEAU), *arguments], *commands, "info log -a")
        self.assertIn(done.returncode, (0, 4), done.stdout + done.stderr)
        self.assertEqual(done.stderr, "", done.stdout)
        return done.stdout

    def test_each_does_what_it_says(self):
        self.check_all("pt")


@torches.both
class Actions(torches.Folder):
    def bare(self, *args):
        """The output of the training without gradb."""
        return subprocess.run([*torches.warm(self.python), self.write("train.py", TRAIN), *args], cwd=self.folder,
                              env=torches.environment(GRADB_DISABLE="1"), check=True, capture_output=True, text=True,
                              timeout=2 * harness.DEADLINE).stdout

    def done(self, program, *commands):
        """gradb's output for the commands, and the training's."""
        done = self.gradb([self.python, *program], *commands, "info log -a")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout.replace(str(self.folder) + "/", "")

    def test_rates_are_what_the_next_step_uses_and_schedules_follow(self):
        for schedule in ("none", "step", "lambda", "cosine", "linear", "cycle", "chain"):
            with self.subTest(schedule=schedule):
                before = rates(self.bare(schedule))
                said = self.done([self.write("train.py", TRAIN), schedule], "step 2", "set lr = lr / 2",
                                 "set lr[1] *= 0.5", "info events", "continue")
                after = rates(said)
                self.assertEqual(len(after), 8)
                first = [before[1][0] / 2, before[1][1] / 2]
                self.assertIn("lr of Adam, group 0: %.6g -> %.6g\nlr of Adam, group 1: %.6g -> %.6g\n" % (
                    before[1][0], first[0], before[1][1], first[1]), said)
                self.assertEqual(said.count(" can change it again, from the new rate.\n"),
                                 0 if schedule == "none" else 6 if schedule == "chain" else 2, said)
                if schedule == "step":
                    self.assertIn("The scheduler StepLR (made at train.py:12) can change it again", said)
                self.assertRegex(said, r"(?m)^ *2 +set +lr of Adam: \[0\] \S+ -> \S+, \[1\] \S+ -> \S+$")
                self.assertRegex(said, r"(?m)^ *2 +set +lr of Adam: \[1\] \S+ -> \S+$")
                for step in range(8):
                    scales = (1, 1) if step < 2 else (2, 4)
                    for index, scale in enumerate(scales):
                        self.assertAlmostEqual(after[step][index] * scale, before[step][index], 12, (schedule, step))

    def test_one_of_several_optimizers_and_a_rate_that_is_a_tensor(self):
        said = self.done([self.write("second.py", SECOND)], "step", "set lr[Adam] = lr * 2", "step", "set lr = 0.3",
                         "step", "set lr[Adam:0] -= 0.25", "continue")
        self.assertIn("lr of Adam: 0.5 -> 1\n", said)
        self.assertIn("lr of SGD: 0.1 -> 0.3\n", said)
        held = torches.release_of(self.python) >= (2, 0)
        found = [tuple(map(float, line.split()[1:3])) for line in said.splitlines() if line.startswith("rates ")]
        self.assertEqual([(round(a, 6), round(b, 6)) for a, b in found], [(0.1, 1), (0.3, 1), (0.3, 0.75), (0.3, 0.75)])
        if held:
            self.assertNotIn("False", said)

    def test_resumed_training_ends_with_the_same_weights(self):
        for schedule in ("none", "lambda", "cycle"):
            with self.subTest(schedule=schedule):
                bare = self.bare(schedule)
                said = self.done([self.write("train.py", TRAIN), schedule], "step 4",
                                 "checkpoint kept-{schedule}-{loss:.2f}-{step}".replace("{schedule}", schedule), "continue")
                name = next(path.name for path in self.folder.glob("kept-%s-*" % schedule))
                self.assertRegex(said, r"(?m)^checkpoint of step 4: kept-\w+-\d\.\d\d-4\.pt \(\d+\.\d KiB: net, Adam")
                self.assertEqual(digest(said), digest(bare))  # and the random state was left alone
                self.assertEqual(digest(self.bare(schedule, name)), digest(bare))

    def test_a_file_that_is_asked_for_inside_a_step_is_written_at_its_end(self):
        said = self.done([self.write("train.py", TRAIN), "none"], "checkpoint first-{step}", "step 2", "next 3",
                         "checkpoint at-{step}", "next 2", "info breakpoints", "step 2", "info breakpoints", "kill")
        self.assertEqual(said.count("The checkpoint will be saved at the end of the step.\n"), 2)
        self.assertEqual(sorted(path.name for path in self.folder.glob("*.pt")), ["at-3.pt", "first-1.pt"])
        self.assertEqual(said.count("checkpoint at-{step}\n"), 1, said)

    def test_only_the_last_files_are_kept(self):
        (self.folder / "best-0.0.pt").write_text("mine")
        said = self.done([self.write("train.py", TRAIN), "none"], "step", "checkpoint best-{step}.0 keep=2",
                         "checkpoint other keep=1", "step", "checkpoint best-{step}.0 keep=2", "step",
                         "checkpoint best-{step}.0 keep=2", "checkpoint other keep=1", "kill")
        self.assertIn("; 1 older file deleted\n", said)
        self.assertEqual(sorted(path.name for path in self.folder.glob("*.pt")),
                         ["best-0.0.pt", "best-2.0.pt", "best-3.0.pt", "other.pt"])
        self.assertEqual((self.folder / "best-0.0.pt").read_text(), "mine")

    def test_a_file_of_somebody_else_is_replaced_only_when_forced(self):
        (self.folder / "mine.pt").write_text("mine")
        self.done([self.write("train.py", TRAIN), "none"], "step", "checkpoint -f mine.pt", "kill")
        self.assertGreater((self.folder / "mine.pt").stat().st_size, 1000)

    def test_what_is_wrong_is_said_and_changes_nothing(self):
        bare = self.bare("lambda")
        (self.folder / "other.csv").write_text("a,b\n1,2\n")
        with harness.Gradb(command=("run", "--", *torches.warm(self.python), self.write("train.py", TRAIN), "lambda"),
                           env=torches.environment(), cwd=self.folder) as gradb:
            gradb.expect("Stopped before the first step")
            gradb.run("step", "end of step 1")
            for line, message in WRONG:
                gradb.send(line)
                said = gradb.expect("^error: ").string
                self.assertIn(message, said, line)
            gradb.send("continue")
            gradb.expect("The training ended")
            gradb.send("info log -a")
            gradb.expect("^digest ")
            self.assertEqual((rates(gradb.text()), digest(gradb.text())), (rates(bare), digest(bare)))
        self.assertEqual(list(self.folder.glob("*.p*t")), [])

    def test_all_ranks_change_and_each_writes_a_file(self):
        done = self.gradb([*torches.ranks(self.python, 2), self.write("ranks.py", RANKS)], "step", "set lr = lr / 4",
                          "info events", "rank 1", "info events", "checkpoint all", "continue", "info log -a")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("lr of SGD: 0.5 -> 0.125\nlr of SGD (rank 1): 0.25 -> 0.125\n2 ranks changed.\n", done.stdout)
        logged = re.findall(r"(?m)^ *1 +set +lr of SGD: (\S+) -> 0.125$", done.stdout)
        self.assertEqual(logged, ["0.5", "0.25"], done.stdout)
        for rank in (0, 1):
            self.assertRegex(done.stdout, r"\[rank %d\] checkpoint of step 1: \S*/all\.rank%d\.pt \(" % (rank, rank))
            self.assertTrue((self.folder / ("all.rank%d.pt" % rank)).exists())
            self.assertEqual(done.stdout.count("rank %d rate 0.125\n" % rank), 3, done.stdout)

    def test_a_table_has_the_losses(self):
        (self.folder / "other.csv").write_text("a,b\n1,2\n")
        said = self.done([self.write("train.py", TRAIN), "none"], "step", "table all.csv", "step", "table all.csv",
                         "table some.jsonl loss \"lr * 2\"", "table some.tsv nope", "kill")
        head, *rows = (self.folder / "all.csv").read_text().splitlines()
        self.assertEqual(head, "step,epoch,batch,elapsed,lr,lr_1,loss")
        self.assertEqual([row.split(",")[0] for row in rows], ["1", "2"])
        for row in rows:
            self.assertIn("loss = %.6g\n" % float(row.split(",")[-1]), said)
        row = json.loads((self.folder / "some.jsonl").read_text())
        self.assertEqual((row["step"], row["loss"], row["lr * 2"]), (2, float(rows[1].split(",")[-1]), 0.2))
        self.assertRegex((self.folder / "some.tsv").read_text(), "\\Astep\tepoch\tbatch\telapsed\tnope\n2\t.*\t\n\\Z")
        self.assertEqual((self.folder / "other.csv").read_text(), "a,b\n1,2\n")

    def test_the_training_ends_early_and_the_script_goes_on(self):
        said = self.done([self.write("ends.py", ENDS)], "step 3", "info events", "kill training")
        self.assertRegex(said, r"(?m)^The training ends at step 3, loss \S+: KeyboardInterrupt, which the script can catch$")
        self.assertIn("saved after 3 the debugger ended the training\n", said)

    def test_records(self):
        said = harness.run_gradb("-nx", "--json", "--batch", "--listen", "127.0.0.1:0",
                                 *harness.typed("step", "set lr[0] = lr / 2", "checkpoint a", "kill"), "run", "--",
                                 *torches.warm(self.python), self.write("train.py", TRAIN), "step",
                                 env=torches.environment(), cwd=self.folder)
        found = {record["type"]: record for record in harness.records(said)}
        self.assertEqual(found["lr"]["groups"], [{"group": 0, "old": 0.1, "new": 0.05}])
        self.assertEqual((found["lr"]["optimizer"], found["lr"]["step"]), ("Adam", 1))
        self.assertEqual(found["lr"]["schedulers"], [{"name": "StepLR", "place": "train.py:12", "follows": True}])
        kept = found["checkpoint"]
        self.assertEqual(kept["bytes"], (self.folder / "a.pt").stat().st_size)
        self.assertEqual((kept["path"], kept["step"], kept["models"], kept["optimizers"], kept["schedulers"]),
                         (str(self.folder / "a.pt"), 1, ["net"], ["Adam"], ["StepLR"]))


def rates(text):
    """The rates of each step that the training printed."""
    return [tuple(map(float, line.split()[2:])) for line in text.splitlines() if line.startswith("rates ")]


def digest(text):
    return next(line for line in text.splitlines() if line.startswith("digest "))


if __name__ == "__main__":
    harness.main()
