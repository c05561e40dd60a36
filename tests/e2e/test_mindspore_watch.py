# SPDX-License-Identifier: GPL-3.0-or-later
"""Watchpoints of MindSpore processes, evaluated by the process and by gradb: both must say the same. The
process is tests/e2e/fake_mindspore.py, which evaluates by itself, in float64 and release by release."""
import json
import math
import unittest

import numpy as np

import harness
import fake_mindspore as fake
from fake_mindspore import SCOPE, FakeMindSpore, Graph, Kernel

EMPTY, BEFORE = 64, 1024  # bits of a hit's error
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


class Histograms(Session):
    def wanted(self, values):
        """[counts, nan, inf] as NumPy has them."""
        values = np.asarray(values).ravel().astype(float)
        finite = values[np.isfinite(values)]
        counts = []
        if len(finite) and finite.min() == finite.max():
            counts = 39 * [0] + [len(finite)]
        elif len(finite):
            counts = np.histogram(finite, 40, (finite.min(), finite.max()))[0].tolist()
        return [counts, int(np.isnan(values).sum()), int(np.isinf(values).sum())]

    def test_values_that_gradb_fetches(self):
        """What the watchpoints of a process need its values for, gradb counts itself."""
        self.start(version="1.9.0", backend="Ascend", steps=STEPS)
        self.ask("trace histogram on all", '"type":"(watchpoint|error)"')
        self.ask("set on-error continue", '"type":')
        self.gradb.run("continue", '"type":"(finished|ended)"')
        for kind in KINDS:
            if kind == "empty":
                continue
            record = self.ask(f"plot --histogram {name_of(kind, 'Cast')}", '"type":"(plot|error)"')
            self.assertEqual(record["type"], "plot", record)
            found = {one["step"]: [one["counts"], one["nan"], one["inf"]]
                     for one in record["series"][0]["histograms"]}
            self.assertEqual(found, {step: self.wanted(values_of(kind)(step)) for step in range(1, STEPS + 1)}, kind)


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
        self.assertEqual(sorted(set(local.hits) - set(remote.hits)), [], "only gradb")
        for key, params in remote.hits.items():
            self.compare_params(key, params, local.hits[key])
        # A process passes over what holds no element; gradb says that there is nothing to look at.
        empty = {key for key in local.unclear if key[3] == EMPTY}
        self.assertEqual({key[1] for key in empty} - {name_of("empty", "Cast").rpartition("/")[2]}, set())
        # After a value with NaN or Inf there is no figure for the change: a process passes over it, too.
        behind = {key: step for key, step in local.unclear.items() if key[3] == BEFORE}
        self.assertEqual(behind, self.behind_nonfinite(watches))
        self.assertEqual({key: step for key, step in local.unclear.items() if key not in empty | set(behind)},
                         remote.unclear)

    @staticmethod
    def behind_nonfinite(watches):
        return {(number, name, 0, BEFORE): step for name, value in weights().items()
                for number, text in enumerate(watches, 1) if text.startswith("WC")
                for step in range(STEPS, 0, -1)
                if not np.isfinite(value(step - 1)).all() and np.isfinite(value(step)).all()}

    def compare_params(self, key, remote, local):
        self.assertEqual([p["name"] for p in remote], [p["name"] for p in local], key)
        for theirs, mine in zip(remote, local):
            self.assertEqual(theirs["hit"], mine["hit"], (key, theirs, mine))
            self.assertEqual(theirs.get("disabled"), mine.get("disabled"), (key, theirs, mine))
            if not theirs.get("disabled"):
                self.assertEqual(theirs["value"], mine["value"], (key, theirs, mine))
            self.assertEqual("actual" in theirs, "actual" in mine, (key, theirs, mine))
            self.assertTrue("actual" in theirs or not theirs["hit"], (key, theirs))
            self.assertTrue(math.isclose(theirs.get("actual", 0), mine.get("actual", 0), rel_tol=1e-9,
                                         abs_tol=1e-12), (key, theirs, mine))

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


