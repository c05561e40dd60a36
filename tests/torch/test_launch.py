# SPDX-License-Identifier: GPL-3.0-or-later
"""`gradb run` attaches to a PyTorch training however it is started, and to nothing else.

The interpreters are started as a user would start them; where only the processes below matter, the one above them is
warm."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import harness
import torches
from harness import free_port
from torches import TRAINER

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
    loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=int(sys.argv[2]), persistent_workers=True,
                                         multiprocessing_context=sys.argv[1])
    for x in loader:
        net(x).pow(2).mean().backward()
        optimizer.step()

if __name__ == "__main__":
    main()
"""

# Before it trains, a helper computes something with torch, as a tokenizer or an evaluation would.
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

# Two processes that train, one for longer.
UNEQUAL = """
import time
import torch
import torch.multiprocessing as mp

def train(steps):
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        net(torch.ones(4, 3)).pow(2).mean().backward()
        optimizer.step()
        time.sleep(0.005)
    print("trained %d steps" % steps)

if __name__ == "__main__":
    workers = [mp.get_context("spawn").Process(target=train, args=(steps,)) for steps in (3, 100)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("statuses", [worker.exitcode for worker in workers])
"""

# What a program can see of its interpreter, before and after it has trained; then it fails.
CURIOUS = """
import json, sys, threading, traceback, warnings
import gradb

def seen():
    hook = sys.excepthook
    return {"path": sys.path, "meta_path": [getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path],
            "path_hooks": len(sys.path_hooks), "flags": str(sys.flags), "filters": [str(rule) for rule in warnings.filters],
            "site": sorted(set(sys.modules) & {"sitecustomize", "usercustomize"}), "gradb": gradb.mine,
            "hook": [hook is sys.__excepthook__, repr(hook), hook.__module__, hook.__doc__],
            "threads": threading.excepthook is threading.__excepthook__, "modules": [name for name in sys.modules
            if name.split(".")[0] == "gradb"], "argv": sys.argv, "trace": sys.gettrace() is None}

found = [seen()]
import torch
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
found.append(seen())
for step in range(3):
    net(torch.ones(4, 3)).pow(2).mean().backward()
    optimizer.step()
found.append(seen())
print(json.dumps(found))

class Bad(torch.nn.Module):
    def forward(self, x):
        return net(x[:, :2])

try:
    Bad()(torch.ones(4, 3))
except RuntimeError as error:
    raise ValueError("it failed") from error
"""

# Before a training script: checks that the customizations of the folder "site" have run, and that nothing of gradb's is
# in the way.
CUSTOMIZED = """
import builtins, os, sys, sitecustomize, site
import helper
folder = os.environ["PYTHONPATH"].split(os.pathsep)[1]
assert folder.endswith("site"), folder
assert site_ran and sitecustomize.__file__ == os.path.join(folder, "sitecustomize.py"), sitecustomize.__file__
assert not site.ENABLE_USER_SITE or user_ran
assert not [path for path in sys.path if "gradb" + os.sep in path and "_boot" in path], sys.path
assert sys.argv[1:] == ["--epochs", "3"] and sys.prefix != sys.base_prefix, (sys.argv, sys.prefix)
"""


# A program's own hook wraps the loader of torch, as tracers and notebooks do: before gradb's, or after it.
WRAPPED = """
import importlib.machinery, sys
wrapped = []

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name == "torch" else None
        if spec is not None:
            run = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (wrapped.append(name), run(module))
        return spec

sys.meta_path.insert(0, Finder)
"""


