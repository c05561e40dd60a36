# SPDX-License-Identifier: GPL-3.0-or-later
"""condition_tool, and what numpy says of the same tensors."""
import math
import subprocess

import harness
import numpy as np

TOOL = harness.BUILD / "tests" / "engine" / "watch" / "condition_tool"

NAN, INF, NO_PREVIOUS, NO_MEMORY, NO_HISTORY, NO_VALUE, EMPTY, NOT_NUMBERS, NOT_CAPTURED, NO_FIGURE = (
    1 << i for i in range(10))

FLOATS = ["float16", "bfloat16", "float32", "float64"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
DTYPES = ["bool"] + SIGNED + UNSIGNED + FLOATS

COMPARE = {"gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "lt": lambda a, b: a < b,
           "le": lambda a, b: a <= b}


class Value:
    """A tensor: what the tool is told, and its elements in float64."""

    def __init__(self, dtype, values, shape=None):
        values = np.asarray(values, dtype=np.float64 if dtype in FLOATS else None)
        if dtype == "bfloat16":
            bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
            short = (bits >> 16).astype(np.uint16)
            short[np.isnan(values).ravel() if values.ndim == 1 else np.isnan(values)] = 0x7FC0
            self.bytes = short.tobytes()
            array = (short.astype(np.uint32) << 16).view(np.float32)
        else:
            array = values.astype(dtype)
            self.bytes = array.tobytes()
            array = np.abs(array) if array.dtype.kind == "c" else array
        self.dtype = dtype
        self.shape = array.shape if shape is None else shape
        self.x = array.astype(np.float64).ravel()

    def fields(self):
        dims = ",".join(map(str, self.shape)) if self.shape else "-"
        return f"{self.dtype} {dims} {self.bytes.hex() or '-'}"


def mean(values):
    return math.fsum(values) / len(values)


def figures(x, prev=None, lo=-math.inf, hi=math.inf):
    """Of finite elements, at least one; by the names that parameters begin with."""
    found = {
        "max": x.max(), "min": x.min(), "mean": mean(x), "abs_mean": mean(np.abs(x)),
        "max_min": x.max() - x.min(), "spread": x.max() - x.min(),
        "zero_percentage": float((x == 0).sum()) * 100 / len(x),
        "range_percentage": float(((x >= lo) & (x <= hi)).sum()) * 100 / len(x),
        "norm": math.sqrt(math.fsum(x * x)),
    }
    if prev is not None:
        found["abs_mean_update_ratio"] = mean(np.abs(x - prev)) / (mean(np.abs(prev)) + 1e-9)
        norms = found["norm"] * math.sqrt(math.fsum(prev * prev))
        found["cosine"] = math.fsum(x * prev) / norms if norms else None
    return {name: None if value is None else float(value) for name, value in found.items()}


class Batch:
    """Commands for the tool, all sent at once, and what each must answer."""

    def __init__(self, test):
        self.test = test
        self.lines = []
        self.expected = []

    def tell(self, line):
        self.lines.append(line)

    def cur(self, value):
        self.tell("cur " + value.fields())

    def prev(self, value=None):
        self.tell("prev " + value.fields() if value is not None else "prev")

    def judge(self, condition, params, outcome, error=0, actual=None, near=None):
        """actual: the first enabled test's figure, exact; near: the same to 1e-9."""
        words = [f"{name}={float(value)!r}" for name, value in params.items()]
        self.lines.append(" ".join(["judge", condition] + words))
        self.expected.append((outcome, error, actual, near))

    def expr(self, text, outcome, error=0):
        self.lines.append("expr " + text)
        self.expected.append((outcome, error, None, None))

    def refused(self, condition, params):
        self.judge(condition, params, "error")

    def run(self):
        ran = subprocess.run([str(TOOL)], input="\n".join(self.lines) + "\n", capture_output=True, text=True,
                             timeout=harness.DEADLINE * 3)
        self.test.assertEqual((ran.returncode, ran.stderr), (0, ""))
        asked = [line for line in self.lines if line.startswith(("judge", "expr"))]
        answers = ran.stdout.splitlines()
        self.test.assertEqual(len(answers), len(asked), [a for a in answers if a.startswith("error")][:3])
        self.test.assertTrue(answers)
        for question, answer, expected in zip(asked, answers, self.expected):
            self.compare(question, answer, *expected)
        return len(answers)

    def compare(self, question, answer, outcome, error, actual, near):
        told = answer.split(" ")
        if outcome == "error":
            self.test.assertEqual(told[0], "error", question)
            return
        self.test.assertEqual((told[0], told[1]), (outcome, str(error)), f"{question} -> {answer}")
        shown = [float.fromhex(field.split(":")[1]) for field in told[2:]
                 if not field.endswith("off") and not field.startswith(SILENT)]
        if actual is not None:
            self.test.assertEqual(shown[0], actual, f"{question} -> {answer}")
        if near is not None:
            self.test.assertAlmostEqual(shown[0], near, delta=1e-9 * (abs(near) + 1e-12),
                                        msg=f"{question} -> {answer}")


# Parameters that are not compared with a figure.
SILENT = ("rtol=", "atol=", "equal_nan=", "epsilon=", "range_start", "range_end", "steps=", "limit=")
