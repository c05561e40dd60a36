# SPDX-License-Identifier: GPL-3.0-or-later
"""`diagnose`: that it harms no training, `why loss` by its rules, and jobs of ranks. test_rules.py: its rules."""
import subprocess

import harness
import torches

SCRIPTS = harness.SOURCE / "tests" / "torch" / "diagnose"
MLP = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 4)
for _ in range(20):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("last loss %.3f" % loss)
"""


class Diagnoses(torches.Folder):
    def diagnosed(self, *program, options=(), status=(0, 4), cold=False):
        """The record of `gradb diagnose -- python train.py`."""
        python = [self.python] if cold else torches.warm(self.python)
        done = harness.run_gradb("-nx", "--json", "--listen", "127.0.0.1:0", "diagnose", *options, "--", *python,
                                 *program, env=torches.environment(), cwd=self.folder,
                                 timeout=4 * harness.DEADLINE)
        self.assertIn(done.returncode, status, done.stdout + done.stderr)
        return harness.records(done, "diagnosis")[-1]


@torches.both
class Harm(Diagnoses):
    """A training that uses much of PyTorch computes the same under `diagnose`, also when gradb is killed."""

    def setUp(self):
        super().setUp()
        self.script, self.digest = str(torches.SCRIPTS / "features.py"), self.folder / "digest"

    def taken(self):
        """What the script computed, when it has ended."""
        harness.wait_for("the script to end", self.digest.exists)
        text = self.digest.read_text()
        self.digest.unlink()
        return text

    def alone(self):
        subprocess.run([*torches.warm(self.python), self.script, str(self.digest)], check=True, capture_output=True,
                       env=torches.environment(GRADB_DISABLE="1"), timeout=2 * harness.DEADLINE)
        return self.taken()

    def test_it_computes_the_same(self):
        alone = self.alone()
        record = self.diagnosed(self.script, self.digest)
        self.assertEqual(record["looked_at"]["failed"], [])
        self.assertGreater(record["looked_at"]["observed"], 3)
        self.assertEqual(self.taken(), alone)

    def test_gradb_is_killed(self):
        alone = self.alone()
        with harness.Gradb("--json", command=("run", "--", *torches.warm(self.python), self.script, str(self.digest)),
                           env=torches.environment(), cwd=self.folder) as gradb:
            gradb.expect('"type":"stopped"')
            gradb.send("agent observe on")
            gradb.run("step 3", '"type":"run","session":1,"state":"stopped"')
            gradb.send("diagnose")
            gradb.process.kill()
            self.assertEqual(self.taken(), alone)


@torches.newest
class Text(Diagnoses):
    def test_the_output_of_the_training_comes_first(self):
        path = self.write("train.py", "print('learning rate 0.1')\n" + MLP)
        done = harness.run_gradb("-nx", "--listen", "127.0.0.1:0", "diagnose", "--", *torches.warm(self.python), path,
                                 env=torches.environment(), cwd=self.folder, timeout=2 * harness.DEADLINE)
        follows, printed, report = map(done.stdout.find, ("Following the training to its end", "last loss ", "Examined "))
        self.assertIn("learning rate 0.1\n", done.stdout)
        self.assertTrue(0 <= follows < printed < report, done.stdout + done.stderr)


# The child connects first, and the program waits for it; the last one fails.
SEVERAL = """
import subprocess
import sys
import torch

def train():
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        x = torch.randn(64, 4)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("trained")

if len(sys.argv) < 2:
    subprocess.run([sys.executable, __file__, "child"], check=True)
train()
if len(sys.argv) < 2:
    print("status", subprocess.run([sys.executable, __file__, "fails"]).returncode)
elif sys.argv[1] == "fails":
    raise ValueError("on purpose")
"""


@torches.newest
class Trainings(Diagnoses):
    def test_other_trainings_of_the_program_run(self):
        path = self.write("train.py", SEVERAL)
        done = harness.run_gradb("-nx", "--json", "--listen", "127.0.0.1:0", "diagnose", "--", *torches.warm(self.python),
                                 path, env=torches.environment(), cwd=self.folder, timeout=4 * harness.DEADLINE)
        record, = harness.records(done, "diagnosis")
        self.assertEqual(record["looked_at"]["others"], 2)
        self.assertEqual(record["looked_at"]["steps"], 20)
        lines = [one["text"] for one in harness.records(done, "log")]
        self.assertEqual(lines.count("trained"), 3, lines)
        self.assertIn("status 1", lines)


@torches.newest
class WhyLoss(Diagnoses):
    """`why loss` by the rules of `diagnose`, and what it must not say."""

    def asked(self, script, *commands):
        """The records of `why` after those commands."""
        path = self.write("train.py", script)
        done = harness.run_gradb("-nx", "--batch", "--json", "--listen", "127.0.0.1:0", *harness.typed(*commands), "run",
                                 "--", *torches.warm(self.python), path, env=torches.environment(), cwd=self.folder,
                                 timeout=2 * harness.DEADLINE)
        return harness.records(done, "why")

    def test_gradients_that_are_zeroed_after_the_step(self):
        """At an event between two steps they are gone, as they should be."""
        script = (SCRIPTS / "normalised-twice.py").read_text(encoding="utf-8")
        script = script.replace("    optimizer.zero_grad()\n", "") + "    optimizer.zero_grad()\n"
        for event in ("end", "step-end"):
            with self.subTest(event=event):
                record, = self.asked(script, "step 3", "catch " + event, "continue", "why loss")
                self.assertEqual(record["rule"], "")

    def test_it_observes_where_it_finds_nothing(self):
        script = (SCRIPTS / "normalised-twice.py").read_text(encoding="utf-8")
        before, after = self.asked(script, "step 2", "why loss", "step 9", "why loss")
        self.assertNotIn("findings", before)
        self.assertEqual(after["findings"], [])


@torches.both
class Ranks(Diagnoses):
    def test_ranks_are_compared(self):
        if torches.version_of(self.python).startswith("1."):
            self.skipTest("no torchrun that runs on this Python")
        for mistake in ("not-averaged", "different-start", "parameters-part", "scaled-on-one-rank", "same-data",
                        "gradients-summed", "same-draws-of-ranks", "epoch-never-set", "statistics-part", "unequal-steps",
                        "none", "none by hand"):
            with self.subTest(mistake=mistake):
                record = self.diagnosed("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                                        harness.SOURCE / "tests" / "torch" / "diagnose_ranks.py", mistake, cold=True,
                                        status=(0, 4, 5))
                found = {one["rule"] for one in record["findings"] if one["verdict"] != "note"}
                self.assertEqual(found, set() if mistake.startswith("none") else {mistake})


if __name__ == "__main__":
    harness.main()
