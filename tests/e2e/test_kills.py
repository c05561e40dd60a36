# SPDX-License-Identifier: GPL-3.0-or-later
"""gradb is killed (SIGKILL) at any moment of a training that it started: the training ends by itself, with its own
status, all its output and the weights of an undisturbed run.

GRADB_KILLS is the number of kills for each kind of training (5); GRADB_SEED makes them the same again.
"""
import os
import pathlib
import pty
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "tests" / "torch"))
import torches  # noqa: E402  (a module beside other tests)

KILLS = int(os.environ.get("GRADB_KILLS", "5"))
SEED = int(os.environ.get("GRADB_SEED", str(random.randrange(1 << 30))))
CHARLM = [harness.CHARLM, "--data", harness.SOURCE / "LICENSES" / "MIT.txt", "--seed", 1, "--threads", 1, "--layers", 1,
          "--width", 32, "--heads", 2, "--context", 32, "--batch", 8, "--steps", 800, "--log-every", 1,
          "--checkpoint-last"]
TORCH = """
import sys
import torch
torch.manual_seed(1)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
x, y = torch.randn(256, 20), torch.randint(3, (256,))
for step in range(400):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    print("step %d loss %.8f" % (step, loss.item()), file=sys.stderr if step % 7 == 0 else sys.stdout)
with open("weights.bin", "wb") as file:
    for tensor in net.parameters():
        file.write(tensor.detach().numpy().tobytes())
print("no newline at the end", end="")
"""
WAYS = ("batch", "watch", "prompt", "standing", "panes")


class Killed:
    """One training under a gradb that is killed after some seconds."""

    def __init__(self, program, env, folder):
        self.folder = pathlib.Path(folder)
        self.program = ["sh", "-c", '"$@"; echo $? > status.new; mv status.new status', "sh", *map(str, program)]
        self.env = dict(env, HOME=folder, XDG_STATE_HOME=f"{folder}/state", XDG_RUNTIME_DIR=folder, TERM="xterm-256color",
                        LC_ALL="C.UTF-8")
        self.master = None

    def start(self, way):
        """gradb, with the training told to run (or to stand, for "standing")."""
        words = {"batch": ["--batch", "-ex", "continue"], "watch": ["--batch", "-ex", "watch TO on all", "-ex", "continue"],
                 "prompt": ["-ex", "continue &"], "standing": ["-ex", "step 3"],
                 "panes": ["--tui", "-ex", "continue &"]}[way]
        argv = [harness.GRADB, "-q", "-nx", "--listen", "127.0.0.1:0", *words, "run", "--", *self.program]
        end = subprocess.PIPE
        if way == "panes":
            self.master, end = pty.openpty()
            threading.Thread(target=self._drain, args=(self.master,), daemon=True).start()
        self.process = subprocess.Popen(
            list(map(str, argv)), env=self.env, cwd=self.folder, stdin=end, stdout=end if way == "panes" else
            open(self.folder / "gradb.out", "wb"), stderr=subprocess.STDOUT, start_new_session=True)
        if way == "panes":
            os.close(end)

    @staticmethod
    def _drain(master):
        try:
            while os.read(master, 65536):
                pass
        except OSError:
            pass

    def kill(self, seconds):
        """Whether it lived so long."""
        try:
            self.process.wait(timeout=seconds)
            return False
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return True
        finally:
            if self.master is not None:
                os.close(self.master)  # the terminal goes as well
            if self.process.stdin:
                self.process.stdin.close()

    def started(self):
        """Whether the program was started before the kill."""
        return any((self.folder / "state" / "gradb" / "output").glob("*.log"))

    def status(self):
        path = self.folder / "status"
        harness.wait_for("the end of the training", path.exists, 4 * harness.DEADLINE)
        return int(path.read_text())

    def output(self):
        """The lines that are left, without those that tell the time."""
        paths = list((self.folder / "state" / "gradb" / "output").glob("*.log"))
        assert len(paths) == 1, paths
        return lines_of(paths[0].read_bytes())

    def told(self):
        """What `gradb sessions` says of it."""
        done = subprocess.run([harness.GRADB, "sessions"], env=self.env, capture_output=True, text=True, check=True)
        return re.findall(r"(?m)^Output of (\S+) \(process \d+, (\w+)\), whose gradb is gone: (.*)$", done.stdout)

    def told_ended(self):
        """The same once all have ended: the shell ends right after it has written the status."""
        told = self.told()
        return told if all(state == "ended" for _, state, _ in told) else None


