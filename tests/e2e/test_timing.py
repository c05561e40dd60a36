# SPDX-License-Identifier: GPL-3.0-or-later
"""A C program that measures its operators when `set timing` asks it to: charlm."""
import json
import pathlib
import tempfile
import unittest

import harness


class Operators(unittest.TestCase):
    def gradb(self, *commands, before=("set timing on",)):
        done = harness.run_gradb("-nx", "--batch", "--json", "--listen", "127.0.0.1:0",
                                 *harness.typed(*before, "step 4", "info timing", *commands, "continue"), "run", "--",
                                 harness.CHARLM, *harness.SMALL, "--steps", "6")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done, harness.records(done, "timing")

    def test_operators_and_types(self):
        _, (record, operators, types) = self.gradb("info timing operators", "info timing types")
        self.assertEqual((record["measured_steps"], record["steps_timed"]), (4, 4))
        self.assertGreater(len(operators["operators"]), 50)
        self.assertEqual({row["calls"] for row in operators["operators"]}, {4})
        self.assertTrue(any(row["place"].startswith("model.c:") for row in operators["operators"]))
        self.assertIn("MatMul", {row["type"] for row in types["types"]})
        # The operators fill the parts of the steps, as all other time is gradb's.
        mean = record["mean"]
        self.assertAlmostEqual(mean["total"], mean["forward"] + mean["backward"] + mean["optimizer"] + mean["rest"], 9)
        self.assertLessEqual(types["operator_seconds"], 4 * mean["total"] * 1.0001)

    def test_off_measures_nothing(self):
        done, records = self.gradb(before=("set timing on", "set timing off"))
        self.assertNotIn("measured_steps", records[0])
        self.assertNotIn("warning", done.stderr)

    def test_its_trace_has_steps_parts_operators_and_metrics(self):
        with tempfile.TemporaryDirectory(prefix="gradb-timing-") as folder:
            path = pathlib.Path(folder, "run.json")
            self.gradb("export trace \"%s\"" % path)
            events = json.loads(path.read_text())["traceEvents"]
        names = {event["name"] for event in events}
        self.assertLessEqual({"ProfilerStep#1", "ProfilerStep#4", "forward", "backward", "optimizer", "loss"}, names)
        self.assertTrue(any("MatMul" in name for name in names))


if __name__ == "__main__":
    harness.main()