class Launched(torches.Folder):
    """Programs whose processes import PyTorch themselves."""
    cold = True

    def device(self):
        """What the column says: a pattern."""
        return r"cuda(?::\d)?" if torches.on_device(self) else "cpu"

    def assert_seen(self, program, sessions=1, steps=2, **env):
        """The program is stopped at the end of a step, as that many sessions."""
        done = self.gradb(program, f"step {steps}", "info ranks", "kill", **env)
        self.assertIn(f"Stopped at the end of step {steps}", done.stdout, done.stdout + done.stderr)
        rows = re.findall(r"(?m)^[* ] +\d+ +\d+(?: of \d+)? +\d+ +\S+ +%s " % self.device(), done.stdout)
        self.assertEqual(len(rows), sessions, done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def assert_two_ranks(self, program):
        """The command line is seen as ranks 0 and 1."""
        with harness.Gradb("-nx", env=torches.environment(), command=()) as gradb:
            gradb.send("set start-timeout 0")
            gradb.send("run -- " + program)
            gradb.expect("training process 1,")
            gradb.expect("training process 2,")
            gradb.send("info ranks")
            row = r"^[* ] +\d+ +(\d+) of 2 +\d+ +\S+ +%s " % self.device()
            ranks = {gradb.expect(row).group(1) for _ in range(2)}
            self.assertEqual(ranks, {"0", "1"})
            gradb.send("kill")
            gradb.expect("ended")

    def assert_not_seen(self, program, **env):
        """The program ends without having connected: what gradb says about it."""
        done = self.gradb(program, **env)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(done.stderr.strip().count("\n"), 0, done.stderr)
        return done.stderr

    def make_environment(self):
        """Makes a virtual environment with the interpreter's packages. Returns its Python."""
        made = subprocess.run([self.python, "-m", "venv", "--without-pip", "--system-site-packages",
                               str(self.folder / "venv")], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        packages = next((self.folder / "venv" / "lib").glob("python*/site-packages"))
        for path in pathlib.Path(self.python).parent.parent.glob("lib/python*/site-packages"):
            (packages / "base.pth").write_text(f"{path}\n")  # of the environment that this one was made from
        return self.folder / "venv" / "bin" / "python"


@torches.both
class Started(Launched):
    def test_hook_of_the_program_around_the_import(self):
        self.assert_seen([self.python, self.write("train.py", WRAPPED + TRAINER + "assert wrapped == ['torch']\n")])

    def test_launcher_of_ranks(self):
        torchrun = pathlib.Path(self.python).with_name("torchrun")
        if torches.version_of(self.python).startswith("1.") or not torchrun.exists():
            self.skipTest("no torchrun that runs on this Python")
        self.assert_two_ranks(f"{torchrun} --nproc-per-node 2 --master-port {free_port()} '{torches.SCRIPTS}/ddp.py'")

    def test_program_that_does_not_train(self):
        why = self.assert_not_seen([self.python, "-c", "import torch; print(torch.ones(2).sum().item())"])
        self.assertIn("creates an optimizer", why)
        failing = self.assert_not_seen([self.python, "-c", "raise SystemExit(7)"])
        self.assertIn("exited with status 7 before it connected", failing)
        self.assertNotIn("creates an optimizer", failing)

    def test_workers_are_left_alone(self):
        script = self.write("workers.py", WORKERS)
        for method, count in (("fork", "2"), ("spawn", "1")):
            with self.subTest(method=method):
                self.assert_seen([*torches.warm(self.python), script, method, count], steps=4)

    def test_spawned_trainers_are_ranks(self):
        program = shlex.join([*torches.warm(self.python), self.write("spawned.py", SPAWNED), str(free_port())])
        self.assert_two_ranks(program)

    def test_own_package_is_the_one_that_is_there(self):
        """`import gradb.torch` gives the package of `gradb run`, even where a copy is installed."""
        script = self.write("train.py", "import gradb\nimport gradb.torch\nfrom gradb.torch import attach\n" + TRAINER
                            + "import sys\nprint(gradb.torch.is_attached(), gradb.attach is not None, attach is "
                            "gradb.torch.attach, sys.modules['gradb.torch'] is gradb.torch)\n")
        shutil.copytree(torches.PACKAGE / "gradb", self.folder / "copy" / "gradb")
        for path in ("", f"{self.folder}/copy"):
            done = self.gradb([self.python, script], "step 2", "continue", "info log", **({"PYTHONPATH": path} if path else {}))
            self.assertIn("trained\nTrue True True True\n", done.stdout, done.stderr)

    def test_processes_that_multiprocessing_forks_end_as_others_do(self):
        """It ends them by os._exit: neither their output nor their status is lost."""
        script = self.write("unequal.py", UNEQUAL.replace("spawn", "fork").replace("(3, 100)", "(3,)").replace(
            'print("trained', 'print("no exception so far"); sys.exit(7) if len(sys.argv) > 1 else print("trained'
        ).replace("import time", "import sys, time"))
        for arguments in ([], ["fails"]):
            done = self.gradb([self.python, script, *arguments], "continue", "info log")
            self.assertIn("The training ended.", done.stdout, done.stderr)
            self.assertNotIn("lost", done.stdout)
            self.assertIn(f"statuses [{7 if arguments else 0}]", done.stdout)


@torches.newest
class StartedByPython(Launched):
    """It depends on Python, not on PyTorch."""

    def test_shell_script_environment_module_and_own_customizations(self):
        """A shell script starts a module with a virtual environment's Python; the folders on the user's path run their
        customizations as without gradb."""
        self.write("lib/pack/__init__.py", "")
        self.write("lib/pack/train.py", CUSTOMIZED + TRAINER)
        self.write("site/helper.py", "")
        self.write("site/sitecustomize.py", "import builtins\nbuiltins.site_ran = True\n")
        self.write("site/usercustomize.py", "import builtins\nbuiltins.user_ran = True\n")
        script = self.write("start.sh", f"#!/bin/sh\ncd {self.folder}/site || exit 1\n"
                                        f"{self.make_environment()} -m pack.train --epochs 3\necho over\n")
        os.chmod(script, 0o755)
        out = self.assert_seen([script], PYTHONPATH=f"{self.folder}/site:{self.folder}/lib")
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
        self.write("short.py", "print('trained')")
        for options in (["-I", "train.py"], ["-W", "ignore", "-Eu", "short.py"]):
            with self.subTest(options=options):
                why = self.assert_not_seen([self.python, *options])
                self.assertIn("exited with status 0 before it connected; its last output: trained", why)
                self.assertIn("python -m gradb", why)

    def test_disabled_inside(self):
        program = shlex.join([*torches.warm(self.python), self.write("train.py", TRAINER)])
        self.assertIn("trained", self.assert_not_seen(["sh", "-c", f"GRADB_DISABLE=1 {program}"]))

    def test_helpers_are_left_alone(self):
        self.assert_seen([*torches.warm(self.python), self.write("helpers.py", HELPERS),
                          self.write("train.py", TRAINER)])

    def test_program_does_not_notice(self):
        """Its own module `gradb`, its hooks, its path and its traceback are as without gradb."""
        script = self.write("curious.py", CURIOUS)
        self.write("gradb.py", "mine = 'mine'\n")
        self.write("site/sitecustomize.py", "import builtins\nbuiltins.site_ran = True\n")
        packages = pathlib.Path(self.make_environment()).parent.parent
        for path in ("", f"{self.folder}/site"):
            with self.subTest(path=path):
                more = {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
                env = torches.environment(**more)
                program = [str(packages / "bin" / "python"), script]
                alone = subprocess.run(program, env=env, cwd=self.folder, text=True, check=False,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertIn('"mine"', alone.stdout)
                done = self.gradb(program, "step 2", "continue", "kill", "info log -a", **more)
                self.assertIn("Stopped at the end of step 2", done.stdout)
                log = done.stdout[done.stdout.index("[{"):]
                self.assertEqual(log, alone.stdout)

    def test_batch_lasts_until_all_processes_have_ended(self):
        done = self.gradb([self.python, self.write("unequal.py", UNEQUAL)], "continue", "info log")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for said in ("trained 3 steps", "trained 100 steps", "statuses [0, 0]"):
            self.assertIn(said, done.stdout)

    def test_what_a_training_becomes_keeps_output_and_status(self):
        script = self.write("train.py", TRAINER + "import os, sys\nsys.stdout.flush()\n"
                            "os.execv('/bin/sh', ['sh', '-c', 'sleep 0.5; echo became; exit ' + sys.argv[1]])\n")
        for status, expected in (("0", 0), ("7", 5)):
            done = self.gradb([self.python, script, status], "continue", "info log")
            self.assertEqual(done.returncode, expected, done.stdout + done.stderr)
            self.assertIn("trained\nbecame\n", done.stdout)

    def test_module_runs_a_script(self):
        """README's `python -m gradb train.py`, and the same with a module."""
        self.write("pack/__init__.py", "")
        self.write("pack/train.py", TRAINER + "import sys; print(sys.argv[1:], __name__, __spec__.name)\n")
        script = self.write("train.py", TRAINER + "import sys; print(sys.argv[1:], __name__)\n")
        for arguments, said in ((["-m", "pack.train"], "['--epochs', '3'] __main__ pack.train"),
                                ([script], "['--epochs', '3'] __main__")):
            done = self.gradb([self.python, "-m", "gradb", *arguments, "--epochs", "3"], "step 2", "continue",
                              "info log", PYTHONPATH=str(torches.PACKAGE), GRADB_LIBRARY=torches.library())
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("Stopped at the end of step 2", done.stdout)
            self.assertIn(f"\ntrained\n{said}\n", done.stdout)
        wrong = subprocess.run([self.python, "-m", "gradb", "nowhere.py"], cwd=self.folder, capture_output=True,
                               env=torches.environment(PYTHONPATH=str(torches.PACKAGE)), text=True, check=False)
        self.assertEqual((wrong.returncode, wrong.stderr), (2, "gradb: cannot read the script nowhere.py\n"))


class Installed(torches.Folder):
    """One interpreter is enough: it depends on Python."""
    which = staticmethod(torches.debian)
    cold = True

    def test_pip_install(self):
        """README's command in a copy of what it reads, with the native module where that can be built; then an isolated
        interpreter is attached as well."""
        shutil.copytree(torches.PACKAGE, self.folder / "python", ignore=shutil.ignore_patterns("__pycache__"))
        (self.folder / "src" / "agent").mkdir(parents=True)
        shutil.copy(harness.SOURCE / "src" / "agent" / "gradb.h", self.folder / "src" / "agent")
        environment = torches.environment(PIP_NO_BUILD_ISOLATION="0", PIP_NO_INDEX="1",
                                          PIP_DISABLE_PIP_VERSION_CHECK="1", HOME=str(self.folder))
        subprocess.run([self.python, "-m", "venv", "--system-site-packages", str(self.folder / "venv")], check=True,
                       capture_output=True)
        packages = next((self.folder / "venv" / "lib").glob("python*/site-packages"))
        for path in pathlib.Path(self.python).parent.parent.glob("lib/python*/site-packages"):
            (packages / "base.pth").write_text(f"{path}\n")  # of the environment that this one was made from
        python = str(self.folder / "venv" / "bin" / "python")
        if subprocess.run([python, "-c", "import setuptools, wheel"], env=environment, capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("setuptools or wheel is missing")
        environment["PATH"] = f"{self.folder}/venv/bin:{environment['PATH']}"
        headers = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], check=True,
                                 capture_output=True, text=True).stdout.strip()
        can_build = shutil.which("gcc") and os.path.exists(os.path.join(headers, "Python.h"))
        for command, native in (("CC=false pip install ./python", None),
                                ("pip install ./python", str(packages / "gradb" / "_native.abi3.so"))):
            done = subprocess.run(["sh", "-c", command], cwd=self.folder, env=environment, text=True,
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            shown = subprocess.run([python, "-I", "-c", "import gradb.native; print(gradb.__version__, gradb.__file__, "
                                    "gradb.native.module and gradb.native.module.__file__)"],
                                   capture_output=True, text=True, check=True,
                                   env=dict(os.environ, LD_LIBRARY_PATH="")).stdout  # else found through that
            self.assertIn(str(packages / "gradb" / "__init__.py"), shown)
            self.assertEqual(shown.split()[-1], str(native if can_build else None), done.stdout + done.stderr)
        if can_build and shutil.which("readelf"):
            done = subprocess.run([sys.executable, harness.SOURCE / "tools" / "check_hardening.py", native], text=True,
                                  capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        version = (torches.PACKAGE / "gradb" / "VERSION").read_text().strip()
        self.assertTrue(shown.startswith(version + " "), shown)
        done = self.gradb([python, "-I", "-m", "gradb", self.write("train.py", TRAINER)], "step 2", "kill")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Stopped at the end of step 2", done.stdout)


if __name__ == "__main__":
    harness.main()