def lines_of(data):
    return [line for line in data.replace(b"\r", b"").split(b"\n")
            if b"steps/s" not in line and b"checkpoint " not in line]


def weights_of(folder):
    """The one file that the training wrote at its end."""
    path, = [path for path in pathlib.Path(folder).glob("*.bin")]
    return path.read_bytes()


class Kills(unittest.TestCase):
    def run_kills(self, program, env):
        print(f"# {KILLS} kills, GRADB_SEED={SEED}")
        chance = random.Random(SEED)
        with tempfile.TemporaryDirectory(prefix="gradb-kills-") as folder:
            began = time.monotonic()
            alone = subprocess.run(list(map(str, program)), env=env, cwd=folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, check=True)
            seconds = time.monotonic() - began
            expected = lines_of(alone.stdout), weights_of(folder)
        count = 0
        while count < KILLS:
            count += self.one(program, env, WAYS[count % len(WAYS)], chance.uniform(0, seconds), expected)

    def one(self, program, env, way, seconds, expected):
        """Whether gradb was killed while the program was there."""
        folder = tempfile.mkdtemp(prefix="gradb-kills-")
        try:
            run = Killed(program, env, folder)
            run.start(way)
            if not run.kill(seconds) or not run.started():
                return False
            with self.subTest(way=way, seconds=seconds):
                self.assertEqual(run.status(), 0, run.output()[-5:])
                self.assertEqual(run.output(), expected[0])
                self.assertEqual(weights_of(folder), expected[1])
                (program, _, path), = harness.wait_for("the end of the shell", run.told_ended)
                self.assertEqual(program, "sh")
                self.assertEqual(pathlib.Path(path).parent.stat().st_mode & 0o777, 0o700)
            return True
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def test_c(self):
        env = dict(os.environ)
        env.pop("GRADB_ADDRESS", None)
        self.run_kills(CHARLM, env)

    def test_pytorch(self):
        python = torches.pip() or torches.debian()
        if python is None or torches.library() is None:
            self.skipTest("no PyTorch")
        with tempfile.TemporaryDirectory(prefix="gradb-kills-") as folder:
            script = pathlib.Path(folder, "train.py")
            script.write_text(TORCH, encoding="utf-8")
            self.run_kills([python, script], torches.environment(PYTHONUNBUFFERED="1"))


class Disks(unittest.TestCase):
    def test_a_program_that_writes_fast_and_a_small_disk(self):
        """It writes more than the disk holds before anybody can have read it."""
        with tempfile.TemporaryDirectory(prefix="gradb-disk-") as folder:
            mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                     'mount -t tmpfs -o size=8m,mode=700 none "$1" && shift && exec "$@"', "sh", folder]
            if not shutil.which("unshare") or subprocess.run([*mount, "true"], capture_output=True,
                                                             check=False).returncode:
                self.skipTest("no file system can be mounted here")
            program = ("import os\nline = b'x' * 99 + b'\\n'\nfor _ in range(100): os.write(1, line * 10000)\n"
                       "os.write(1, b'all of it is written\\n')\nos._exit(7)")
            done = subprocess.run([*mount, harness.GRADB, "-nx", "-q", "--batch", "--listen", "127.0.0.1:0", "run", "--",
                                   sys.executable, "-c", program], text=True, capture_output=True, check=False,
                                  timeout=2 * harness.DEADLINE,
                                  env=dict(os.environ, HOME=folder, XDG_STATE_HOME=folder, XDG_RUNTIME_DIR=folder + "/no"))
            self.assertRegex(done.stderr, "exited with status 7 .*; its last output: all of it is written")


if __name__ == "__main__":
    harness.main()
