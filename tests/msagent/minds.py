# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of the MindSpore agent share: scripts that the virtual environment's MindSpore runs."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness
import venvs
import warmed

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
PYTHON = venvs.python("mindspore")
needed = unittest.skipUnless(PYTHON, "no build/mindspore-venv: ./dev test makes it where pip can install MindSpore")


class Case(unittest.TestCase):
    """A case with a folder: MindSpore litters the one in which it runs."""
    cold = False  # whether each program imports MindSpore itself, for cases that test how a training is started

    def setUp(self):
        self.folder = harness.folder_of(self)

    def script(self, name):
        """One of the training scripts, in the case's folder."""
        return shutil.copy(SCRIPTS / name, self.folder)

    def words(self, program):
        """The command line that runs a script."""
        if self.cold or not str(program[0]).endswith(".py"):
            return [PYTHON, *program]
        return [*warmed.command(PYTHON, "mindspore", self.environment(OPENBLAS_NUM_THREADS="1")), *program]

    def environment(self, **more):
        """One thread, and nothing in MindSpore's log but errors."""
        return dict(os.environ, OMP_NUM_THREADS="1", GLOG_v="3", **more)

    def bare(self, *program):
        """The output of a script without gradb."""
        done = subprocess.run(self.words(program), env=self.environment(GRADB_DISABLE="1"), cwd=self.folder, text=True,
                              capture_output=True, timeout=4 * harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done.stdout

    def gradb(self, program, *commands, **env):
        """gradb's result after the commands on a script; log: the output of a script that has ended."""
        done = harness.run_gradb("-nx", "--batch", *harness.typed(*commands, "info log -a"), "run", "--",
                                 *self.words(program), env=self.environment(**env), cwd=self.folder,
                                 timeout=4 * harness.DEADLINE)
        done.stdout, ended, done.log = done.stdout.partition("The training ended.\n")
        done.stdout += ended
        self.assertNotIn("internal error", done.stdout + done.stderr + done.log)
        return done

    def said(self, program, *commands):
        """gradb's output for the commands, after the stop before the first step."""
        done = self.gradb(program, *commands)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout + done.log)
        text = done.stdout.replace(str(self.folder) + os.sep, "")
        self.assertIn("Stopped before the first step.\n", text)
        text = text.split("Stopped before the first step.\n", 1)[1]
        return re.sub(r"loss = [-+.e\d]+", "loss = #", re.sub(r"(?m)^(\w+\.py):\d+\t", r"\1:#\t", text))

    def live(self, program):
        """gradb reading from a pipe, with the script before its first step; and the script's process id."""
        gradb = harness.Gradb(command=("run", "--", *self.words(program)), env=self.environment(), cwd=self.folder)
        self.addCleanup(gradb.__exit__)
        pid = int(gradb.expect(r"^Connected: .*, pid (\d+)\.$").group(1))
        gradb.expect("Stopped before the first step")
        return gradb, pid


def digests(text):
    """Style -> digest of the weights, in a script's output."""
    return dict(re.findall(r"^digest (\S+) (\w{16})$", text, re.M))
