# SPDX-License-Identifier: GPL-3.0-or-later
"""Traces that torch.profiler writes: gradb counts and adds up as its own key_averages() does, and knows the steps, their
parts, modules and lines."""
import collections
import gzip
import json
import pathlib
import re
import subprocess
import sys

import harness

sys.path.insert(0, str(harness.SOURCE / "tests" / "torch"))
import torches  # noqa: E402

PROFILED = pathlib.Path(__file__).resolve().parent / "profiled.py"
# not operators: what the program and torch call parts of it
MARKS = ("ProfilerStep", "Optimizer.", "enumerate(DataLoader)", "my part", "nn.Module", "<")


def overlapping(path):
    """Operators whose times overlap, for they are rounded to whole microseconds: by PyTorch's rule, one that ends after
    its caller was not called by it, and then it counts the time of the caller's caller wrongly, even as negative."""
    if path.suffix == ".gz":
        events = json.loads(gzip.decompress(path.read_bytes()))
    else:
        events = json.loads(path.read_text())
    found, stack = set(), []
    for event in sorted(events if isinstance(events, list) else [], key=lambda e: (e["ts"], -e["dur"])):
        while stack and event["ts"] >= stack[-1]["ts"] + stack[-1]["dur"]:
            stack.pop()
        if stack and event["ts"] + event["dur"] > stack[-1]["ts"] + stack[-1]["dur"]:
            found.update(other["name"] for other in [*stack, event])
        stack.append(event)
    return found


def is_operator(key):
    return not key.startswith(MARKS) and ".py(" not in key


@torches.both
class Traces(torches.Case):
    made = {}

    def setUp(self):
        super().setUp()
        if self.python not in self.made:
            folder = harness.folder_of(type(self))
            done = subprocess.run([self.python, PROFILED, folder], capture_output=True, text=True, check=False,
                                  timeout=8 * harness.DEADLINE, env=torches.environment(), cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.made[self.python] = folder
        self.traces = self.made[self.python]

    def ask(self, path, *commands):
        done = harness.run_gradb("-nx", "--batch", "--json", "-ex", f"open {path}", *harness.typed(*commands),
                                 timeout=2 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return harness.records(done)

    def operators(self, path):
        return self.ask(path, "info timing operators")[-1]["operators"]

    def totals(self, path, names):
        """Of nodes, in microseconds: what they took with all that they called."""
        records = self.ask(path, *(f"info node '{name}'" for name in names))[1:]
        return {r["node"]: float(r["attributes"]["total us"]) for r in records if r["type"] == "node"}

    def compare(self, name):
        told = json.loads((self.traces / (name + ".told")).read_text())
        # a trace of the older PyTorch has no kinds: the program's own name counts as an operator
        found = [op for op in self.operators(self.traces / name) if is_operator(op["type"])]
        calls, own = collections.Counter(), collections.Counter()
        for op in found:
            calls[op["type"]] += op["calls"]
            own[op["type"]] += op["seconds"] * 1e6
        expected = [row for row in told["averages"] if is_operator(row[0])]
        self.assertGreater(len(expected), 40)
        self.assertEqual(dict(calls), {key: count for key, count, *_ in expected})
        broken = overlapping(self.traces / name)
        self.assertLess(len(broken), len(expected) / 2)
        for key, _, self_time, *_ in expected:
            if key in broken:
                continue
            self.assertAlmostEqual(own[key], self_time, delta=0.01, msg=key)
        return told, found, expected

    def test_counts_and_times(self):
        _, found, expected = self.compare("plain.json")
        names = {op["name"]: op["type"] for op in found}
        total = collections.Counter()
        for name, time in self.totals(self.traces / "plain.json", names).items():
            total[names[name]] += time
        for key, _, _, whole, _ in expected:
            self.assertAlmostEqual(total[key], whole, delta=0.01, msg=key)

    def test_by_shape(self):
        told, found, _ = self.compare("plain.json")
        if not any(op["shape"] for op in found):
            self.skipTest("this PyTorch writes no shapes into traces")
        mine = {}
        for op in found:
            key = op["type"], op["shape"]
            mine[key] = mine.get(key, 0) + op["calls"]
        for kind, shapes, text in (("aten::addmm", [[10], [8, 144], [144, 10], [], []],
                                    "float32 (10,) x (8, 144) x (144, 10)"),
                                   ("aten::relu", [[8, 4, 6, 6]], "float32 (8, 4, 6, 6)")):
            count = [row[1] for row in told["shapes"] if row[0] == kind and row[4] == shapes]
            self.assertEqual([mine[kind, text]], count)

    def test_with_stack(self):
        self.compare("stack.json.gz")

    def test_modules_and_lines(self):
        found = self.operators(self.traces / "stack.json.gz")
        if not any(op["module"] for op in found):
            self.assertEqual(torches.release_of(self.python)[0], 1)
            self.skipTest("this PyTorch writes no stacks into traces")
        linear = [op for op in found if op["type"] == "aten::addmm"]
        self.assertEqual([op["module"] for op in linear], ["Net_0/Linear_0"])
        self.assertRegex(linear[0]["place"], r"profiled\.py:\d+$")
        back = [op for op in found if op["type"] == "aten::convolution_backward"]
        self.assertEqual([(op["module"], op["phase"], op["calls"]) for op in back], [("Net_0/Conv2d_0", "backward", 2)])
        frames = self.ask(self.traces / "stack.json.gz", "backtrace Net_0/Linear_0/aten::addmm")[-1]["frames"]
        self.assertEqual([frame["function"] for frame in frames if "profiled.py" in frame["file"]],
                         ["forward", "train", "<module>"])

    def test_parts(self):
        """Each step ends with the optimizer's; the parts of a step do not exceed it."""
        opened, steps = self.ask(self.traces / "plain.json", "info timing steps")
        self.assertEqual(opened["steps"], 3)
        for step in steps["steps"]:
            parts = [step[name] for name in ("data", "forward", "backward", "optimizer", "rest")]
            self.assertTrue(all(part > 0 for part in parts), step)
            self.assertAlmostEqual(sum(parts), step["total"], places=7)

    def test_marked(self):
        """Two traces of one worker are one training, with the profiler's numbers."""
        opened, steps = self.ask(self.traces / "board", "info timing steps")
        self.assertEqual((opened["steps"], opened["ranks"]), (4, 1), opened)
        marks = [re.findall(r'"ProfilerStep#(\d+)"', path.read_text()) for path in (self.traces / "board").iterdir()]
        marks = sorted({int(mark) for found in marks for mark in found})
        self.assertEqual([step["step"] for step in steps["steps"]], marks)

if __name__ == "__main__":
    harness.main()
