# SPDX-License-Identifier: GPL-3.0-or-later
"""Tensors as MindSpore's Print operator writes them: the wheel's own output, to the letter.

A child process of the real MindSpore prints tensors with ops.Print, in PyNative and in graph mode; gradb's
formatter gets the same bytes.
"""
import re
import subprocess
import sys

import harness
import minds

sys.path.insert(0, str(harness.SOURCE / "tests" / "engine"))
import tool  # noqa: E402


@minds.needed
class Print(minds.Case):
    def compare(self, mode, least):
        """Every tensor as the wheel printed it and as gradb does."""
        printed = subprocess.run([minds.PYTHON, str(self.script("print_tensors.py")), mode],
                                 capture_output=True, text=True, timeout=harness.DEADLINE * 4)
        self.assertEqual(printed.returncode, 0, printed.stderr[-2000:])
        parts = printed.stdout.split("@@ ")[1:]
        self.assertEqual(parts[-1], "end - -\n")
        engine = tool.Tool()
        self.addCleanup(engine.close)
        for part in parts[:-1]:
            head, _, text = part.partition("\n")
            dtype, dims, bits = head.split()
            ours = engine.ask("mindspore", dtype, dims, int(mode == "pynative"), "[...]", bits)
            self.assertEqual(ours, text.rstrip("\n"), f"{mode} {dtype} {dims}")
        self.assertGreaterEqual(len(parts) - 1, least)

    def test_outside_of_graphs(self):
        self.compare("pynative", 380)

    def test_compiled_operator(self):
        self.compare("graph", 140)

    def test_live(self):
        """dprintf prints what the script prints itself at the same place, and changes nothing."""
        script = self.script("monitored.py")
        done = self.gradb([script, "pynative"], "dprintf type:relu", "continue")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        tensors = re.compile(r"^Tensor\(shape=\[4, 3\], dtype=Float32, value=\n.*\n.*\n.*\n.*\]\]\)$", re.M)
        ours = tensors.findall(done.stdout.split("The training ended.")[0])
        self.assertEqual((len(ours), ours), (6, tensors.findall(done.log)))
        self.assertEqual(tensors.findall(self.bare(script, "pynative")), ours)

    def test_loss_monitor(self):
        """Its lines are metrics, in the run and in its log; the level of a submodule is that of the setting."""
        script = self.script("monitored.py")
        done = self.gradb([script, "graph"], "continue", "info scalars")
        printed = [float(text) for text in re.findall(r"^epoch: \d step: \d, loss is (\S+)$", done.log, re.M)]
        self.assertEqual(len(printed), 6, done.log)
        number = re.search(r"^loss +(\S+) +6$", done.log, re.M)  # what follows the end is in the log
        self.assertTrue(number, done.log)
        self.assertAlmostEqual(float(number.group(1)), printed[-1], places=6)
        (self.folder / "a.log").write_text(done.log)
        opened = harness.run_gradb("-nx", "--batch", *harness.typed("open a.log", "goto 5", "print loss", "info steps"),
                                   cwd=self.folder)
        self.assertEqual(opened.returncode, 0, opened.stderr)
        loss = float(re.search(r"^loss = (\S+) \(step 5\)$", opened.stdout, re.M).group(1))
        self.assertAlmostEqual(loss, printed[4], places=6)

    def test_levels_of_the_log(self):
        script = self.script("monitored.py")
        messages = {}
        for level in ("INFO", "ERROR"):
            done = harness.run_gradb("-nx", "--batch", *harness.typed(
                "set log-level ERROR", "set log-level ANALYZER " + level, "run -- %s %s graph" % (minds.PYTHON, script),
                "continue", "info log -a -module ANALYZER -level INFO"), env=self.environment(), cwd=self.folder,
                timeout=4 * harness.DEADLINE)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            messages[level] = len(re.findall(r"^\[INFO\] ANALYZER\(", done.stdout, re.M))
            self.assertNotRegex(done.stdout, r"(?m)^\[\w+\] (?!ANALYZER)[A-Z_]+\(")
        self.assertGreater(messages["INFO"], 10)
        self.assertEqual(messages["ERROR"], 0)


if __name__ == "__main__":
    harness.main()
