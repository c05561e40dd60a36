# SPDX-License-Identifier: GPL-3.0-or-later
"""Tensors as MindSpore's Print operator writes them: the wheel's own output, to the letter.

A child process of the real MindSpore prints tensors with ops.Print, in PyNative and in graph mode; gradb's
formatter gets the same bytes.
"""
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


if __name__ == "__main__":
    harness.main()
