# SPDX-License-Identifier: GPL-3.0-or-later
"""Watchpoints of MindSpore processes, evaluated by the process and by gradb: both must say the same. The
process is tests/e2e/fake_mindspore.py, which evaluates by itself, in float64 and release by release."""
import json
import math
import unittest

import numpy as np

import harness
from fake_mindspore import SCOPE, FakeMindSpore, Graph, Kernel

EMPTY = 64  # the bit of a hit's error
STEPS = 5


def values_of(kind):
    """step -> array: what a kernel of that kind computes."""
    f32 = np.float32
    line = np.linspace(-2, 2, 41, dtype=f32)
    table = {
        "line": lambda step: line * f32(step),
        "positive": lambda step: np.abs(line) + f32(0.5),
        "zeros": lambda step: np.zeros((3, 5), f32),
        "half zeros": lambda step: np.array([[0, 1], [0, -1]], f32),
        "scalar": lambda step: f32(0.25) * f32(step),
        "one": lambda step: np.array([-3.5], f32),
        "nan": lambda step: np.where(np.arange(9) == step, np.nan, np.arange(9)).astype(f32)
        if step > 1 else np.arange(9, dtype=f32),
        "inf": lambda step: np.array([1, np.inf if step == 3 else 2, -np.inf if step == 4 else 3], f32),
        "both": lambda step: np.array([np.nan, np.inf, 1], f32),
        "all nan": lambda step: np.full(4, np.nan, f32),
        "empty": lambda step: np.zeros((0, 4), f32),
        "tiny": lambda step: np.full((2, 2), 1e-40, f32),
        "large": lambda step: np.array([3e38, -3e38, 1e38], f32),
        "float16": lambda step: np.linspace(-1, 1, 17, dtype=np.float16) * np.float16(step),
        "float64": lambda step: np.array([0.1, 0.2, 0.30000000000000004, 1e300]) * step,
        "int32": lambda step: np.arange(-3, 9, dtype=np.int32) * step,
        "int64": lambda step: np.array([2**53 + 2, -(2**53), 0], np.int64),
        "uint8": lambda step: np.arange(0, 250, 25, dtype=np.uint8),
        "bool": lambda step: np.array([True, False, True, step % 2 == 0]),
        "big": lambda step: np.sin(np.arange(40000, dtype=f32) * f32(step)).reshape(200, 200),
        "big nan": lambda step: np.where(np.arange(30000) == 29999, np.nan,
                                         np.arange(30000) / 30000).astype(f32),
        "big zeros": lambda step: np.zeros(25000, f32),
    }
    return table[kind]


KINDS = ("line", "positive", "zeros", "half zeros", "scalar", "one", "nan", "inf", "both", "all nan", "empty",
         "tiny", "large", "float16", "float64", "int32", "int64", "uint8", "bool", "big", "big nan",
         "big zeros")


def weights():
    """name -> (steps that are complete -> array)"""
    base = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)
    return {
        "moving.weight": lambda step: base + np.float32(0.25) * np.float32(step),
        "frozen.weight": lambda step: base,
        "slow.weight": lambda step: base * np.float32(1 + 1e-6 * step),
        "zero.weight": lambda step: np.zeros((4, 5), np.float32),
        "from_zero.weight": lambda step: base * np.float32(step),
        "broken.bias": lambda step: np.where(np.arange(6) == 2, np.nan if step == 2 else 1, step)
        .astype(np.float32),
        "endless.bias": lambda step: np.array([1, np.inf if step >= 3 else step], np.float32),
        "half.bias": lambda step: (np.arange(8) * 0.1 * (step + 1)).astype(np.float16),
        "double.bias": lambda step: np.array([1.0, 2.0]) + 1e-7 * step,
        "large.weight": lambda step: np.cos(np.arange(30000, dtype=np.float32) + np.float32(step)),
    }


def name_of(kind, op):
    return f"{SCOPE}/{kind.replace(' ', '_')}/{op}-op{KINDS.index(kind) + 1}"


def network():
    """A kernel of each kind, two of them with two outputs; gradients; an activation; the weights are read by
    the first kernel."""
    parameters = weights()
    kernels = [Kernel(f"{SCOPE}/read/MatMul-op100", "MatMul", tuple(parameters),
                      lambda step: [np.ones(3, np.float32)])]
    for kind in KINDS:
        make = values_of(kind)
        kernels.append(Kernel(name_of(kind, "Cast"), "Cast", (kernels[-1].name,),
                              lambda step, make=make: [make(step)]))
    two = Kernel(f"{SCOPE}/two/TopK-op101", "TopK", (kernels[-1].name,),
                 lambda step: [np.full(3, step, np.float32), np.arange(3, dtype=np.int32) - 1])
    act = Kernel(f"{SCOPE}/relu-ReLU/ReLU-op102", "ReLU", (two.name,),
                 lambda step: [np.maximum(values_of("line")(step), 0)])
    grads = [Kernel(f"Gradients/{SCOPE}/grad{number}/Mul-op{110 + number}", "Mul", (act.name,),
                    lambda step, make=make: [make(step)])
             for number, make in enumerate([
                 lambda step: np.full((2, 3), 10.0 ** -(3 * step), np.float32),
                 lambda step: np.array([10.0 ** step, 1], np.float32),
                 lambda step: np.array([np.nan if step == 4 else 1, 2], np.float32)])]
    return Graph("kernel_graph_0", [*kernels, two, act, *grads], parameters)


