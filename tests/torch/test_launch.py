# SPDX-License-Identifier: GPL-3.0-or-later
"""`gradb run` sees a PyTorch training however it is started, and nothing else."""
import os
import pathlib
import re
import subprocess

import harness
import torches
from torches import TRAINER, free_port

WORKERS = """
import sys
import torch

class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.transform = torch.nn.Linear(3, 3)  # called in the workers, with gradients

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.transform(torch.ones(3)).detach()

def main():
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2, persistent_workers=True,
                                         multiprocessing_context=sys.argv[1])
    for x in loader:
        net(x).pow(2).mean().backward()
        optimizer.step()

if __name__ == "__main__":
    main()
"""

# Before it trains it has a helper compute something with torch, as a tokenizer or an evaluation would.
HELPERS = """
import importlib.util, multiprocessing, subprocess, sys
assert importlib.util.find_spec("torch") is not None  # asked by many libraries before torch is imported
HELP = '''
import torch
net = torch.nn.Linear(3, 3)
with torch.no_grad():
    net(torch.ones(3))
net.eval()(torch.ones(3))
print("helped", torch.ones(3).sum().item())
'''
def serve(queue):
    import torch
    queue.put(torch.nn.Linear(2, 2).eval()(torch.ones(2)).sum().item())

def main():
    out = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True).stdout
    assert out.startswith("helped 3"), out
    for method in ("spawn", "fork"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        helper = context.Process(target=serve, args=(queue,))
        helper.start()
        queue.get()
        helper.join()
    exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), {"__name__": "trainer"})

if __name__ == "__main__":
    main()
"""

SPAWNED = """
import os, sys
import torch, torch.distributed as dist, torch.multiprocessing as mp

def train(rank, port):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%d" % port, rank=rank, world_size=2)
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(5):
        net(torch.ones(4, 3)).pow(2).mean().backward()
        optimizer.step()

if __name__ == "__main__":
    mp.spawn(train, args=(int(sys.argv[1]),), nprocs=2)
"""

