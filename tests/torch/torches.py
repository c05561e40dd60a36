# SPDX-License-Identifier: GPL-3.0-or-later
"""The interpreters that the PyTorch tests run: Debian's, and the one with the newer PyTorch of pip.

A case is written once and runs on both:

    @torches.both
    class Steps(torches.Case):
        def test_...(self):  # self.python is the interpreter

Where an interpreter is missing, its cases are skipped, each with the reason, and so are counted.

Importing torch takes seconds of processor time, in each process again. So where a case does not test how a training
is started, `warm(self.python)` takes the interpreter's place in its command line: the program runs in a fork of a
process that has imported torch. Folder.gradb() does so by itself.
"""
import functools
import os
import pathlib
import subprocess
import sys
import unittest

import harness
import warmed

DEBIAN = "/usr/bin/python3"
SCRIPTS = harness.SOURCE / "tests" / "torch" / "scripts"
PACKAGE = harness.SOURCE / "python"
NATIVE = harness.BUILD.resolve() / "python" / "native" / "_native.abi3.so"
VENV = pathlib.Path("torch-venv") / "bin" / "python"
EMULATED = pathlib.Path("emulated-venv") / "bin" / "python"
HERE = pathlib.Path(__file__).resolve().parent

# What a user writes, small.
TRAINER = """
import torch
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = net(torch.ones(4, 3)).pow(2).mean()
    loss.backward()
    optimizer.step()
print("trained")
"""


def _candidates():
    """Where pip's PyTorch may be: where the tester says, or where ./dev puts it."""
    given = os.environ.get("GRADB_TORCH_PYTHON")
    if given:
        return [given]
    return [str(root / VENV) for root in (harness.BUILD, harness.BUILD.parent, harness.SOURCE / "build")]


