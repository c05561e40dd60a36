# SPDX-License-Identifier: GPL-3.0-or-later
"""MindSpore's synchronous dumps: one that MindSpore itself makes while it trains, and those of older releases from an
independent writer. Values bit for bit as in numpy, statistics to the printed digit, and the commands of a training on a
dump."""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import cann_writer
import harness
import ms_writer as writer
import numpy as np
import venvs

HERE = pathlib.Path(__file__).resolve().parent
rng = np.random.default_rng(7)


def gradb(path, lines, *options):
    """gradb's output for the commands; fails if one of them fails."""
    done = harness.run_gradb("--batch", "--nx", *options, "open", path, script=lines)
    if done.returncode not in (0, 4, 6):
        raise AssertionError(done.stdout[-3000:] + done.stderr[-3000:])
    return done.stdout


def records(path, lines, *wanted):
    """The records of those types."""
    found = harness.read_records(gradb(path, lines, "--json"))
    return [record for record in found if record["type"] in wanted]


def saved(path, tensors):
    """The values of (step, tensor), all in one run of gradb."""
    with tempfile.TemporaryDirectory(prefix="gradb-saved-") as folder:
        lines, here = [], None
        for i, (step, tensor) in enumerate(tensors):
            if step is not None and step != here:
                lines.append(f"goto {step}")
                here = step
            lines.append(f"save {tensor} {folder}/{i}.npy")
        gradb(path, lines)
        return [np.load(f"{folder}/{i}.npy") for i in range(len(tensors))]


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def lenet(root, *words):
    """Trains it in `root`, dumping everything; returns its output."""
    config = root / "data_dump.json"
    config.write_text(json.dumps({
        "common_dump_settings": {"dump_mode": 0, "path": str(root / "dump"), "net_name": "lenet",
                                 "iteration": "all", "saved_data": "tensor", "input_output": 0, "kernels": [],
                                 "support_device": list(range(8))},
        "e2e_dump_settings": {"enable": True, "trans_flag": True}}))
    env = dict(os.environ, MINDSPORE_DUMP_CONFIG=str(config), OMP_NUM_THREADS="1", GLOG_v="3")
    done = subprocess.run([venvs.python("mindspore"), HERE / "ms_lenet.py", *words], env=env, cwd=root, text=True,
                          capture_output=True, timeout=4 * harness.DEADLINE, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr[-3000:])
    return done.stdout


