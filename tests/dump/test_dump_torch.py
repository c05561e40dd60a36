# SPDX-License-Identifier: GPL-3.0-or-later
"""dump of PyTorch trainings, whose values come and go: weights, gradients, and operator outputs that the script dropped
equal those the training wrote itself, also if a step is passed from node to node or an operator is unknown; there is
nothing from another step."""
import json
import re
import sys

import numpy as np

import harness

sys.path.insert(0, str(harness.SOURCE / "tests" / "torch"))
import torches  # noqa: E402

TRAINER = """
import json, pathlib, torch
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(inplace=True), torch.nn.Linear(8, 4))
head = torch.nn.Linear(2, 2).to(torch.bfloat16)
extra = torch.nn.Linear(2, 2)
parameters = [*net.parameters(), *head.parameters(), *extra.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
told, made = {}, {}
def keep(name):
    def save(module, given, output):
        made[name] = output.detach().clone().tolist()
    return save
for name, module in (("net.0.linear", net[0]), ("net.1.relu", net[1]), ("net.2.linear", net[2]),
                     ("head.linear", head), ("extra.linear", extra)):
    module.register_forward_hook(keep(name))
for step in range(1, 9):
    optimizer.zero_grad(set_to_none=True)
    a, b = net(torch.randn(5, 6)).split(2, dim=1)
    out = head(torch.cat((b, a)).to(torch.bfloat16)).float()
    if step % 2 == 0:
        out = extra(out)
    loss = out.pow(2).mean()
    out.register_hook(lambda grad: made.update({"backward.pow": grad.clone().tolist()}))
    made["mean"] = loss.item()
    loss.backward()
    optimizer.step()
    told[step] = {name + "." + key: value.tolist() for name, module in (("net", net), ("head", head), ("extra", extra))
                  for key, value in module.state_dict().items()}
    told[step].update({name + "." + key + ".grad": value.grad.tolist() for name, module in (("net", net), ("head", head))
                       for key, value in module.named_parameters()})
    told[step].update(made)
    made.clear()
    pathlib.Path("told.json").write_text(json.dumps(told))
"""
NAME = re.compile(r"([^.]+)\.([^.]+)\.0\.0\.\d{16}\.output\.0\.DefaultFormat\.\w+\.npy")


@torches.both
class Training(torches.Folder):
    def test_values_of_the_steps(self):
        script = self.write("train.py", TRAINER)
        done = self.gradb([self.python, script], "dump d --steps 2-5", "next 2", "step 2", "next 3", "next 100",
                          "dump part --io all", "info dump", "continue")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        steps = re.findall(r"Dumped step (\d):", done.stdout)
        self.assertEqual(steps[:4], ["2", "3", "4", "5"], done.stdout)
        told = json.loads((self.folder / "told.json").read_text())
        graph = self.folder / "d" / "rank_0" / "net" / "0"
        self.assertEqual(sorted(path.name for path in graph.iterdir()), ["2", "3", "4", "5"])
        for step in steps[:4]:
            found = {NAME.fullmatch(p.name)[2]: np.load(p) for p in (graph / step).glob("*.npy") if NAME.fullmatch(p.name)}
            for name, value in told[step].items():
                at = re.sub(r"[./]", "_", name)
                with self.subTest(step=step, name=name):
                    self.assertIn(at, found)
                    self.assertEqual(found[at].tolist(), value)
            # the loss has a gradient of `extra` only in even steps: zero_grad() removes that of the previous step
            self.assertEqual("extra_weight_grad" in found, step in "24", sorted(found))
            self.assertEqual("extra_linear" in found, step in "24", sorted(found))
        part = re.search(r"Dumped step (\d) as far as (\S+):", done.stdout)
        if part:
            stood = self.folder / "part" / "rank_0" / ".dump_metadata" / "stood_at.csv"
            self.assertEqual(stood.read_text(), f"{part[1]},{part[2]}\n")
        opened = harness.run_gradb("-nx", "--batch", "-ex", "info steps", "-ex", "goto 4", "-ex", "print head/bias",
                                   "open", self.folder / "d", cwd=self.folder)
        self.assertEqual(opened.returncode, 0, opened.stdout + opened.stderr)
        self.assertRegex(opened.stdout, r"4 steps from 2 to 5")
        self.assertIn(f"{told['4']['head.bias'][0]:.3g}"[:5], opened.stdout)

    def test_operators_that_nobody_has_seen_before(self):
        script = self.write("train.py", TRAINER)
        done = self.gradb([self.python, script], "dump d on type:linear --steps 1|3", "step 2", "step 2",
                          "dump now", "print net/0/linear")
        told = json.loads((self.folder / "told.json").read_text())
        graph = self.folder / "d" / "rank_0" / "net" / "0"
        for step in "13":
            found = {NAME.fullmatch(p.name)[2]: np.load(p).tolist() for p in (graph / step).glob("*.npy")}
            self.assertEqual(found, {name.replace(".", "_"): value for name, value in told[step].items()
                                     if name.endswith(".linear")})
        self.assertIn("announce the step: dump DIR --steps 5\n", done.stdout)
        # other steps are not copied, and nothing of the previous step is left
        self.assertIn("the script no longer has it", done.stdout + done.stderr)

    def test_where_two_trainings_part(self):
        """In gradb's dumps: one of them has an additional operator."""
        for name, changed in (("plain", ""), ("more", "* 1.01")):
            script = self.write(name + ".py", TRAINER.replace("if step % 2 == 0:", f"out = out {changed}\n    if False:"))
            done = self.gradb([self.python, script], f"dump {name} --steps 1", "step", "kill")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = harness.run_gradb("-nx", "--batch", "--json", "-ex", "first-divergence more plain", "-ex",
                                 "first-divergence plain plain", cwd=self.folder)
        more, same = (json.loads(line) for line in done.stdout.splitlines() if '"first-divergence"' in line)
        self.assertEqual((more["label"], more["node"], more["only_a"], more["last_good"]),
                         ("ORIGIN", "pow", "mul", "float"), more)
        self.assertFalse(same["found"], same)


if __name__ == "__main__":
    harness.main()