@functools.lru_cache(maxsize=None)
def version_of(python):
    """The version of an interpreter's PyTorch ("1.13.0a0"); "" when it has none, or is not there."""
    look = ("import importlib.util, pathlib\n"
            "spec = importlib.util.find_spec('torch')\n"
            "names = {}\n"
            "exec((pathlib.Path(spec.origin).parent / 'version.py').read_text() if spec else '__version__ = \"\"', names)\n"
            "print(names['__version__'])\n")
    try:
        done = subprocess.run([python, "-I", "-c", look], capture_output=True, text=True, timeout=harness.DEADLINE,
                              check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def release_of(python):
    """(1, 13) of "1.13.0a0"."""
    return tuple(map(int, version_of(python).split(".")[:2]))


def debian():
    """Debian's interpreter, or None when python3-torch is not installed."""
    return DEBIAN if version_of(DEBIAN) else None


def pip():
    """The interpreter of the virtual environment with pip's PyTorch, or None."""
    return next((python for python in _candidates() if version_of(python)), None)


def emulated():
    """The interpreter whose PyTorch has the emulated device (tests/device), or None."""
    roots = (harness.BUILD, harness.BUILD.parent, harness.SOURCE / "build")
    return next((str(root / EMULATED) for root in roots if (root / EMULATED).exists()), None)


def on_device(case):
    """Whether the case runs on the emulated device: its tensors are not in host memory."""
    return type(case).which is emulated


def interpreters():
    """The interpreters that are installed."""
    return [python for python in (debian(), pip()) if python]


def is_sanitized():
    """Whether this is a build with sanitizers, whose libgradb a plain interpreter cannot load."""
    return b"__asan_init" in (harness.BUILD / "src" / "agent" / "libgradb.so.1").read_bytes()


def library():
    """The libgradb for the Python side, or None. In a sanitized build it is that of the release build; only the
    debugger is sanitized then."""
    root = harness.BUILD.parent / "release" if is_sanitized() else harness.BUILD
    path = root / "src" / "agent" / "libgradb.so.1"
    return str(path) if path.exists() else None


def environment(**more):
    """The environment of gradb or a script: one thread, no debugger's address, and libgradb where gradb cannot know it.
    """
    env = dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    for name in ("GRADB_ADDRESS", "GRADB_DISABLE", "GRADB_LIBRARY", "PYTHONPATH", "RANK", "WORLD_SIZE", "LOCAL_RANK"):
        env.pop(name, None)
    if is_sanitized() and library():
        env["GRADB_LIBRARY"] = library()
    env.update(more)
    return env


def warm(python):
    """Replaces [python] at the start of a command line, for `SCRIPT ARGUMENT...` or `-c CODE ARGUMENT...`: runs the
    program in a process that has imported torch already."""
    return warmed.command(python, "torch", environment(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1"))


def ranks(python, count, limit=harness.DEADLINE):
    """Like warm, for that many ranks of one job; limit: the seconds that each may take, or 0 (by_hand.py)."""
    return [DEBIAN, "-S", str(HERE / "by_hand.py"), str(count), str(harness.free_port()), str(limit), *warm(python)]


class Case(unittest.TestCase):
    """A case for one interpreter: self.python. Skipped when that is not installed."""
    which = None  # a function that returns the interpreter
    python = None
    plain = True  # whether the interpreter runs without sanitizers

    def setUp(self):
        if self.which is None:
            self.skipTest("the case names no interpreter: write @torches.both")
        self.python = type(self).which()
        if self.python is None:
            self.skipTest("no PyTorch: " + ("python3-torch is not installed" if type(self).which is debian else
                                            "./dev makes build/torch-venv where pip can install it"))
        if self.plain and library() is None:
            self.skipTest("no libgradb that a plain interpreter can load: ./dev build release makes it")


class Folder(Case):
    """A case with a folder of scripts."""
    cold = False  # whether gradb() starts the interpreter itself, for cases that test how a training is started

    def setUp(self):
        super().setUp()
        self.folder = harness.folder_of(self)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def gradb(self, program, *commands, options=(), listen="127.0.0.1:0", **env):
        """gradb's output and status after the commands on a program (a command line)."""
        program = list(map(str, program))
        if not self.cold and program[0] == self.python and program[1].endswith(".py"):
            program[:1] = warm(self.python)
        words = " ".join('"%s"' % word.replace("\\", "\\\\").replace('"', '\\"') for word in program)
        args = ["-nx", "--batch", *options, "--listen", listen,
                *harness.typed("set start-timeout 0", "run -- " + words, *commands)]
        late = self.folder / "late"
        done = harness.run_gradb(*args, env=environment(GRADB_TEST_LATE=str(late), **env), cwd=self.folder,
                                 timeout=4 * harness.DEADLINE)
        if late.exists():  # of a rank that hung (by_hand.py): otherwise it would only be in gradb's log
            done.stderr += late.read_text()
        return done


def need_native(case):
    """Skips a case of the native module where that is not built."""
    if not NATIVE.exists():
        case.skipTest("no native module: it was built without Python's headers")


def need_compile(case):
    """Skips a case of torch.compile where it is unavailable."""
    if release_of(case.python) < (2, 1):
        case.skipTest("torch.compile came with 2.0, and for this Python with 2.1")


def both(case):
    """Makes the class's two cases, CaseDebian and CasePip, in its module."""
    module = sys.modules[case.__module__]
    for name, which in (("Debian", debian), ("Pip", pip)):
        made = type(case.__name__ + name, (case,), {"which": staticmethod(which), "__module__": case.__module__})
        setattr(module, made.__name__, made)
    return None


def newest(case):
    """Makes the class's one case, CasePip, in its module: for what an older PyTorch would only repeat. Without pip's, it
    runs on Debian's."""
    name = case.__name__ + "Pip"
    setattr(sys.modules[case.__module__], name, type(name, (case,), {"which": staticmethod(lambda: pip() or debian()),
                                                                     "__module__": case.__module__}))
    return None