@unittest.skipUnless(venvs.python("mindspore"), "no build/mindspore-venv: ./dev test makes it where pip can install MindSpore")
class MindSporeItself(unittest.TestCase):
    """A LeNet that MindSpore trained and dumped."""

    @classmethod
    def setUpClass(cls):
        cls.root = harness.folder_of(cls)
        printed = lenet(cls.root, "3")
        cls.losses = [float(line) for line in printed.split()]
        cls.rank = cls.root / "dump" / "rank_0"
        order = cls.rank / "execution_order" / "ms_execution_order_graph_0.csv"
        cls.order = order.read_text().split("\n")[1:]

    def other_number(self, name):
        """The only operator of the execution order that differs only in its number."""
        found = [line for line in self.order if re.sub(r"\d+$", "", writer.escape(line)) == re.sub(r"\d+$", "", name)]
        return found[0] if len(found) == 1 else name

    def files(self):
        """(step, tensor as gradb calls it, file), by the execution order and the rules of the names alone."""
        names = {writer.escape(line): line for line in self.order if line}
        for layer in ("conv1", "fc1", "fc2"):
            for name in (f"{layer}.weight", f"{layer}.bias"):
                names.update({writer.escape(n): n for n in (name, "moments." + name)})
        for path in sorted(self.rank.glob("lenet/0/*/*.npy")):
            match = re.fullmatch(r"([^.]+)\.(.+)\.0\.0\.\d+\.(input|output)\.(\d+)\.DefaultFormat\.\w+\.npy", path.name)
            kind, name, io, slot = match.groups()
            name = names.get(name) or self.other_number(name)
            slot = "in" + slot if io == "input" else slot
            yield int(path.parent.name), f"{name}:{slot}", path

    def test_values_are_numpys(self):
        found = list(self.files())
        self.assertGreater(len(found), 300)
        self.assertEqual(len({step for step, _, _ in found}), 3)
        values = saved(self.rank.parent, [(step, tensor) for step, tensor, _ in found])
        for (step, tensor, path), value in zip(found, values, strict=True):
            with self.subTest(step=step, tensor=tensor):
                self.assertTrue(same_bits(value, np.load(path)))

    def test_graph_order_and_facts(self):
        [opened, target, nodes] = records(self.rank.parent, ["info target", "info nodes -a"], "open", "target", "nodes")
        self.assertEqual((opened["formats"], opened["ranks"], opened["steps"], opened["left_out"]),
                         (["mindspore-sync", "mindspore-ir"], 1, 3, 1))  # the graph as text is next to its .pb
        self.assertEqual((target["framework"], target["device"]), ("MindSpore", "CPU"))
        ran = [row["node"] for row in nodes["nodes"] if row.get("order") is not None]
        self.assertEqual(ran[:len(self.order) - 1], [line for line in self.order if line])
        [conv] = records(self.rank.parent, [f"info node {self.order[1]}"], "node")
        self.assertEqual(conv["node_type"], "BiasAdd")
        self.assertEqual(conv["inputs"][0]["node"], self.order[0])
        self.assertEqual([slot.get("slot") for slot in conv["outputs"]], [None, "in0", "in1", "in2"])
        known = {writer.escape(line) for line in self.order}
        others = {path.name.split(".")[1] for path in self.rank.glob("lenet/0/*/*-op*.npy")} - known
        self.assertLess(len(nodes["nodes"]), len(set(self.order)) + 60)
        for name in others:  # the dump and the graph number an operator differently
            [node] = records(self.rank.parent, [f"info node {self.other_number(name)}"], "node")
            self.assertIn(f"dumped as {name}", node["dump"])

    def test_the_loss_is_what_was_printed(self):
        [loss] = [line for line in self.order if "/_loss_fn-" in line and not line.startswith("Gradients")]
        for step, value in enumerate(saved(self.rank.parent, [(s, f"{loss}:0") for s in range(3)])):
            self.assertEqual(float(value), self.losses[step])

    def test_watching_goes_from_step_to_step(self):
        bias = np.stack([np.load(next(self.rank.glob(f"lenet/0/{s}/Parameter.fc2_bias.*"))) for s in range(3)])
        means = np.abs(bias.astype(np.float64)).mean(1)
        limit = sorted(means)[1] + 1e-9  # exceeded in one step
        text = gradb(self.rank.parent, [f"watch abs_mean > {limit!r} on fc2.bias", "goto 0", "recheck"])
        expected = int(np.argmax(means))
        if expected > 0:
            text = gradb(self.rank.parent, [f"watch abs_mean > {limit!r} on fc2.bias", "continue"])
            self.assertIn(f"Watchpoint 1, at the end of step {expected}.", text)
        [track] = records(self.rank.parent, ["info history fc2.bias:0 abs_mean -a"], "history")
        self.assertEqual([round(float(row["abs_mean"]), 12) for row in track["history"]], [round(m, 12) for m in means])

    def test_the_logarithm_threw_it_and_not_a_parameter(self):
        """Parameters are dumped after the update that made them NaN, also in the first step, 0."""
        for zero in (0, 1):
            with self.subTest(step=zero), tempfile.TemporaryDirectory(prefix="gradb-ms-") as folder:
                root = pathlib.Path(folder).resolve()
                lenet(root, "2", str(zero))
                [found, why] = records(root / "dump", [f"goto {zero}", "first-nonfinite", "why net.conv1.bias"],
                                       "first-nonfinite", "why")
                self.assertRegex(found["node"], r"/Log-op\d+$")
                self.assertEqual((found["kind"], found["step"]), ("throw-point", zero))
                self.assertIn(why["rule"], ("log-of-zero", "division-by-zero"), why)
                self.assertNotIn("before any operator", why["text"])


@unittest.skipUnless(venvs.python("mindspore"), "no build/mindspore-venv: ./dev test makes it where pip can install MindSpore")
class TwoGraphs(unittest.TestCase):
    """Model.train with an evaluation after each epoch: two graphs, with parameters of the same names and separate
    iterations."""

    @classmethod
    def setUpClass(cls):
        cls.root = harness.folder_of(cls)
        lenet(cls.root, "2", "eval")
        cls.rank = cls.root / "dump" / "rank_0"
        [graph] = records(cls.rank.parent, ["info graph"], "graph")
        cls.names = graph["subgraphs"]

    def weights(self, graph):
        """fc2.weight by the iterations of a graph, as numpy reads it."""
        return {int(path.parent.name): np.load(path)
                for path in self.rank.glob(f"lenet/{graph}/*/Parameter.fc2_weight.*.output.0.*.npy")}

    def test_both_are_reached_and_apart(self):
        self.assertEqual(len(self.names), 2)
        for number, name in enumerate(self.names):
            expected = self.weights(number)
            self.assertGreaterEqual(len(expected), 6)
            steps = sorted(expected)
            for value, step in zip(saved(self.rank.parent, [(step, f"{name}/fc2.weight") for step in steps]), steps,
                                   strict=True):
                with self.subTest(graph=name, step=step):
                    self.assertTrue(same_bits(value, expected[step]))
        both = self.weights(0).keys() & self.weights(1).keys()
        self.assertTrue(any(not np.array_equal(self.weights(0)[s], self.weights(1)[s]) for s in both))

    def test_a_name_alone_is_not_a_guess(self):
        done = harness.run_gradb("--batch", "--nx", "-ex", "goto 3", "-ex", "print fc2.weight[0,:4]", "open",
                                 self.rank.parent)
        first, second = self.names
        self.assertRegex(done.stderr, f"'fc2.weight' could be '{first}/.*fc2.weight' or '{second}/.*fc2.weight'")
        self.assertNotIn("$1 =", done.stdout)

    def test_iterations_are_of_their_graph(self):
        [steps] = records(self.rank.parent, ["info steps"], "steps")
        for number, name in enumerate(self.names):
            self.assertEqual([int(row["step"]) for row in steps["steps"] if name in row["graphs"].split(", ")],
                             sorted(int(path.name) for path in self.rank.glob(f"lenet/{number}/*")))
        text = gradb(self.rank.parent, ["info target"])
        for number, name in enumerate(self.names):
            self.assertIn(f"{name}: {len(self.weights(number))}, from {min(self.weights(number))}", text)

    def test_what_did_not_change_by_its_own_iterations(self):
        for number, name in enumerate(self.names):
            values = self.weights(number)
            steps = sorted(values)
            same = [b for a, b in zip(steps, steps[1:]) if np.allclose(values[b], values[a], rtol=1e-5, atol=1e-8)]
            hits = records(self.rank.parent, ["set stop-on-hit off", f"watch WNC on {name}/fc2.weight", "continue",
                                              "info hits -a"], "hits")[-1]["hits"]
            self.assertEqual([hit["step"] for hit in hits if not hit["error"]], same)
            self.assertEqual({hit["node"].partition("/")[0] for hit in hits}, {name} if same else set())

    def test_listings_and_the_tree(self):
        [nodes] = records(self.rank.parent, ["info nodes -a"], "nodes")
        names = [row["node"] for row in nodes["nodes"]]
        self.assertEqual(len(names), len(set(names)))
        [scopes] = records(self.rank.parent, ["info scopes -d 1"], "scopes")
        self.assertEqual([one["scope"] for one in scopes["tree"][0]["scopes"]], self.names)