class Local(Session):
    """What gradb evaluates for a process."""

    def start_local(self, *settings, **options):
        self.start("set evaluate local", "set stop-on-hit off", *settings, **options)

    def views(self):
        """(level, name of the tensor, iter) of every request, in order."""
        return [(level, tensors[0][0].rpartition("/")[2], tensors[0][2])
                for kind, value in self.trainer.log if kind == "view" for level, tensors in [value]]

    def sets(self):
        return [value for kind, value in self.trainer.log if kind == "set" and not value.delete]

    def test_initial_weights(self):
        told = {}
        for how in ("remote", "local"):
            self.start(f"set evaluate {how}", "set stop-on-hit off", version="1.9.0", backend="Ascend")
            self.watch(["WI", "WI zero_percentage_ge=0", "WI max_gt=0.5", "WI max_gt=0.50001 on moving.weight",
                        f"WI min_lt={above(-1.0)!r}", "WI min_lt=-1"])
            told[how] = [(hit["watchpoint"], hit["step"], hit["node"], hit["error"],
                          [(p["name"], p["hit"], p.get("actual")) for p in hit["params"]]) for hit in self.train()]
            self.end()
        self.assertEqual(sorted(told["local"]), sorted(told["remote"]))
        self.assertGreater(len(told["local"]), 10)

    def test_initial_weights_are_over_after_the_first_step(self):
        for how in ("remote", "local"):
            self.start(f"set evaluate {how}", version="1.9.0", backend="Ascend")
            self.gradb.run("step", '"type":"stopped"')
            error = self.ask("watch WI", '"type":"(error|watchpoint)"')
            self.assertIn("before the first step", json.dumps(error))
            self.end()

    def test_a_flag_of_the_device_is_seen_by_the_process_alone(self):
        self.start("set evaluate remote", version="1.9.0", backend="Ascend")
        self.watch(["OO"])
        self.gradb.run("step", '"type":"stopped"')
        self.assertEqual([command.watch_condition.condition for command in self.sets()], [2])
        self.assertEqual(len(self.sets()[0].watch_condition.params), 0)
        self.end()
        self.start("set evaluate local", version="1.9.0", backend="Ascend")
        error = self.ask("watch OO", '"type":"(error|watchpoint)"')
        self.assertIn("only the process can see", json.dumps(error))

    def test_own_conditions_are_never_sent(self):
        self.start("set evaluate auto", "set stop-on-hit off", version="1.9.0", backend="Ascend", steps=3)
        self.watch(["tensor_constant on zeros", "'max > 3 && min < -3' on line", "TL max_gt=1 on line if step > 2",
                    "TO on scalar"])
        hits = self.train()
        self.assertEqual([(hit["watchpoint"], hit["step"]) for hit in hits], [(1, 1), (2, 2), (1, 2), (2, 3),
                                                                              (3, 3), (1, 3)])
        self.assertEqual([command.watch_condition.condition for command in self.sets()], [13])

    def test_stops_at_the_end_of_the_step(self):
        for version, backend in (("1.2.0", "GPU"), ("1.4.0", "GPU"), ("2.0.0", "GPU"), ("2.0.0", "Ascend")):
            self.start("set evaluate local", version=version, backend=backend, steps=6)
            self.watch([f"TL max_gt=4 on {name_of('line', 'Cast')}"])
            stop = self.ask("continue", '"type":"stopped"')
            self.assertEqual((stop["reason"], stop["step"], stop["at_step_end"]), ("hit", 3, True), version)
            self.assertIn("watchpoint 1 (TL)", stop["text"])
            hits = self.ask("info hits -a", '"type":"hits"')["hits"]
            self.assertEqual([(hit["step"], hit["params"][1]["actual"]) for hit in hits], [(3, 6.0)])
            self.end()

    def test_a_gpu_holds_what_is_watched(self):
        """By a watchpoint that the process never evaluates: it must not stop it, nor say anything."""
        batch = Kernel(f"{SCOPE}/bn/BatchNorm-op120", "BatchNorm", (name_of("big", "Cast"),),
                       lambda step: [np.full(3, step, np.float32)] * 5)
        graph = network()
        graph.kernels.append(batch)
        self.start_local(version="2.0.0", backend="GPU", steps=3, graphs=[graph])
        self.watch(["TO on nan", "TL max_gt=1 on bn", "WL max_gt=0"])
        hits = self.train()
        capture, = self.sets()
        self.assertEqual(capture.watch_condition.condition, 14)
        self.assertTrue(all(param.disabled for param in capture.watch_condition.params))
        self.assertEqual({node.node_name.rpartition("/")[2] for node in capture.watch_nodes},
                         {"Cast-op7", "BatchNorm-op120", *weights()})
        self.assertEqual([kind for kind, _ in self.trainer.log if kind == "hits"], [])
        seen = {(hit["watchpoint"], hit["node"].rpartition("/")[2], hit["slot"], hit["error"])
                for hit in hits}
        self.assertIn((1, "Cast-op7", 0, 0), seen)
        self.assertEqual({key for key in seen if key[0] == 2},
                         {(2, "BatchNorm-op120", slot, 256 if slot in (1, 2) else 0) for slot in range(5)})
        self.assertIn((3, "moving.weight", 0, 0), seen)

    def test_what_is_watched_no_more_is_held_no_more(self):
        self.start_local(version="2.0.0", backend="GPU", steps=4)
        self.watch(["TO on nan", "TO on line"])
        self.gradb.run("step", '"type":"stopped"')
        self.gradb.send("delete 1")
        self.gradb.run("step", '"type":"stopped"')
        self.gradb.send("delete 2")
        self.gradb.run("step", '"type":"stopped"')
        commands = [(value.delete, len(value.watch_nodes)) for kind, value in self.trainer.log if kind == "set"]
        self.assertEqual(commands, [(False, 2), (False, 1), (True, 0)])
        self.assertEqual(self.trainer.watchpoints, {})

    def test_statistics_where_they_are_enough(self):
        self.start_local(version="2.0.0", backend="Ascend", steps=2)
        self.watch(["TL max_gt=0.5 on big", "TO on big_nan", "TZ on big_zeros", "TL mean_gt=-1 on big"])
        self.gradb.send("delete 4")
        hits = self.train()
        self.assertEqual({level for level, _, _ in self.views()}, {fake.pb.ViewCMD.statistics})
        self.assertEqual([(hit["watchpoint"], hit["step"]) for hit in hits],
                         [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2)])
        self.assertEqual(hits[0]["params"][1]["actual"], float(np.sin(np.arange(40000, dtype=np.float32)).max()))

    def test_values_where_statistics_tell_too_little(self):
        for version, texts in (("2.0.0", ["TL mean_gt=-1 on big"]), ("2.0.0", ["TL max_gt=0.5 on big if mean > -1"]),
                               ("2.0.0", ["TR range_percentage_gt=1 range_start_inclusive=0 "
                                          "range_end_inclusive=1 on big"]),
                               ("2.0.0", ["'std > 0.1' on big"]), ("1.4.0", ["TL max_gt=0.5 on big"])):
            self.start_local(version=version, backend="Ascend", steps=1)
            self.watch(texts)
            self.assertEqual(len(self.train()), 1)
            self.assertEqual(self.views()[-1], (fake.pb.ViewCMD.value, "Cast-op20", ""))
            self.end()

    def test_nan_in_the_extremes_of_2_3(self):
        """From 2.3 on the process's extremes take NaN in; what is finite is looked at all the same."""
        self.start_local(version="2.3.0", backend="Ascend", steps=1)
        self.gradb.send("exclude big_nan")
        self.watch(["TL max_gt=0.5 on big_nan", "TL max_gt=1 on big_nan"])
        self.assertEqual([(hit["watchpoint"], hit["error"]) for hit in self.train()], [(1, 0)])

    def test_the_step_before(self):
        """From the process at first where it has it, then from our own copies: each value is fetched once."""
        self.start_local(version="2.0.0", backend="Ascend", steps=3)
        self.watch(["WCL abs_mean_update_ratio_gt=0.1 on moving.weight"])
        hits = self.train()
        self.assertEqual([hit["step"] for hit in hits], [1, 2, 3])
        values = [view for view in self.views() if view[0] == fake.pb.ViewCMD.value]
        self.assertEqual(values, [(0, "moving.weight", ""), (0, "moving.weight", "prev"),
                                  (0, "moving.weight", ""), (0, "moving.weight", "")])

    def test_too_little_room_for_the_step_before(self):
        self.start_local("set max-cache 1", version="2.0.0", backend="Ascend", steps=3)
        self.watch(["WCL abs_mean_update_ratio_gt=0.1 on moving.weight"])
        hits = self.train()
        self.assertEqual([(hit["step"], hit["error"]) for hit in hits], [(1, 0), (2, 0), (3, 0)])
        self.assertEqual([view[2] for view in self.views() if view[0] == fake.pb.ViewCMD.value],
                         ["", "prev"] * 3)
        self.assertEqual(sum("max-cache is too small" in line for line in self.gradb.lines), 1)

    def test_what_the_process_cannot_compare_moves_to_gradb(self):
        self.start("set stop-on-hit off", version="1.9.0", backend="GPU", steps=5)
        self.watch(["WCL abs_mean_update_ratio_gt=0.1 on moving.weight", "WL max_gt=0 on moving.weight"])
        hits = self.train()
        self.assertEqual(sum("cannot evaluate watchpoint 1 itself" in line for line in self.gradb.lines), 1)
        mine = [(hit["step"], hit["error"]) for hit in hits if hit["watchpoint"] == 1]
        self.assertEqual([pair for pair in mine if not pair[1]], [(3, 0), (4, 0), (5, 0)])
        self.assertEqual({error for _, error in mine}, {0, 4})
        self.assertEqual([hit["step"] for hit in hits if hit["watchpoint"] == 2], [1, 2, 3, 4, 5])

    def test_tensors_of_another_root_graph(self):
        first, second = network(), network()
        second.name = "kernel_graph_1"
        for kernel in second.kernels:
            kernel.name, kernel.inputs = "Eval/" + kernel.name, ()
        second.parameters = {}
        self.start_local(version="2.0.0", backend="Ascend", steps=4, graphs=[first, second], alternate=True)
        self.watch([f"TO on {name_of('both', 'Cast')}", f"TO on Eval/{name_of('both', 'Cast')}"])
        seen = [(hit["step"], hit["watchpoint"], hit["error"]) for hit in self.train()]
        self.assertEqual([one for one in seen if not one[2]], [(1, 1, 0), (2, 2, 0), (3, 1, 0), (4, 2, 0)])
        self.assertEqual({one[2] for one in seen}, {0, 32})

    def test_a_process_that_holds_no_more_than_it_must(self):
        self.start_local(version="1.9.0", backend="Ascend", steps=3, partial=True)
        self.watch(["TO on both"])
        seen = [(hit["step"], hit["error"]) for hit in self.train()]
        self.assertEqual(seen, [(1, 32), (2, 0), (3, 0)])

    def test_costs_add_up(self):
        self.start_local(version="1.9.0", backend="Ascend", steps=3)
        self.watch(["TL abs_mean_gt=0.1 on big", "TS abs_mean_lt=0.1 on big", "TO on line"])
        self.gradb.run("step 2", '"type":"stopped"')
        told = self.ask("info watchpoints", '"type":"watchpoints"')
        self.assertEqual(len(told["watchpoints"]), 3)
        self.assertGreater(told["total"]["compute_ns"], 0)
        self.assertEqual(told["total"]["report_bytes"], 2 * (160000 + 41 * 4))

    def test_changed_while_it_runs(self):
        """A temporary watchpoint goes in the middle of an evaluation; the others go on."""
        self.start("set evaluate local", version="1.9.0", backend="Ascend", steps=6)
        self.gradb.send("twatch TO on both")
        self.gradb.expect('"type":"watchpoint"')
        self.watch(["TL max_gt=1 on big", "TO on all"])
        self.gradb.run("continue", '"type":"stopped"')
        first = self.ask("info hits -a", '"type":"hits"')["hits"]
        self.gradb.run("continue", '"type":"stopped"')
        second = self.ask("info hits -a", '"type":"hits"')["hits"][len(first):]
        self.assertEqual([hit["watchpoint"] for hit in first if not hit["error"]].count(1), 1)
        self.assertNotIn(1, [hit["watchpoint"] for hit in second])
        self.assertEqual({hit["node"] for hit in first if hit["watchpoint"] == 3},
                         {hit["node"] for hit in second if hit["watchpoint"] == 3} -
                         {hit["node"] for hit in second if hit["node"].endswith(("Cast-op7", "broken.bias"))})

    def test_many(self):
        """Ten thousand operators: what is under way at a time is bounded, and so is what is held."""
        kernels = [Kernel(f"Default/many/Add-op{i}", "Add", (), lambda step: [np.full(2, step, np.float32)])
                   for i in range(10000)]
        self.start_local(version="1.9.0", backend="Ascend", steps=1, graphs=[Graph("kernel_graph_0", kernels, {})])
        self.watch(["TL max_gt=1 on all", "TL max_gt=0 on Add-op9999"])
        self.assertEqual([hit["watchpoint"] for hit in self.train()], [2])

    def test_ends_in_the_middle(self):
        for how in ("vanish", "kill", "quit"):
            self.start_local(version="1.9.0", backend="Ascend", steps=1000000)
            self.watch(["TO on all"])
            self.gradb.send("continue")
            self.trainer.wait_note("view", count=100)
            if how == "vanish":
                self.trainer.vanish()
                self.gradb.expect('"type":"(lost|ended|finished)"')
            else:
                self.gradb.interrupt()
                self.gradb.expect('"type":"stopped"')
                if how == "kill":
                    self.gradb.run("kill", '"type":"(finished|ended)"')
            self.gradb.send("quit")
            self.assertEqual(self.gradb.finish(), 0)
            self.end()


