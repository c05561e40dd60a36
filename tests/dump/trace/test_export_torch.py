# SPDX-License-Identifier: GPL-3.0-or-later
"""export trace from a running PyTorch training: its steps, parts, measured operators and metrics."""
import sys

import chrome
import harness

sys.path.insert(0, str(harness.SOURCE / "tests" / "torch"))
import torches  # noqa: E402

LONGER = torches.TRAINER.replace("range(5)", "range(15)")  # not each step is measured


@torches.both
class Live(torches.Folder):
    def test_steps_operators_metrics(self):
        script = self.write("train.py", LONGER)
        done = self.gradb([self.python, script], "set timing on", "step 12", "info timing", "export trace run.json.gz",
                          "continue")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"Wrote 12 steps, [1-9]\d* operator calls and \d+ values of metrics to run\.json\.gz")
        self.assertIn("laid end to end", done.stdout)
        trace = chrome.load(self.folder / "run.json.gz")
        self.assertEqual(chrome.problems(trace), [])
        events = trace["traceEvents"]
        names = [event["name"] for event in events]
        self.assertEqual([name for name in names if name.startswith("ProfilerStep#")],
                         [f"ProfilerStep#{step}" for step in range(1, 13)])
        self.assertTrue({"forward", "backward", "optimizer"} <= set(names), names)
        linear = [event for event in events if event["ph"] == "X" and event["name"] == "linear"]
        self.assertTrue(linear, names)
        self.assertIn([4, 3], linear[0]["args"]["Input Dims"])
        self.assertRegex(linear[0]["args"]["Call stack"], r"train\.py\(\d+\)")
        self.assertIn("loss", {event["name"] for event in events if event["ph"] == "C"})

    def test_opened_again_the_report_is_the_same(self):
        script = self.write("train.py", LONGER)
        done = self.gradb([self.python, script], "set timing on", "step 12", "info timing steps",
                          "info timing operators", "export trace run.json", "continue")
        opened = harness.run_gradb("--batch", "-ex", "info timing steps", "-ex", "info timing operators", "open",
                                   self.folder / "run.json")
        tables = [text[text.index("Step  "):].split("measured step")[0] for text in (done.stdout, opened.stdout)]
        words = [table.split() for table in tables]
        self.assertIn("measured", words[0])
        self.assertEqual(len(words[0]), len(words[1]), tables)
        for said, read in zip(*words):  # to the last digit but one
            if said[0].isdigit():
                self.assertAlmostEqual(float(said), float(read), delta=1 + float(said) / 50, msg=tables)
            else:
                self.assertEqual(said, read, tables)


if __name__ == "__main__":
    harness.main()
