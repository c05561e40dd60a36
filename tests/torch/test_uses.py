# SPDX-License-Identifier: GPL-3.0-or-later
"""Trainings that use PyTorch in many ways (scripts/uses.py) compute the same with gradb as without, to the bit, however
gradb looks at them."""
import subprocess

import harness
import torches

SCRIPT = str(torches.SCRIPTS / "uses.py")


@torches.newest
class Uses(torches.Folder):
    alone = {}  # name of a training -> what it wrote without gradb

    def names(self):
        done = subprocess.run([*torches.warm(self.python), SCRIPT], capture_output=True, text=True, check=True,
                              env=torches.environment(GRADB_DISABLE="1"), timeout=harness.DEADLINE)
        return done.stdout.split()

    def command(self, name):
        return [*torches.warm(self.python), SCRIPT, name, str(self.folder / "seen")]

    def seen(self):
        """What the training wrote; None: it has not come to its end."""
        path = self.folder / "seen"
        text = path.read_text(encoding="utf-8") if path.exists() else None
        path.unlink(missing_ok=True)
        return text

    def expected(self, name):
        """What the training writes without gradb."""
        if name not in self.alone:
            done = subprocess.run(self.command(name), capture_output=True, text=True, cwd=self.folder, check=False,
                                  env=torches.environment(GRADB_DISABLE="1"), timeout=harness.DEADLINE)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.alone[name] = self.seen()
        return self.alone[name]

    def compared(self, trained):
        """Compares each training alone with what `trained`, a function of its command line, makes of it."""
        for name in self.names():
            with self.subTest(training=name):
                expected = self.expected(name)
                done = trained(self.command(name))
                self.assertEqual(self.seen(), expected, done.stdout + done.stderr)

    def gradb(self, *arguments):
        return harness.run_gradb("-nx", "--listen", "127.0.0.1:0", *arguments, env=torches.environment(),
                                 cwd=self.folder, timeout=2 * harness.DEADLINE)

    def run_with(self, *commands):
        """Compares a training that is debugged by these commands."""
        typed = harness.typed("set on-error continue", "catch exception uncaught", *commands)
        self.compared(lambda command: self.gradb("--batch", *typed, "run", "--", *command))

    def test_unwatched(self):
        self.run_with("continue")

    def test_watched(self):
        """With stops at operators and between steps."""
        self.run_with("watch TO on all", "watch WCL on weights", "next", "next", "step", "why", "step", "delete",
                      "continue", "continue")

    def test_recommended(self):
        self.run_with("recommend yes", "catch overflow", "continue", "delete", "continue", "continue")

    def test_diagnosed(self):
        self.compared(lambda command: self.gradb("diagnose", "--", *command))


if __name__ == "__main__":
    harness.main()