class Recommended(Session):
    def test_the_starter_set(self):
        for backend, abbreviations in (("GPU", ["WI", "WCL", "GV", "TO", "TZ", "AR"]),
                                       ("Ascend", ["WI", "WCL", "GV", "OO", "TO", "TZ", "AR"])):
            self.start("set stop-on-hit off", version="1.9.0", backend=backend, steps=2)
            self.gradb.run("recommend yes", "watchpoint")
            told = self.ask("info watchpoints", '"type":"watchpoints"')["watchpoints"]
            self.assertEqual([one["abbreviation"] for one in told], abbreviations)
            hits = self.train()
            self.assertGreater(len(hits), 0)
            self.assertEqual([value.watch_condition.condition for value in
                              (value for kind, value in self.trainer.log if kind == "set")][:len(told)],
                             [14, 18, 16, *([2] if backend == "Ascend" else []), 13, 17, 21])
            self.end()


class Order(Session):
    def test_hits_in_execution_order(self):
        for version, backend in (("1.1.0", "Ascend"), ("1.2.0", "GPU"), ("1.3.0", "Ascend"), ("2.0.0", "GPU"),
                                 ("2.0.0", "Ascend")):
            for how in ("remote", "local"):
                self.start(f"set evaluate {how}", "set stop-on-hit off", version=version, backend=backend, steps=1)
                self.watch(["TZ zero_percentage_ge=0 on all"])
                hits = [hit for hit in self.train() if not hit["error"]]
                names = [kernel.name for kernel in self.trainer.graphs[0].kernels]
                places = [(names.index(hit["node"]), hit["slot"]) for hit in hits if hit["node"] in names]
                self.assertEqual(places, sorted(places), (version, backend, how))
                self.assertGreater(len(places), 15)
                self.end()

    def test_hits_that_come_in_any_order(self):
        for version in ("1.2.0", "1.3.0", "2.0.0"):
            told = {}
            for how in ("remote", "local"):
                self.start(f"set evaluate {how}", "set stop-on-hit off", version=version, backend="Ascend", steps=1)
                send = self.trainer.send_hits
                self.trainer.send_hits = lambda hits, send=send: send(list(reversed(hits)))
                self.watch(["TZ zero_percentage_ge=0 on all"])
                self.gradb.run("continue", '"type":"(finished|ended)"')
                told[how] = [(json.loads(line)["node"], json.loads(line)["slot"]) for line in self.gradb.lines
                             if '"type":"hit"' in line and '"error":0' in line]
                self.end()
            self.assertGreater(len(told["local"]), 15)
            self.assertEqual(told["remote"], told["local"], version)