class OlderReleases(unittest.TestCase):
    """Every generation of the layout, written from its description."""

    @classmethod
    def setUpClass(cls):
        cls.root = harness.folder_of(cls)

    def test_bin_of_1_0_to_1_2(self):
        root, expected = self.root / "bin", {}
        for device in (0, 3):
            for step in (1, 2):
                folder = root / "net" / f"device_{device}" / f"iteration_{step}"
                folder.mkdir(parents=True)
                for name, io, slot, dtype, label in (
                        ("Default--a_input_0--Add-op1", "input", 0, "float32", "kNumberTypeFloat32"),
                        ("Default--a_input_0--Add-op1", "output", 0, "float16", "Float16"),
                        ("conv1.weight", "output", 0, "int64", "kNumberTypeInt64"),
                        ("cst1", "output", 0, "bool", "Bool")):
                    shape = () if name == "cst1" else (2, 3)
                    value = np.array(rng.integers(-9, 9, shape)).astype(dtype)
                    dims = "_".join(map(str, shape)) or "0"
                    (folder / f"{name}_{io}_{slot}_shape_{dims}_{label}_DefaultFormat.bin").write_bytes(value.tobytes())
                    tensor = f"{name.replace('--', '/')}:{'in' if io == 'input' else ''}{slot}"
                    expected[device, step, tensor] = value
        fractal = root / "net/device_0/iteration_1/Default--Conv-op2_output_0_shape_1_1_2_2_16_Float16_NC1HWC0.bin"
        fractal.write_bytes(np.arange(64, dtype="<f2").tobytes())
        expected[0, 1, "Default/Conv-op2:0"] = np.arange(64, dtype="<f2").reshape(1, 1, 2, 2, 16)
        (root / "net/device_0/iteration_2/Default--Cut-op3_output_0_shape_4_Float32_DefaultFormat.bin").write_bytes(b"12")
        for rank, device in enumerate((0, 3)):
            wanted = [(step, tensor) for d, step, tensor in expected if d == device]
            part = root / "net" / f"device_{device}"
            for (step, tensor), value in zip(wanted, saved(part, wanted), strict=True):
                self.assertTrue(same_bits(value, expected[device, step, tensor]), (rank, step, tensor))
        text = gradb(root, ["info ranks", "info formats", "goto 2"])
        self.assertIn("2 ranks", text)
        self.assertEqual(text.count("mindspore-bin "), 2)
        done = harness.run_gradb("--batch", "--nx", "-ex", "goto 2", "-ex", "print Default/Cut-op3", "open", root)
        self.assertIn("has 2 bytes, which does not match the shape and type in its name", done.stderr)

    def tree(self, name, rank=0):
        return self.root / name / f"rank_{rank}"

    def test_npy_of_1_3_with_short_names(self):
        rank = self.tree("short")
        conv, add = "Default/network-Net/conv1-Conv2d/Conv2D-op12", "Default/network-Net/Add-op13"
        graph = writer.model(writer.graph("kernel_graph_0", [
            writer.node(1, ["x", "backbone.conv1.weight"], "Conv2D", conv, (2, 3), "      # In file /net/lenet.py(42)\n"),
            writer.node(2, ["1", "1"], "Add", add, (2, 3))], [("x", (2, 3)), ("backbone.conv1.weight", (3,))]))
        (rank / "graphs").mkdir(parents=True)
        (rank / "graphs" / "ms_output_trace_code_graph_0.pb").write_bytes(graph)
        (rank / "execution_order").mkdir()
        (rank / "execution_order" / "ms_execution_order_graph_0.csv").write_text(
            f"NodeExecutionOrder-FullNameWithScope\n{conv}\n{add}\n")
        expected = {}
        for step in (0, 7, 8):
            for file, tensor, shape in (
                    ("Conv2D.Conv2D-op12.0.0.{t}.output.0.DefaultFormat", f"{conv}:0", (2, 3)),
                    ("Conv2D.Conv2D-op12.0.0.{t}.input.1.DefaultFormat", f"{conv}:in1", (3,)),
                    ("Parameter.backbone.conv1.weight.0.0.{t}.output.0.DefaultFormat", "backbone.conv1.weight:0", (3,)),
                    ("Add.Add-op13.0.3.{t}.output.0.DefaultFormat", f"{add}:0", (2, 3))):
                value = rng.standard_normal(shape).astype("<f4")
                writer.npy(rank / "net/0" / str(step) / (file.format(t=1623124369613540 + step) + ".npy"), value)
                expected[step, tensor] = value
        values = saved(self.root / "short", list(expected))
        for value, (place, wanted) in zip(values, expected.items(), strict=True):
            self.assertTrue(same_bits(value, wanted), place)
        text = gradb(self.root / "short", ["info steps", f"bt {conv}", "step", f"print {add} prev", "reverse-step",
                                           f"info node {add}"])
        self.assertRegex(text, r"\* +0 +4\n +7 +4\n +8 +4\n")
        self.assertIn("lenet.py:42", text)
        self.assertIn("Stopped at the end of step 7.", text)
        self.assertIn("previous value (step 0)", text)
        self.assertIn(f"{conv}:0 (Conv2D)", text.replace(f"{conv} (Conv2D)", f"{conv}:0 (Conv2D)"))

    def test_numbers_that_differ_from_the_graphs(self):
        """A file belongs to the only operator of its type and scope; with two, it is ambiguous."""
        rank = self.tree("numbers")
        nodes = ["Default/a/Add-op3", "Default/b/Mul-op1", "Default/b/Mul-op2", "Default/c/Sub-op1", "Default/d/Div-op4"]
        (rank / "graphs").mkdir(parents=True)
        (rank / "graphs" / "ms_output_trace_code_graph_0.pb").write_bytes(writer.model(writer.graph("g", [
            writer.node(i, [], name.rsplit("/", 1)[1].split("-")[0], name, (1,)) for i, name in enumerate(nodes, 1)], [])))
        names = ["Add.Default_a_Add-op0", "Mul.Default_b_Mul-op0", "Sub.Default_c_Sub-op0", "Sub.Default_c_Sub-op1",
                 "Div.Default_d_Div-op7", "Div.Default_d_Div-op8"]
        for step in (0, 1):
            for i, name in enumerate(names):
                writer.npy(rank / "net/0" / str(step) / f"{name}.0.0.{17 + i}.output.0.DefaultFormat.Float32.npy",
                           np.full((1,), 10 * step + i, "<f4"))
        tensors = ["Default/a/Add-op3", "Default_b_Mul-op0", "Default_c_Sub-op0", "Default/c/Sub-op1", "Default_d_Div-op7",
                   "Default_d_Div-op8"]
        got = saved(self.root / "numbers", [(1, tensor + ":0") for tensor in tensors])
        self.assertEqual([float(value[0]) for value in got], [10, 11, 12, 13, 14, 15])
        text = gradb(self.root / "numbers", ["info formats", "info node Default/a/Add-op3", "print Default/a/Add-op3"])
        self.assertIn("operators joined: 1 by type and scope", text)
        self.assertEqual(text.count("dumped as Default_a_Add-op0: the only Add in that scope"), 2)

    def test_newer_names_types_and_long_names(self):
        rank = self.tree("newer")
        name = "Default/network-Net/a b.c/MatMul-op3"
        head = f"MatMul.{writer.escape(name)}.0.3.1700000000000000"
        bf16 = np.array([0x3F80, 0xC000, 0x7F80, 0x7FC0], "<u2")
        step = rank / "net/0/0"
        writer.npy(step / f"{head}.output.0.DefaultFormat.bfloat16.npy", bf16, "<E2")
        writer.npy(step / f"{head}.input.0.NC1HWC0.float16.npy", np.arange(6, dtype="<f2").reshape(2, 3))
        writer.npy(step / f"{head}.input.1.DefaultFormat.npy", np.arange(2, dtype="<c16"))
        writer.npy(step / "12345678901234567890.npy", np.arange(3, dtype="<i4"))
        (step / "mapping.csv").write_text(
            "12345678901234567890.npy,Long.Default_net-Net_Long-op9.0.0.1700000000000001.output.0.DefaultFormat.Int32.npy\n")
        writer.npy(step / "999.npy", np.arange(3, dtype="<i4"))
        writer.npy(rank / "net/0/constants/Parameter.data-1.0.0.1700000000000000.output.0.DefaultFormat.float32.npy",
                   np.full((2, 2), 0.5, "<f4"))
        (rank / "execution_order").mkdir(parents=True)
        (rank / "execution_order" / "ms_execution_order_graph_0.csv").write_text(
            f"NodeExecutionOrder-FullNameWithScope\n{name}\n")
        tensors = ["MatMul-op3:in0", "MatMul-op3:in1", "Default_net-Net_Long-op9:0", "data-1:0"]
        got = saved(self.root / "newer", [(None, tensor if " " not in tensor else f'"{tensor}"') for tensor in tensors])
        wanted = [np.arange(6, dtype="<f2").reshape(2, 3), np.arange(2, dtype="<c16"), np.arange(3, dtype="<i4"),
                  np.full((2, 2), 0.5, "<f4")]
        for tensor, a, b in zip(tensors, got, wanted, strict=True):
            self.assertTrue(same_bits(a, b), tensor)
        [stats] = records(self.root / "newer", ["stats MatMul-op3:0"], "tensor")
        self.assertEqual((stats["dtype"], stats["stats"]["pos_inf"], stats["stats"]["nan"], stats["stats"]["min"]),
                         ("bfloat16", 1, 1, -2))
        text = gradb(self.root / "newer", ["info formats"])
        self.assertIn("999.npy", text)
        self.assertIn("no mapping.csv with the original", text)

    def statistics(self, name, columns, comma):
        """A dump with only statistics, and numpy's values for it."""
        rank, arrays = self.tree(name), {}
        with np.errstate(invalid="ignore"):
            values = [rng.standard_normal((2, 3)).astype("f4"), np.zeros((3,), "f4"),
                      np.array([np.nan, np.inf, -np.inf, 1, -2, 0, np.nan], "f4"), np.array([np.nan, np.inf], "f4"),
                      rng.integers(-5, 5, (4,)).astype("i4"), np.array([-np.inf], "f4")]
        whole = columns is writer.WholeGraphStatistic.COLUMNS
        for step in (0, 1):
            table = writer.WholeGraphStatistic() if whole else writer.Statistic(columns, comma)
            for slot, value in enumerate(values):
                value = value + np.array(step).astype(value.dtype)
                table.add("Add", "Add-op1", 1700000000000000 + slot, "output", slot, value)
                arrays[step, slot] = value
            table.rows.append("Add,Add-op1,0,0,17,sideways,0,4,float32,\"(1)\"")
            table.rows.append(table.rows[0])  # written in several parts
            table.write(rank / (f"20240101000000/step_{step}" if whole else f"net/0/{step}"))
        return arrays

    KEYS = {"Max Value": "max", "Min Value": "min", "Avg Value": "mean", "NaN Count": "nan",
            "Negative Inf Count": "neg_inf", "Positive Inf Count": "pos_inf", "Zero Count": "zero",
            "Negative Zero Count": "negative", "Positive Zero Count": "positive", "L2Norm Value": "l2"}

    def same_figures(self, record, array, columns):
        """gradb's statistics equal the table's, and there is nothing for missing columns."""
        figures = writer.figures(array)
        for column, key in self.KEYS.items():
            value = record["stats"][key]
            nothing = key in ("max", "min", "mean", "l2") and not np.isfinite(array).any()
            if key in ("nan", "pos_inf", "neg_inf") and column not in columns and value is not None:
                self.assertIn(value, (0, 1), column)  # there are some, but their number is unknown
                self.assertFalse(np.isfinite(array).all(), column)
            elif column not in columns:
                self.assertIsNone(value, column)
            elif key == "l2" and figures[column] == "nan" and value is None:
                pass
            elif nothing:  # what MindSpore prints here depends on the release
                self.assertIn(value, (None, figures[column]), column)
            elif isinstance(value, str):
                self.assertEqual(value, figures[column], column)
            else:
                self.assertEqual(writer.number(value), writer.number(float(figures[column])), column)
        self.assertEqual((record["dtype"], record["shape"]), (array.dtype.name, list(array.shape)))

    def test_statistics_are_those_of_the_table(self):
        tables = {"r1_6": (writer.ALL[:10], False), "r2_2": ([*writer.ALL[:10], "MD5"], False),
                  "r2_3": (writer.ALL[::-1], True), "some": (["L2Norm Value", "Max Value", "Min Value"], True),
                  "counts": (["NaN Count", "Positive Inf Count", "Negative Inf Count"], True),
                  "device": (["Max Value", "Min Value", "Avg Value", "L2Norm Value"], True),
                  "whole": (writer.WholeGraphStatistic.COLUMNS, False)}
        for name, (columns, comma) in tables.items():
            arrays = self.statistics(name, columns, comma)
            lines = [line for step, slot in arrays for line in (f"goto {step}", f"stats Add-op1:{slot}")]
            found = records(self.root / name, lines, "tensor", "open")
            self.assertEqual((found[0]["formats"], found[0]["left_out"]), (["mindspore-sync"], 2))
            self.assertEqual(len(found), len(arrays) + 1)
            for ((step, slot), array), record in zip(arrays.items(), found[1:], strict=True):
                with self.subTest(table=name, step=step, slot=slot):
                    self.same_figures(record, array, columns)

    def test_files_and_their_rows(self):
        """Values next to statistics: gradb computes from the values; the digest is the row's."""
        rank, columns = self.tree("full"), [*writer.ALL[:10], "MD5"]
        values = [np.array([np.nan, 1, -np.inf, 0], "f4"), rng.standard_normal((2, 3)).astype("f4")]
        table = writer.Statistic(columns, True)
        for slot, value in enumerate(values):
            table.add("Add", "Add-op1", 1700000000000000 + slot, "output", slot, value)
            writer.npy(rank / "net/0/4" / f"Add.Add-op1.0.0.170000000000000{slot}.output.{slot}.DefaultFormat.npy", value)
        table.write(rank / "net/0/4")
        text = gradb(self.root / "full", ["print Add-op1:0", "print Add-op1:1"])
        found = records(self.root / "full", [f"stats Add-op1:{slot}" for slot in range(2)], "tensor")
        for value, record in zip(values, found, strict=True):
            known = {key: record["stats"][key] for key in ("nan", "neg_inf", "zero", "max", "min")}
            finite = value[np.isfinite(value)]
            self.assertEqual(known, {"nan": int(np.isnan(value).sum()), "neg_inf": int(np.isneginf(value).sum()),
                                     "zero": int((value == 0).sum()), "max": float(finite.max()),
                                     "min": float(finite.min())})
            self.assertIn("md5:" + hashlib.md5(value.tobytes()).hexdigest(), text)
        for value, got in zip(values, saved(self.root / "full", [(4, "Add-op1:0"), (4, "Add-op1:1")]), strict=True):
            self.assertTrue(same_bits(value, got))

    def test_figures_that_are_not_finite(self):
        """Without counts, a statistic that is not finite shows that such elements exist: a watchpoint fires."""
        rank, head = self.tree("guessed"), writer.HEADER + ",Max Value,Min Value,Avg Value,L2Norm Value\n"
        rows = ["inf,-2,null,inf", "nan,nan,nan,nan", "3,-inf,1,null", "-1.79769e+308,1.79769e+308,0,nan", "2,1,1.5,3"]
        table = "".join(f'Add,Add-op{i},0,0,{17 + i},output,0,8,float32,"(2)",{row},\n' for i, row in enumerate(rows))
        (rank / "net/0/3").mkdir(parents=True)
        (rank / "net/0/3/statistic.csv").write_text(head + table)
        found = records(self.root / "guessed", [f"stats Add-op{i}" for i in range(5)], "tensor")
        self.assertEqual([[r["stats"][key] for key in ("nan", "pos_inf", "neg_inf", "max")] for r in found],
                         [[None, 1, None, None], [1, None, None, None], [None, None, 1, 3], [1, None, None, None],
                          [None, None, None, 2]])
        self.assertEqual([r["stats"].get("at_least") for r in found], [True] * 4 + [None])
        text = gradb(self.root / "guessed", ["watch tensor_overflow", "scan", "print Add-op1"])
        for i in range(4):
            self.assertIn(f"  Add-op{i}:0\n", text)
        self.assertIn("Add-op4:0 could not be checked", text)
        self.assertIn("that there are NaN or infinite elements, but not how many", text)

    def test_records_beside_converted_files(self):
        """Overflows become events of the rank with the files next to them, and blame their operators."""
        overflow = json.dumps({"AI Core": {"task_id": 12, "stream_id": 3, "status": 32}})
        for name, where in (("async", "net/0/1"), ("ascend", "20240101000000/step_1")):
            step = self.tree(name) / where
            writer.npy(step / "Add.Default_net_Add-op1.11.3.17.output.0.ND.FLOAT.npy", np.arange(2, dtype="<f4"))
            writer.npy(step / "Mul.Default_net_Mul-op2.12.3.18.output.0.NCHW.BF16.npy", np.arange(3, dtype="<f4"))
            (step / "Raw.Default_net_Raw-op1.7.1.17.output.0.ND.FLOAT").write_bytes(bytes(8))
            (step / "Opdebug.Node_OpDebug.12.3.19.output.0.json").write_text(overflow)
            [opened] = records(self.root / name, [], "open")
            self.assertEqual((opened["ranks"], opened["formats"]), (1, ["mindspore-sync", "cann"]))
            text = gradb(self.root / name, ["info events", "info formats"])
            self.assertRegex(text, r"1 +overflow +Default_net_Mul-op2 +AI Core: floating-point overflow")
            self.assertNotIn("Skipped", text)
            self.assertNotIn("Opdebug", text)
            [value] = saved(self.root / name, [(1, "Default_net_Mul-op2:0")])
            self.assertTrue(same_bits(value, np.arange(3, dtype="<f4")))

    def test_many_dumps_and_what_is_none(self):
        """One directory with everything: all known formats are read, the rest is reported."""
        root = self.root / "mixed"
        name = "Add.Add-op1.0.0.17.output.0.DefaultFormat.npy"
        writer.npy(root / "sync/rank_1/net/0/2" / name, np.full((2,), 1, "<f4"))
        writer.npy(root / "loose/a.npy", np.full((2,), 2, "<f4"))
        old = root / "old/net/device_0/iteration_1"
        old.mkdir(parents=True)
        (old / "Default--Add-op1_output_0_shape_2_Float32_DefaultFormat.bin").write_bytes(bytes(8))
        value = cann_writer.Tensor(np.full((2,), 3, "<f4"), "FLOAT", "ND", (2,), (2,))
        for where in (root / "ge/20230101010101/4/model/1/7", root / "extra-info/data-dump/3"):
            where.mkdir(parents=True)
        (root / "ge/20230101010101/4/model/1/7/Add.conv.5.1.1700000000000000").write_bytes(
            cann_writer.container([], [value]))
        (root / "extra-info/data-dump/3/exception_info.5.1.1700000000000000").write_bytes(
            cann_writer.container([value], [], op_name="net/bad", dfx="kernel"))
        (root / "link").symlink_to(root)
        (root / "gone").symlink_to(root / "nowhere")
        os.mkfifo(root / "sync/rank_1/net/0/2/Add.Add-op2.0.0.17.output.0.DefaultFormat.npy")
        deep = root.joinpath("deep", *["d"] * 14)
        deep.mkdir(parents=True)
        writer.npy(deep / "z.npy", np.zeros((1,), "<f4"))
        [opened, *tables] = records(root, ["info formats"], "open", "info_formats")
        found = {key: value for table in tables for key, value in table.items()}
        where = {(row["name"], str(pathlib.Path(row["path"]).relative_to(root))) for row in found["formats"]}
        self.assertEqual(where, {("mindspore-sync", "sync/rank_1/net"), ("mindspore-bin", "old/net/device_0"),
                                 ("cann", "ge"), ("cann", "extra-info"), ("tensor-files", "loose")})
        self.assertEqual([found[key] for key in ("links", "others", "too_deep")], [2, 1, 1])
        self.assertEqual(opened["ranks"], 5)

    def test_the_previous_step_is_that_of_the_graph(self):
        """Two graphs with gaps: a step that one did not run does not count for it."""
        root = self.root / "gaps"
        values = {0: {0: 1, 1: 2, 2: 2, 3: 4}, 1: {0: 5, 2: 6, 3: 6}}
        for graph, steps in values.items():
            for step, value in steps.items():
                folder = root / "rank_0" / "net" / str(graph) / str(step)
                folder.mkdir(parents=True)
                writer.npy(folder / f"Add.Add-op1.0.0.16000000000{step}000{graph}.output.0.DefaultFormat.npy",
                           np.full(3, value, "<f4"))
        found = records(root, ["goto 2", "print graph_0/Add-op1 prev", "print graph_1/Add-op1 prev", "goto 3",
                               "print graph_1/Add-op1 prev"], "tensor")
        self.assertEqual([(one["step"], one["values"]) for one in found],
                         [(1, [2] * 3), (0, [5] * 3), (2, [6] * 3)])
        hits = records(root, ["set stop-on-hit off", "watch WNC on Add-op1*", "continue", "info hits -a"],
                       "hits")[-1]["hits"]
        self.assertEqual([(hit["step"], hit["node"]) for hit in hits if not hit["error"]],
                         [(2, "graph_0/Add-op1"), (3, "graph_1/Add-op1")])
        done = harness.run_gradb("--batch", "--nx", "-ex", "goto 1", "-ex", "print graph_1/Add-op1", "open", root)
        self.assertRegex(done.stderr, "graph_1/Add-op1:0 was not dumped in step 1: the nearest step that has it is")

    def test_two_graphs_of_one_name(self):
        """Both are there, the second with the number of its files."""
        root = self.root / "twins"
        rank = root / "rank_0"
        (rank / "graphs").mkdir(parents=True)
        for graph in (0, 1):
            (rank / "graphs" / f"ms_output_trace_code_graph_{graph}.pb").write_bytes(writer.model(writer.graph(
                "kernel_graph", [writer.node(1, ["x"], "Add", "Default/Add-op1", (3,)),
                                 writer.node(2, ["x"], "Log", f"Default/Log-op{graph + 2}", (3,))], [("x", (3,))])))
            folder = rank / "net" / str(graph) / "1"
            folder.mkdir(parents=True)
            writer.npy(folder / f"Add.Default_Add-op1.0.0.160000000000000{graph}.output.0.DefaultFormat.npy",
                       np.full(3, graph + 5, "<f4"))
        found = records(rank, ["print kernel_graph/Default/Add-op1", "print graph_1/Default/Add-op1"], "tensor")
        self.assertEqual([one["values"] for one in found], [[5] * 3, [6] * 3])
        [found] = records(rank, ["info nodes"], "nodes")
        self.assertLess({"Default/Log-op2", "Default/Log-op3"}, {row["node"] for row in found["nodes"]})

    def test_parameters_match_by_their_own_name(self):
        """Not by the scope in which a graph shows them; and at the step at which the session is stopped."""
        root = self.root / "wire"
        rank = root / "rank_0"
        (rank / "graphs").mkdir(parents=True)
        (rank / "graphs" / "ms_output_trace_code_graph_0.pb").write_bytes(writer.model(writer.graph(
            "kernel_graph_0", [writer.node(1, ["x", "fc1.weight", "fc2.bias"], "MatMul", "Default/net-Net/MatMul-op1",
                                           (3,))], [("x", (3,)), ("fc1.weight", (3,)), ("fc2.bias", (3,))])))
        for step in (1, 2, 3):
            folder = rank / "net" / "0" / str(step)
            folder.mkdir(parents=True)
            for name, value in (("fc1.weight", step), ("fc2.bias", -step)):
                writer.npy(folder / f"Parameter.{name}.0.0.160000000000000{step}.output.0.DefaultFormat.npy",
                           np.full(3, value, "<f4"))
        np.savez(root / "state.npz", **{"fc1.weight": np.full(3, 2, "f4"), "fc2.bias": np.full(3, -2, "f4")})
        [found] = records(rank, ["goto 2", f"compare @1 {root}/state.npz"], "compare")
        self.assertEqual([(row["a"], row["b"], row["how"], row["step"], row["verdict"]) for row in found["pairs"]],
                         [(f"Default/net-Net/{name}:0", name, "name", 2, "SAME") for name in ("fc1.weight", "fc2.bias")])
        [found] = records(rank, ["goto 2", f"compare {root}/state.npz @1"], "compare")
        self.assertEqual({row["verdict"] for row in found["pairs"]}, {"SAME"})

    def test_globs_are_printed(self):
        root = self.root / "glob"
        folder = root / "rank_0" / "net" / "0" / "1"
        folder.mkdir(parents=True)
        for number in (1, 2):
            writer.npy(folder / f"Add.Add-op{number}.0.0.160000000000000{number}.output.0.DefaultFormat.npy",
                       np.full(3, number, "<f4"))
        [found] = records(root, ["print Add-op*"], "tensors")
        self.assertEqual([(one["node"], one["stats"]["max"]) for one in found["tensors"]],
                         [("Add-op1", 1), ("Add-op2", 2)])
        self.assertIn("Add-op2:0\n  float32 (3,)", gradb(root, ["print type:Add"]))
        done = harness.run_gradb("--batch", "--nx", "-ex", "print *nothing*", "open", root)
        self.assertIn("nothing matches *nothing*", done.stderr)

    def test_statistics_alone(self):
        self.statistics("alone", writer.ALL, False)
        text = gradb(self.root / "alone", ["print Add-op1:0", "watch tensor_overflow on Add-op1", "continue",
                                           "info history Add-op1:4 max mean"])
        self.assertIn("no values: the values of Add-op1:0 were not dumped: the dump has only its statistics", text)
        self.assertIn("Watchpoint 1, at the end of step 1.", text)
        done = harness.run_gradb("--batch", "--nx", "-ex", "x/4 Add-op1:0", "open", self.root / "alone")
        self.assertIn("the values of Add-op1:0 were not dumped", done.stderr)
        table = next((self.root / "alone").rglob("statistic.csv"))
        done = harness.run_gradb("--batch", "--nx", "open", table)
        self.assertIn("is a table: open its dump's directory instead", done.stderr)

    def test_ranks_go_together(self):
        for rank in (0, 1):
            for step in (0, 10, 20):
                name = f"Add.Add-op1.0.0.{1700000000000000 + step}.output.0.DefaultFormat.npy"
                value = np.full((3,), rank * 100 + step, "<f4")
                if not (rank == 1 and step == 10):
                    writer.npy(self.tree("ranks", rank) / "net/0" / str(step) / name, value)
        text = gradb(self.root / "ranks", ["goto 20", "rank 1", "print Add-op1", "goto 0", "rank 0", "print Add-op1",
                                           "watch max > 105 on Add-op1", "continue", "info ranks"])
        self.assertRegex(text, r"\[120. 120. 120.\]")
        self.assertRegex(text, r"\[0. 0. 0.\]")
        self.assertRegex(text, r"\[rank 1\] Watchpoint 1, at the end of step 20\.")
        done = harness.run_gradb("--batch", "--nx", "-ex", "goto 5", "open", self.root / "ranks")
        self.assertIn("step 5 is not in the dump: the nearest are 0 and 10 (info steps)", done.stderr)

    def test_broken_files_are_told(self):
        rank = self.tree("broken")
        step = rank / "net/0/0"
        writer.npy(step / "Add.Add-op1.0.0.17.output.0.DefaultFormat.npy", np.arange(4, dtype="<f4"))
        (step / "Add.Add-op2.0.0.17.output.0.DefaultFormat.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{")
        (step / "notes.npy").write_bytes(b"")
        (step / "Add.Default_net-Net_Add-op1.json").write_text("{}")
        (step / "statistic.csv").write_text(writer.HEADER + ",Max Value\nAdd,Add-op1,0,\"0")
        (rank / "graphs").mkdir(parents=True)
        (rank / "graphs" / "ms_output_trace_code_graph_0.pb").write_bytes(b"\x22\xff\xff\xff\xff\x0f")
        (rank / ".dump_metadata").mkdir()
        (rank / ".dump_metadata" / "config.json").write_text("{\"ms_version\": ")
        text = gradb(self.root / "broken", ["print Add-op1", "info formats"])
        self.assertIn("[0. 1. 2. 3.]", text)
        for what in ("notes.npy", "a quote is not closed", "is not a ModelProto or GraphProto", "config.json",
                     "kernel arguments, not a tensor"):
            self.assertIn(what, text)
        done = harness.run_gradb("--batch", "--nx", "-ex", "print Add-op2", "open", self.root / "broken")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Add-op2", done.stderr)


if __name__ == "__main__":
    harness.main()
