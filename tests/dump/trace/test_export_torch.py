# SPDX-License-Identifier: GPL-3.0-or-later
"""export trace from a running PyTorch training: its steps, parts, measured operators and metrics."""
import sys

import chrome
import harness

sys.path.insert(0, str(harness.SOURCE / "tests" / "torch"))
import torches  # noqa: E402


@torches.both
class Live(torches.Folder):
    def test_steps_operators_metrics(self):
        script = self.write("train.py", torches.TRAINER)
        done = self.gradb([self.python, script], "agent timing on", "step 4", "info timing", "export trace run.json.gz",
                          "continue")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"Wrote 4 steps, \d+ operator calls and \d+ values of metrics to run\.json\.gz")
        self.assertIn("laid end to end", done.stdout)
        trace = chrome.load(self.folder / "run.json.gz")
        self.assertEqual(chrome.problems(trace), [])
        events = trace["traceEvents"]
        names = [event["name"] for event in events]
        self.assertEqual([name for name in names if name.startswith("ProfilerStep#")],
                         [f"ProfilerStep#{step}" for step in range(1, 5)])
        self.assertTrue({"forward", "backward", "optimizer"} <= set(names), names)
        linear = [event for event in events if event["ph"] == "X" and event["name"] == "linear"]
        self.assertTrue(linear, names)
        self.assertIn([4, 3], linear[0]["args"]["Input Dims"])
        self.assertRegex(linear[0]["args"]["Call stack"], r"train\.py\(\d+\)")
        self.assertIn("loss", {event["name"] for event in events if event["ph"] == "C"})


if __name__ == "__main__":
    harness.main()
