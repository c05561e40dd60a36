# SPDX-License-Identifier: GPL-3.0-or-later
"""charlm alone, without a debugger: options, output, errors."""
import math
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import harness

STEP = re.compile(r"step (\d+) loss (\S+) lr (\S+)")


def charlm(*args, env=None, timeout=harness.DEADLINE):
    full_env = {k: v for k, v in os.environ.items() if not k.startswith("GRADB_A")}
    full_env.update(env or {"GRADB_DISABLE": "1"})
    return subprocess.run([str(harness.CHARLM), *map(str, args)], text=True, capture_output=True,
                          env=full_env, timeout=timeout, check=False)


def steps(output):
    return [(int(m[1]), float(m[2]), float(m[3])) for m in map(STEP.fullmatch, output.splitlines()) if m]


class Options(unittest.TestCase):
    def check_usage(self, text, *args):
        done = charlm(*args)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertIn("charlm --help", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_help(self):
        done = charlm("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--layers", "--fault", "--checkpoint-dir", "nan-log", "bad-batch", "fp16-overflow"):
            self.assertIn(word, done.stdout)

    def test_wrong_options(self):
        self.check_usage("--steps takes a whole number", "--steps", "ten")
        self.check_usage("--steps takes a whole number", "--steps", "0")
        self.check_usage("--layers takes a whole number from 1 to 64", "--layers", "65")
        self.check_usage("--seed takes a whole number", "--seed", "99999999999999999999")
        self.check_usage("--lr takes a number", "--lr", "fast")
        self.check_usage("--lr takes a number", "--lr", "nan")
        self.check_usage("must divide", "--heads", "5", "--width", "64")
        self.check_usage("unknown fault 'nap-log'", "--fault", "nap-log")
        self.check_usage("gelu, relu or tanh", "--activation", "sine")
        self.check_usage("unexpected argument 'extra'", "extra")
        self.check_usage("unrecognized option", "--unknown")

    def test_wrong_text(self):
        done = charlm("--data", "/does/not/exist")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot open /does/not/exist", done.stderr)
        with tempfile.TemporaryDirectory() as folder:
            done = charlm("--data", folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn("contains no text", done.stderr)
            short = pathlib.Path(folder, "short.txt")
            short.write_text("too short")
            done = charlm("--data", short)
            self.assertEqual(done.returncode, 1)
            self.assertIn("9 characters", done.stderr)


class Runs(unittest.TestCase):
    def setUp(self):
        self.text = harness.folder_of(self) / "text.txt"
        self.text.write_text("".join(f"line {i} of {i * i % 97} is {i % 7}\n" for i in range(3000)))

    def run_small(self, *args, **kw):
        return charlm("--data", self.text, "--layers", 1, "--context", 32, "--threads", 2, *args, **kw)

    def test_output(self):
        done = self.run_small("--steps", 30, "--log-every", 10)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = steps(done.stdout)
        self.assertEqual([s[0] for s in found], [1, 10, 20, 30])
        self.assertLess(abs(found[0][1] - math.log(len(set(self.text.read_text())))), 0.4)
        self.assertLess(found[-1][1], 0.8 * found[0][1])
        self.assertRegex(done.stdout.splitlines()[-1], r"^finished after 30 steps, loss \d")

    def test_repeats(self):
        first = steps(self.run_small("--steps", 12, "--log-every", 1).stdout)
        self.assertEqual(len(first), 12)
        self.assertEqual(steps(self.run_small("--steps", 12, "--log-every", 1).stdout), first)
        self.assertNotEqual(
            steps(self.run_small("--steps", 12, "--log-every", 1, "--seed", 2).stdout), first)

    def test_fault_shows(self):
        found = steps(self.run_small("--steps", 100, "--log-every", 1, "--fault", "nan-log").stdout)
        bad = [s for s in found if not math.isfinite(s[1])]
        self.assertTrue(bad, "the loss stayed finite")
        self.assertGreater(bad[0][0], 15)

    def test_debugger_that_is_not_there(self):
        """Without a listener at the address, the results are those of a run without gradb."""
        alone = steps(self.run_small("--steps", 5, "--log-every", 1).stdout)
        done = self.run_small("--steps", 5, "--log-every", 1, env={
            "GRADB_DISABLE": "0", "GRADB_ADDRESS": f"127.0.0.1:{harness.free_port()}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(steps(done.stdout), alone)

    def test_default_text(self):
        done = charlm("--steps", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([s[0] for s in steps(done.stdout)], [1])


if __name__ == "__main__":
    harness.main()