@torches.both
class Started(torches.Folder):
    def assert_seen(self, program, sessions=1, steps=2, **env):
        """The program is stopped at the end of a step, as so many sessions."""
        done = self.gradb(program, f"step {steps}", "info ranks", "kill", **env)
        self.assertIn(f"Stopped at the end of step {steps}", done.stdout, done.stdout + done.stderr)
        self.assertEqual(len(re.findall(r"(?m)^[* ] +\d+ +\d+(?: of \d+)? +\d+ +pytorch", done.stdout)), sessions, done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def assert_two_ranks(self, program):
        """The command line is seen as the ranks 0 and 1."""
        with harness.Gradb("-nx", env=torches.environment(), command=()) as gradb:
            gradb.send("set start-timeout 0")
            gradb.send("run -- " + program)
            gradb.expect("training process 1,")
            gradb.expect("training process 2,")
            gradb.send("info ranks")
            ranks = {gradb.expect(r"^[* ] +\d+ +(\d+) of 2 +\d+ +pytorch").group(1) for _ in range(2)}
            self.assertEqual(ranks, {"0", "1"})
            gradb.send("kill")
            gradb.expect("ended")

    def assert_not_seen(self, program, **env):
        """The program ends without having connected: what gradb says of it."""
        done = self.gradb(program, **env)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(done.stderr.strip().count("\n"), 0, done.stderr)
        return done.stderr

    def test_script(self):
        self.assert_seen([self.python, self.write("train.py", TRAINER), "--epochs", "3"])

    def test_module_of_a_package_on_the_users_path(self):
        self.write("lib/pack/__init__.py", "")
        self.write("lib/pack/train.py", "import helper\n" + TRAINER)
        self.write("other/helper.py", "")
        self.assert_seen([self.python, "-m", "pack.train"], PYTHONPATH=f"{self.folder}/lib:{self.folder}/other")

    def test_shell_script(self):
        self.write("train.py", TRAINER)
        script = self.write("start.sh", f"#!/bin/sh\ncd {self.folder} || exit 1\n{self.python} train.py\necho over\n")
        os.chmod(script, 0o755)
        self.assert_seen([script])

    def test_virtual_environment(self):
        made = subprocess.run([self.python, "-m", "venv", "--without-pip", "--system-site-packages",
                               str(self.folder / "venv")], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        packages = next((self.folder / "venv" / "lib").glob("python*/site-packages"))
        for path in pathlib.Path(self.python).parent.parent.glob("lib/python*/site-packages"):
            (packages / "base.pth").write_text(f"{path}\n")  # of the environment that this one was made from
        self.assert_seen([str(self.folder / "venv" / "bin" / "python"), self.write("train.py", TRAINER)])

    def test_launcher_of_ranks(self):
        if torches.version_of(self.python).startswith("1."):
            self.skipTest("this PyTorch's launcher does not run on this Python")
        self.assert_two_ranks(f"{self.python} -m torch.distributed.run --nproc-per-node 2 --master-port {free_port()} "
                              f"'{torches.SCRIPTS}/ddp.py'")

    def test_torchrun(self):
        torchrun = pathlib.Path(self.python).with_name("torchrun")
        if torches.version_of(self.python).startswith("1.") or not torchrun.exists():
            self.skipTest("no torchrun that runs on this Python")
        self.assert_seen([str(torchrun), "--nproc-per-node", "1", "--master-port", str(free_port()),
                          self.write("train.py", TRAINER)])

    def test_own_customizations_run(self):
        self.write("site/sitecustomize.py", "import builtins\nbuiltins.site_ran = True\n")
        self.write("site/usercustomize.py", "import builtins\nbuiltins.user_ran = True\n")
        out = self.assert_seen([self.python, self.write("train.py", """
import builtins, os, sys, sitecustomize, site
assert site_ran and sitecustomize.__file__ == os.path.join(os.environ["PYTHONPATH"].split(os.pathsep)[1],
                                                           "sitecustomize.py"), sitecustomize.__file__
assert not site.ENABLE_USER_SITE or user_ran
assert not [path for path in sys.path if "gradb" + os.sep in path and "_boot" in path], sys.path
""" + TRAINER)], PYTHONPATH=str(self.folder / "site"))
        self.assertNotIn("Error in sitecustomize", out)

    def test_fault_of_an_own_customization_is_its_own(self):
        self.write("site/sitecustomize.py", "import no_such_module\n")
        path = str(self.folder / "site")
        train = self.write("train.py", TRAINER)
        alone = subprocess.run([self.python, "-c", "print('ran')"], env=torches.environment(PYTHONPATH=path),
                               capture_output=True, text=True, check=True)
        self.assertIn("no_such_module", alone.stderr)
        done = self.gradb([self.python, train], "step 2", "info log", "kill", PYTHONPATH=path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(alone.stderr.strip().split("\n")[-1], done.stdout)

    def test_isolated_interpreter(self):
        self.write("train.py", TRAINER)
        for options in (["-I"], ["-W", "ignore", "-Eu"]):
            with self.subTest(options=options):
                why = self.assert_not_seen([self.python, *options, "train.py"])
                self.assertIn("exited with status 0 before it connected; it said last: trained", why)
                self.assertIn("python -m gradb", why)

    def test_program_that_does_not_train(self):
        why = self.assert_not_seen([self.python, "-c", "import torch; print(torch.ones(2).sum().item())"])
        self.assertIn("makes an optimizer", why)
        failing = self.assert_not_seen([self.python, "-c", "import torch; raise SystemExit(7)"])
        self.assertIn("exited with status 7 before it connected", failing)
        self.assertNotIn("makes an optimizer", failing)

    def test_disabled_inside(self):
        why = self.assert_not_seen(["sh", "-c", f"GRADB_DISABLE=1 {self.python} {self.write('train.py', TRAINER)}"])
        self.assertIn("trained", why)

    def test_workers_are_left_alone(self):
        for method in ("fork", "spawn"):
            with self.subTest(method=method):
                self.assert_seen([self.python, self.write("workers.py", WORKERS), method], steps=4)

    def test_helpers_are_left_alone(self):
        self.assert_seen([self.python, self.write("helpers.py", HELPERS), self.write("train.py", TRAINER)])

    def test_spawned_trainers_are_ranks(self):
        self.assert_two_ranks(f"{self.python} {self.write('spawned.py', SPAWNED)} {free_port()}")


if __name__ == "__main__":
    harness.main()