def above(value):
    """The next float32 up, and down: what the process compares is a double made of a float."""
    return float(np.nextafter(np.float32(value), np.float32(np.inf), dtype=np.float32))


def below(value):
    return float(np.nextafter(np.float32(value), np.float32(-np.inf), dtype=np.float32))


def around(name, value):
    """Commands with the threshold just below, at and just above a figure that occurs."""
    return [f"{name}={threshold!r}" for threshold in (below(value), float(value), above(value))]


LINE_MAX, LINE_MEAN_ABS = 4.0, float(np.abs(np.linspace(-2, 2, 41, dtype=np.float32).astype(float)).mean())


def tensor_watches():
    """Conditions on tensors, with thresholds at, over and under figures that occur."""
    watches = ["TO on all", "TZ on all", "TZ zero_percentage_ge=50 on all", "TZ zero_percentage_ge=50.001 on all",
               "TZ zero_percentage_ge=0 on all", "WO on all", "GE on all"]
    for text in (*around("max_gt", LINE_MAX), *around("min_gt", 0.5), *around("abs_mean_gt", LINE_MEAN_ABS),
                 *around("mean_gt", 3.5), "max_gt=-3.5", "max_gt=1e300", "abs_mean_gt=0", "mean_gt=-1",
                 "max_gt=9007199254740992"):
        watches.append(f"TL {text} on all")
    for text in (*around("max_lt", 2.0), *around("min_lt", -3.5), *around("abs_mean_lt", 1.0),
                 *around("mean_lt", 0.0), "abs_mean_lt=1e-39", "min_lt=-1e38"):
        watches.append(f"TS {text} on all")
    ends = "range_start_inclusive=0 range_end_inclusive=1"
    for text in (f"range_percentage_lt=50 {ends}", f"range_percentage_gt=50 {ends}",
                 f"range_percentage_gt=99.9 {ends}", f"range_percentage_lt=100 {ends}",
                 f"range_percentage_gt=0 range_start_inclusive={above(2.0)!r} range_end_inclusive=1e30",
                 f"range_percentage_gt=0 range_start_inclusive=2 range_end_inclusive=2",
                 "max_min_lt=1e-6", "max_min_gt=8", *around("max_min_gt", 4.0), *around("max_min_lt", 2.0)):
        watches.append(f"TR {text} on all")
    watches += [f"AR range_percentage_gt=50 range_start_inclusive=-1 range_end_inclusive=0",
                "AR max_min_gt=3.9", "GV abs_mean_lt=1e-9", *(f"GV {text}" for text in around("max_lt", 1e-6)),
                "GL abs_mean_gt=500", "GL max_gt=1000", "GL max_gt=1000.0001", "GE"]
    return watches


def weight_watches(changes):
    watches = ["WO", "WL abs_mean_gt=0.5", "WL max_gt=1", "WL min_gt=-0.5", "WL mean_gt=0.25", "WS abs_mean_lt=0.6",
               "WS max_lt=1", *(f"WS {text}" for text in around("min_lt", -1.0)), "WS mean_lt=0", "TZ on weights"]
    if changes:
        watches += ["WNC", "WNC rtol=1e-3", "WNC rtol=0", "WNC rtol=1.0",
                    "WCL abs_mean_update_ratio_gt=0.1", "WCL abs_mean_update_ratio_gt=1",
                    "WCL abs_mean_update_ratio_gt=1e6",
                    "WCS abs_mean_update_ratio_lt=1e-4", "WCS abs_mean_update_ratio_lt=0.3"]
    return watches


class Told:
    """One run: the hits by what they are of."""

    def __init__(self, records, steps):
        self.hits, self.unclear = {}, {}
        for record in records:
            where = (record["watchpoint"], record["node"].rpartition("/")[2], record["slot"])
            if record["step"] > steps:
                continue
            if record["error"]:
                self.unclear.setdefault((*where, record["error"]), record["step"])
            else:
                self.hits[(*where, record["step"])] = record["params"]