class ProcessThatForgets(FakeMindSpore):
    """It has no values of the step before, and says nothing about that."""

    def load_parameters(self):
        super().load_parameters()
        self.previous.clear()

    def hits_of(self, *names, **how):
        return [hit for hit in super().hits_of(*names, **how) if not hit.error_code]

    def answer_view(self, view):
        if not any(tensor.iter == "prev" for tensor in view.tensors):
            super().answer_view(view)


class Hits(Session):
    def start_kind(self, kind, *settings, **options):
        """As start, with a process of that class."""
        self.gradb = harness.Gradb("--json")
        self.gradb.port = int(self.gradb.expect(r'"type":"listen".*:(\d+)"').group(1))
        for setting in settings:
            self.gradb.send(setting)
        self.trainer = kind(self.gradb.port, graphs=[network()], **options)
        self.trainer.start()
        self.gradb.expect('"type":"stopped"')

    def hits(self):
        return self.ask("info hits -a", '"type":"hits"')["hits"]

    def test_recheck_begins_a_new_list(self):
        for backend in ("GPU", "Ascend"):
            for how in ("local", "remote"):
                with self.subTest(backend=backend, how=how):
                    self.start(f"set evaluate {how}", version="1.6.0", backend=backend, steps=2)
                    self.watch(["TL max_gt=0.9 on weights"])
                    self.gradb.run("step", '"type":"run"')
                    places = {(hit["node"], hit["slot"]) for hit in self.hits()}
                    self.assertGreater(len(places), 1)
                    for _ in range(2):
                        self.gradb.run("recheck", '"type":"recheck"')
                        again = self.hits()
                        self.assertEqual(len(again), len({(hit["node"], hit["slot"]) for hit in again}))
                        self.assertTrue(places <= {(hit["node"], hit["slot"]) for hit in again})
                    self.gradb.run("delete 1", '"command":"delete"')
                    self.watch(["TL max_gt=1e30 on weights"])
                    self.gradb.run("recheck", '"hits":0')
                    self.assertEqual(self.hits(), [])
                    self.end()

    def test_recheck_keeps_earlier_steps(self):
        self.start("set evaluate local", version="1.9.0", backend="Ascend", steps=3)
        self.watch(["TL max_gt=0.9 on weights"])
        for _ in range(2):
            self.gradb.run("step", '"type":"run"')
        before = [(hit["step"], hit["node"]) for hit in self.hits()]
        self.gradb.run("recheck", '"type":"recheck"')
        self.assertEqual(sorted((hit["step"], hit["node"]) for hit in self.hits()), sorted(before))

    def test_no_previous_values_and_not_a_word(self):
        for version, backend in (("1.9.0", "Ascend"), ("1.3.0", "Ascend"), ("1.5.0", "GPU")):
            with self.subTest(version=version, backend=backend):
                self.start_kind(ProcessThatForgets, version=version, backend=backend, steps=5)
                self.watch(["WNC on weights"])
                self.gradb.send("continue")
                self.gradb.expect('"type":"warning".*cannot evaluate watchpoint 1 itself: gradb does so')
                hit = json.loads(self.gradb.expect('"type":"hit".*"error":0').string)
                self.assertTrue(hit["node"].endswith(("frozen.weight", "zero.weight", "slow.weight")), hit)
                self.end()

    def test_no_step_is_missed_when_a_request_is_not_answered(self):
        for version, backend in (("1.9.0", "Ascend"), ("1.3.0", "Ascend"), ("1.5.0", "GPU"), ("2.0.0", "GPU")):
            with self.subTest(version=version, backend=backend):
                self.start_kind(ProcessThatForgets, "set evaluate local", "set stop-on-hit off", version=version,
                                backend=backend, steps=6)
                self.watch(["WCL abs_mean_update_ratio_gt=0.0001 on moving.weight"])
                self.gradb.run("continue", '"type":"finished"')
                seen = {(hit["step"], hit["error"]) for hit in self.hits()}
                last = 5 if (version, backend) == ("1.5.0", "GPU") else 6  # the last step has no stop at its end
                self.assertEqual(seen, {(1, 4)} | {(step, 0) for step in range(2, last + 1)})
                self.assertEqual([line for line in self.gradb.lines if '"type":"warning"' in line], [])
                self.end()

    def test_no_previous_values_and_remote_only(self):
        self.start_kind(ProcessThatForgets, "set evaluate remote", version="1.9.0", backend="Ascend", steps=4)
        self.watch(["WCL abs_mean_update_ratio_gt=0 on weights"])
        self.gradb.run("continue", '"type":"finished"')
        warnings = [line for line in self.gradb.lines if '"type":"warning"' in line]
        self.assertEqual(len(warnings), 1, warnings)
        self.assertIn("not set in this process", warnings[0])
        self.assertIn("set evaluate auto", warnings[0])

    def test_nan_bit_of_an_overflow_hit(self):
        def with_bits(hits):
            for hit in hits:
                hit.error_code |= 3
            return hits
        for condition in ("TO on all", "WO on weights", "GE on gradients"):
            self.start("set evaluate remote", version="1.9.0", backend="Ascend", steps=4)
            hits_of = self.trainer.hits_of
            self.trainer.hits_of = lambda *names, of=hits_of, **how: with_bits(of(*names, **how))
            self.watch([condition])
            stop = json.loads(self.gradb.run("continue", '"type":"(stopped|finished)"').string)
            self.assertEqual((stop["type"], stop.get("reason")), ("stopped", "hit"), condition)
            self.assertTrue(all(hit["error"] == 0 for hit in self.hits()))
            self.end()

    def test_a_hit_that_does_not_repeat_its_condition(self):
        def bare(hits):
            for hit in hits:
                hit.ClearField("watch_condition")
            return hits
        self.start("set evaluate remote", version="1.9.0", backend="Ascend", steps=2)
        hits_of = self.trainer.hits_of
        self.trainer.hits_of = lambda *names, **how: bare(hits_of(*names, **how))
        self.watch(["TL max_gt=0.9 on all"])
        self.gradb.run("step", '"reason":"hit"')
        self.assertEqual({(hit["condition"], hit.get("condition_id"), hit.get("abbreviation"))
                          for hit in self.hits()}, {(15, "tensor_too_large", "TL")})



if __name__ == "__main__":
    harness.main()