class Session(unittest.TestCase):
    def tearDown(self):
        self.end()

    def setUp(self):
        self.gradb = self.trainer = None

    def end(self):
        if self.trainer:
            self.trainer.vanish()
        if self.gradb:
            self.gradb.__exit__()
        self.trainer = self.gradb = None

    def start(self, *settings, **options):
        """gradb, connected, at the stop before the first step."""
        self.gradb = harness.Gradb("--json")
        self.gradb.port = int(self.gradb.expect(r'"type":"listen".*:(\d+)"').group(1))
        for setting in settings:
            self.gradb.send(setting)
        options.setdefault("graphs", [network()])
        self.trainer = FakeMindSpore(self.gradb.port, **options)
        self.trainer.start()
        self.gradb.expect('"type":"stopped"')

    def ask(self, command, pattern):
        return json.loads(self.gradb.run(command, pattern).string)

    def watch(self, texts):
        for text in texts:
            self.gradb.send(f"watch {text}")
            record = json.loads(self.gradb.expect('"type":"(watchpoint|error)"').string)
            self.assertEqual(record["type"], "watchpoint", (text, record))

    def train(self):
        """To the end; the hits in execution order."""
        self.gradb.run("continue", '"type":"(finished|ended)"')
        self.trainer.wait_note("done")
        self.assertIsNone(self.trainer.error)
        self.assertEqual(self.trainer.bad_replies, [])
        return self.ask("info hits -a", '"type":"hits"')["hits"]


class Agreement(Session):
    """The same run once evaluated by the process, once by gradb."""

    def run_once(self, how, watches, **options):
        self.start(f"set evaluate {how}", "set stop-on-hit off", **options)
        self.watch(watches)
        records = self.train()
        self.end()
        last = STEPS
        if options["backend"] == "GPU" and (1, 3) <= tuple(map(int, options["version"].split(".")[:2])) < (1, 6):
            last = STEPS - 1  # such a process does not wait behind its last step
        return Told(records, last)

    def compare(self, watches, **options):
        remote = self.run_once("remote", watches, **options)
        local = self.run_once("local", watches, **options)
        self.assertGreater(len(remote.hits), len(watches))
        self.assertEqual(sorted(set(remote.hits) - set(local.hits)), [], "only the process")
        more = {key for key in set(local.hits) - set(remote.hits) if not self.follows_nonfinite(key, watches)}
        self.assertEqual(sorted(more), [], "only gradb")
        for key, params in remote.hits.items():
            self.compare_params(key, params, local.hits[key])
        # A process passes over what holds no element; gradb says that there is nothing to look at.
        empty = {key for key in local.unclear if key[3] == EMPTY}
        self.assertEqual({key[1] for key in empty} - {name_of("empty", "Cast").rpartition("/")[2]}, set())
        self.assertEqual({key: step for key, step in local.unclear.items() if key not in empty},
                         remote.unclear)

    def follows_nonfinite(self, key, watches):
        """After a value with NaN or Inf a process has no figure for the change; gradb compares the elements
        that were finite before."""
        number, name, _, step = key
        value = weights().get(name)
        return (watches[number - 1].startswith("WC") and value is not None and
                not np.isfinite(value(step - 1)).all() and bool(np.isfinite(value(step)).all()))

    def compare_params(self, key, remote, local):
        self.assertEqual([p["name"] for p in remote], [p["name"] for p in local], key)
        for theirs, mine in zip(remote, local):
            self.assertEqual(theirs["hit"], mine["hit"], (key, theirs, mine))
            self.assertEqual(theirs.get("disabled"), mine.get("disabled"), (key, theirs, mine))
            if not theirs.get("disabled"):
                self.assertEqual(theirs["value"], mine["value"], (key, theirs, mine))
            self.assertTrue(math.isclose(theirs["actual"], mine["actual"], rel_tol=1e-9, abs_tol=1e-12),
                            (key, theirs, mine))

    def versions(self, watches, versions):
        for version, backend in versions:
            with self.subTest(version=version, backend=backend):
                self.compare(watches, version=version, backend=backend, steps=STEPS)

    def test_tensors(self):
        self.versions(tensor_watches(), [("1.1.0", "Ascend"), ("1.3.0", "GPU"), ("1.5.0", "GPU"),
                                         ("1.7.0", "GPU"), ("2.0.0", "Ascend"), ("2.3.1", "GPU")])

    def test_weights_and_their_changes(self):
        self.versions(weight_watches(True), [("1.1.0", "GPU"), ("1.1.0", "Ascend"), ("1.3.0", "Ascend"),
                                             ("1.5.0", "GPU"), ("1.6.0", "GPU"), ("1.7.0", "Ascend"),
                                             ("2.2.14", "Ascend")])

    def test_weights_where_nothing_is_kept_of_the_step_before(self):
        self.versions(weight_watches(False), [("1.7.0", "GPU"), ("2.0.0", "GPU")])


if __name__ == "__main__":
    harness.main()
