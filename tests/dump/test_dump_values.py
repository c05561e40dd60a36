# SPDX-License-Identifier: GPL-3.0-or-later
"""dump and save of values that a training makes up: every type, no dimension, no element, constants, overlong names,
several slots, stacks; a partial step; and obstacles to writing."""
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import harness
import ms_writer as writer
import venvs

sys.path.insert(0, str(harness.SOURCE / "tests" / "e2e"))
from test_protocol import Trainer, pb  # noqa: E402

LONG = "Default/network/" + "layer_of_a_long_name/" * 14 + "MatMul-op1"
BF16 = np.array([[0x3F80, 0xC000, 0x7FC0], [0x7F80, 0x0001, 0x8000]], np.uint16)  # the bits
RANDOM = np.random.default_rng(6)
VALUES = {  # name: what its slots hold; numpy has no bfloat16
    "types/bool": [np.array([[True, False, True]])],
    "types/int8": [np.arange(-4, 4, dtype=np.int8)],
    "types/uint16": [np.arange(7, dtype=np.uint16).reshape(7, 1)],
    "types/int64": [np.array([-2**63, 2**63 - 1, 0])],
    "types/uint64": [np.array([2**64 - 1], np.uint64)],
    "types/float16": [np.array([1.5, -0.0, np.inf, np.nan, 6e-8], np.float16)],
    "types/bfloat16": [BF16],
    "types/float32": [RANDOM.standard_normal((2, 3, 4)).astype(np.float32)],
    "types/float64": [np.array([1e300, -1e-300, np.nan])],
    "types/complex64": [np.array([1 + 2j, -3j, complex(np.inf, 0)], np.complex64)],
    "types/complex128": [np.array([[1e200 + 2j]])],
    "types/scalar": [np.array(42, np.int32)],
    "types/empty": [np.zeros((3, 0, 2), np.float32)],
    "net/weight": [np.arange(6, dtype=np.float32).reshape(2, 3)],
    "net/const": [np.array([7, 8], np.int32)],
    "net/Split-op1": [np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32) * 2,
                      np.ones(2, np.float32)],
    "net/Add-op2": [np.full((2, 2), 0.5, np.float32)],
    LONG: [np.arange(5, dtype=np.float32)],
}
KINDS = {"net/weight": ("Parameter", pb.KIND_WEIGHT), "net/const": ("Const", pb.KIND_CONSTANT)}
FRAMES = [pb.Frame(file="/src/net.py", line=12, function="Net.forward", code="return self.a(x) / self.b(x)"),
          pb.Frame(file="/src/train.py", line=7, function="<module>"),
          pb.Frame(file="/src/no.py", line=3, code="x = 1")]


def dtype_of(name, array):
    return "bfloat16" if name == "types/bfloat16" else array.dtype.name


def as_dumped(name, array):
    """As numpy reads it: bfloat16 is widened."""
    return (array.astype(np.uint32) << 16).view(np.float32) if name == "types/bfloat16" else array


class MadeUp(Trainer):
    """Stops wherever it is asked to. older: names whose values are from the previous step; silent_at: the value that it
    never sends, and after which it is silent."""

    def __init__(self, port):
        super().__init__(port)
        self.names = dict(enumerate(VALUES, 1))
        self.step, self.older, self.silent_at, self.silent = 1, (), None, threading.Event()
        self.hello()
        if self.hear("welcome") is None:
            raise AssertionError("not welcome")
        self.say(graph=pb.GraphChunk(graph="made up", commit=True, nodes=list(map(self._node, self.names))))
        self.stand(step=1)
        threading.Thread(target=self._serve, daemon=True).start()

    def _node(self, number):
        name = self.names[number]
        kind, of = KINDS.get(name, (name.rsplit("/", 1)[-1].split("-")[0], pb.KIND_OTHER))
        node = pb.Node(id=number, name=name, type=kind, kind=of, order=0 if name in KINDS else number)
        node.outputs.extend(pb.Output(dtype=getattr(pb, dtype_of(name, array).upper()), shape=array.shape)
                            for array in VALUES[name])
        if name == "net/Add-op2":
            split, const = (next(n for n, other in self.names.items() if other == wanted)
                            for wanted in ("net/Split-op1", "net/const"))
            node.inputs.extend([pb.Input(node=split, slot=2), pb.Input(node=split),
                                pb.Input(node=split, slot=1), pb.Input(node=const, control=True)])
            node.frames.extend(FRAMES)
        return node

    def _serve(self):
        served = 0
        while (message := self.heard.get()) is not None:
            if message.WhichOneof("msg") == "run":
                self.step += 1
                self.stand(step=self.step, reason=pb.STOP_STEP)
            elif message.WhichOneof("msg") == "fetch":
                served += 1
                if self.silent_at and served >= self.silent_at:
                    self.silent.set()
                    return
                self._fetch(message.fetch)

    def _fetch(self, fetch):
        name = self.names[fetch.node]
        array = VALUES[name][fetch.slot]
        data = array.tobytes()
        self.say(tensor_begin=pb.TensorBegin(
            request=fetch.request, dtype=getattr(pb, dtype_of(name, array).upper()), shape=array.shape,
            bytes=len(data), step=self.step - (name in self.older)))
        self.say(tensor_data=pb.TensorData(request=fetch.request, data=data))


class Case(unittest.TestCase):
    def setUp(self):
        self.root = harness.folder_of(self)
        self.gradb = harness.Gradb("--json", "-nx", cwd=self.root)
        self.addCleanup(self.gradb.__exit__)
        self.gradb.send("info target")
        self.trainer = MadeUp(int(self.gradb.expect(r'"address":"[^"]*:(\d+)"').group(1)))
        self.addCleanup(self.trainer.close)
        self.record("stopped")

    def record(self, kind):
        return json.loads(self.gradb.expect(rf'"type":"{kind}"').string)

    def run_line(self, line, kind):
        self.gradb.send(line)
        return self.record(kind)

    def opened(self, directory, *lines):
        """The records of a gradb that opens it."""
        done = harness.run_gradb("--batch", "-nx", "--json", "open", directory, script=lines, cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        return harness.records(done)


class Values(Case):
    def test_every_type_is_numpys_and_comes_back(self):
        done = self.run_line("dump d --data full", "dump")
        count = sum(map(len, VALUES.values()))
        told = [done[key] for key in ("tensors", "missing", "earlier", "whole")]
        self.assertEqual(told, [count, 0, 0, True])
        step = self.root / "d" / "rank_0" / "net" / "0" / "1"
        mapped = dict(line.split(",") for line in (step / "mapping.csv").read_text().split())
        for name, arrays in VALUES.items():
            for slot, array in enumerate(arrays):
                folder = step.parent / "constants" if name == "net/const" else step
                tail = f"output.{slot}.DefaultFormat.{dtype_of(name, array)}.npy"
                whole = [short for short, full in mapped.items() if f".{writer.escape(name)}.0.0." in full]
                found = [folder / short for short in whole] if name == LONG else \
                    list(folder.glob(f"*.{writer.escape(name)}.0.0.*.{tail}"))
                with self.subTest(name=name, slot=slot):
                    self.assertEqual(len(found), 1)
                    read, expected = np.load(found[0]), as_dumped(name, array)
                    self.assertEqual((read.shape, read.dtype), (expected.shape, expected.dtype))
                    self.assertEqual(read.tobytes(), expected.tobytes())
        config = json.loads((self.root / "d" / "rank_0" / ".dump_metadata" / "data_dump.json").read_text())
        common = config["common_dump_settings"]  # what MindInsight needs to know
        self.assertEqual([common[key] for key in ("net_name", "iteration", "saved_data", "input_output")],
                         ["net", "1", "full", 2])
        live = self.run_line("info node net/Add-op2", "node")
        stack = self.run_line("backtrace net/Add-op2", "stack")
        self.run_line("step", "run")
        self.assertEqual(self.run_line("dump d", "dump")["tensors"], count)
        records = self.opened("d", "info node net/Add-op2", "backtrace net/Add-op2", "goto 2",
                              "save all again.npz")
        there = next(r for r in records if r["type"] == "node")
        self.assertEqual([e["slot"] for e in live["inputs"]], [2, 0, 1, 0])
        for key in ("inputs", "file", "line"):
            self.assertEqual(there[key], live[key], key)
        self.assertEqual(len(stack["frames"]), 3)
        self.assertIn(stack["frames"], [r["frames"] for r in records if r["type"] == "stack"])
        with np.load(self.root / "again.npz") as saved:
            for name, arrays in VALUES.items():
                for slot, array in enumerate(arrays):
                    key = name + (f":{slot}" if len(arrays) > 1 else "")
                    self.assertEqual(saved[key].tobytes(), as_dumped(name, array).tobytes(), key)

    def test_a_part_of_a_step(self):
        """Nothing computed in step 1 is taken for a value of step 2; weights stay."""
        behind = [name for name in VALUES if name not in KINDS][4:]
        self.trainer.older, self.trainer.step = (*behind, "net/weight"), 2
        self.trainer.say(running=pb.Running(step=2))
        self.trainer.stand(step=2, at_step_end=False, node=4, reason=pb.STOP_NODE)
        self.assertEqual(self.record("stopped")["step"], 2)
        done = self.run_line("dump d", "dump")
        left = sum(len(VALUES[name]) for name in behind)
        self.assertEqual((done["whole"], done["node"], done["tensors"], done["earlier"]),
                         (False, "types/int64", 6, left))
        rank = self.root / "d" / "rank_0"
        self.assertEqual((rank / ".dump_metadata" / "stood_at.csv").read_text(), "2,types/int64\n")
        self.assertFalse((rank / "execution_order" / "ms_global_execution_order_graph_0.csv").exists())
        self.assertEqual(len(list((rank / "net" / "0" / "2").glob("*.npy"))), 5)
        told = [r for r in self.opened("d", "info target") if r["type"] == "target"]
        self.assertIn("types/int64", json.dumps(told))
        self.assertIn("only up to", json.dumps(told))
        self.gradb.send("dump d")
        self.assertIn("a dump of step 2 already exists", self.record("error")["message"])

    def test_a_step_that_was_passed_is_told(self):
        """By a training that does not stop where it is asked to."""
        self.run_line("dump d on weights --steps 2-3|9", "dump")
        self.trainer.step = 3
        self.gradb.send("continue")
        self.gradb.expect("warning: step 2 and others are not dumped: the training ran past their end")
        self.assertEqual(self.record("run")["step"], 4)
        self.gradb.send("continue")
        self.assertEqual(self.record("run")["step"], 5)
        self.assertEqual(self.gradb.text().count("warning: step"), 1)
        self.assertEqual(self.run_line("info dump", "dump")["dumped_steps"], 0)

    def test_names_are_chosen(self):
        config = {"common_dump_settings": {
            "dump_mode": 1, "net_name": "n", "iteration": "all", "input_output": 2, "support_device": [0],
            "kernels": ["name-regex(types/u?int\\d+)", "name-regex((?:net/)?[A-Z]\\w+-op2)", "float6",
                        "nobody"]},
            "e2e_dump_settings": {"enable": True, "sample_mode": 1}}
        (self.root / "c.json").write_text(json.dumps(config))
        self.gradb.send("set dump-config c.json")
        self.gradb.send("dump d --steps 1")
        self.gradb.expect('warning: 1 entry of kernels chooses nothing; the first: "nobody"')
        done = self.record("dump")
        self.assertEqual(done["tensors"], 6)
        names = {path.name.split(".")[1] for path in (self.root / "d" / "rank_0" / "n" / "0" / "1").iterdir()}
        self.assertEqual(names, {"types_int8", "types_uint16", "types_int64", "types_uint64", "net_Add-op2",
                                 "types_float64"})
        for wrong, words in (("(a", "a ( without a )"), ("(?=a)", "(? must be followed by"),
                             ("(x{1,99}){1,99}", "too large")):
            config["common_dump_settings"]["kernels"] = [f"name-regex({wrong})"]
            (self.root / "c.json").write_text(json.dumps(config))
            self.gradb.send("check-config c.json")
            self.assertIn(words, self.record("check-config")["mistakes"][0]["text"])


PEER = """
import importlib.util, json, pathlib, sys
path = pathlib.Path(importlib.util.find_spec("mindspore").origin).parent / "train" / "anf_ir_pb2.py"
spec = importlib.util.spec_from_file_location("anf_ir_pb2", path)
pb = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pb)
model = pb.ModelProto.FromString(pathlib.Path(sys.argv[1]).read_bytes())
numbers = {node.name: node.full_name for node in model.graph.node}
nodes = [[n.full_name, n.op_type, [[numbers[i.name], i.type] for i in n.input]] for n in model.graph.node]
print(json.dumps([model.graph.name, nodes]))
"""


class Peer(Case):
    def test_mindspores_own_message_reads_the_graph(self):
        python = venvs.python("mindspore")
        if not python:
            self.skipTest("no build/mindspore-venv: ./dev test makes it where pip can install MindSpore")
        self.run_line("dump d on net/weight", "dump")
        path = self.root / "d" / "rank_0" / "graphs" / "ms_output_trace_code_graph_0.pb"
        done = subprocess.run([python, "-I", "-c", PEER, path], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        graph, nodes = json.loads(done.stdout)
        self.assertEqual((graph, {node[0] for node in nodes}), ("made up", set(VALUES)))
        split = "net/Split-op1"
        self.assertIn(["net/Add-op2", "Add", [[split, 0], [split, 0], [split, 0], ["net/const", 1]]], nodes)


class Saved(Case):
    def test_types_in_each_kind_of_file(self):
        single = {name: arrays[0] for name, arrays in VALUES.items() if len(arrays) == 1}
        done = self.run_line("save all all.npz", "saved")
        self.assertEqual((done["count"], done["missing"], done["renamed"]), (len(single) + 3, 0, 0))
        with np.load(self.root / "all.npz") as saved:
            for name, array in single.items():
                self.assertEqual((saved[name].dtype, saved[name].shape), (array.dtype, array.shape), name)
                self.assertEqual(saved[name].tobytes(), array.tobytes(), name)
            self.assertEqual(saved["net/Split-op1:1"].tolist(), [0, 2, 4, 6])
        self.gradb.send("save all all.safetensors")
        self.assertIn("types/complex128 is complex128, which safetensors", self.record("error")["message"])
        self.run_line("save all except types/complex128 all.safetensors", "saved")
        data = (self.root / "all.safetensors").read_bytes()
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        kinds = {"bfloat16": "BF16", "complex64": "C64", "bool": "BOOL", "float16": "F16", "uint64": "U64"}
        for name, array in single.items():
            if name == "types/complex128":
                self.assertNotIn(name, header)
                continue
            begin, end = header[name]["data_offsets"]
            self.assertEqual((header[name]["shape"], data[start + begin:start + end]),
                             (list(array.shape), array.tobytes()), name)
            kind = dtype_of(name, array)
            self.assertEqual(header[name]["dtype"], kinds.get(kind, header[name]["dtype"]))


class Files(unittest.TestCase):
    """save, of what was dumped."""

    def saved(self, folder, source, *lines):
        done = harness.run_gradb("--batch", "-nx", "--json", "open", source, script=lines, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return harness.records(done, "saved")

    def test_a_large_tensor_goes_by_pieces(self):
        with tempfile.TemporaryDirectory(prefix="gradb-save-") as name:
            folder = pathlib.Path(name).resolve()
            array = np.arange(7 * 1250001, dtype=np.float32).reshape(1250001, 7)  # not a multiple of the pieces
            np.savez(folder / "in.npz", large=array, small=np.ones(3))
            np.save(folder / "fortran.npy", np.asfortranarray(array[:, :7]))
            many, = self.saved(folder, folder / "in.npz", "save all out.npz")
            one, = self.saved(folder, folder / "fortran.npy", "save all one.safetensors")
            self.assertEqual((many["count"], one["shape"]), (2, [1250001, 7]))
            with np.load(folder / "out.npz") as saved:
                self.assertTrue(np.array_equal(saved["large"], array))
                self.assertEqual(saved["small"].tolist(), [1, 1, 1])
            data = (folder / "one.safetensors").read_bytes()
            self.assertEqual(data[8 + int.from_bytes(data[:8], "little"):], array.tobytes())

    def test_names_that_collide(self):
        """Two networks in a dump may have the same names."""
        with tempfile.TemporaryDirectory(prefix="gradb-save-") as name:
            folder = pathlib.Path(name).resolve()
            for graph in (0, 1):
                step = folder / "rank_0" / "net" / str(graph) / "0"
                step.mkdir(parents=True)
                np.save(step / f"Add.Add-op1.0.0.170000000000000{graph}.output.0.DefaultFormat.npy",
                        np.full(2, graph, np.float32))
            done, = self.saved(folder, folder / "rank_0", "save all out.npz")
            self.assertEqual((done["count"], done["renamed"]), (2, 0))
            with np.load(folder / "out.npz") as saved:
                self.assertEqual(sorted(saved.files), ["graph_0/Add-op1", "graph_1/Add-op1"])
                self.assertEqual([saved[key].tolist() for key in sorted(saved.files)], [[0, 0], [1, 1]])


class Hindrances(Case):
    def parts(self):
        return [path for path in self.root.rglob("*") if path.suffix == ".part"]

    def test_ctrl_c_while_it_is_written(self):
        self.trainer.silent_at = 6
        self.gradb.send("dump d")
        self.assertTrue(self.trainer.silent.wait(harness.DEADLINE))
        self.gradb.interrupt()
        self.assertIn("interrupted", self.record("error")["message"])
        self.assertEqual(self.parts(), [])
        step = self.root / "d" / "rank_0" / "net" / "0" / "1"
        self.assertEqual(len(list(step.iterdir())), 5)
        self.assertFalse((self.root / "d" / "rank_0" / "execution_order" /
                          "ms_global_execution_order_graph_0.csv").exists())
        opened = self.opened("d")
        self.assertEqual((opened[0]["type"], opened[0]["left_out"]), ("open", 0))

    def test_what_cannot_be_written(self):
        """A directory that is a file, and files that may not grow: root has no permission either."""
        (self.root / "file").write_text("")
        for line in ("dump file", "dump file --steps 5", "dump missing/d", "dump d on /a(/ --steps 5"):
            self.gradb.send(line)
            self.assertTrue(self.record("error")["message"], line)
        resource.prlimit(self.gradb.process.pid, resource.RLIMIT_FSIZE, (4096, 4096))
        VALUES["net/weight"][0] = np.zeros((64, 64), np.float32)
        self.addCleanup(VALUES.__setitem__, "net/weight", [VALUES["net/weight"][0][:2, :3]])
        self.gradb.send("dump full on types/*,net/weight")
        self.assertIn("File too large", self.record("error")["message"])
        self.gradb.send("save net/weight w.npy")
        self.assertIn("File too large", self.record("error")["message"])
        self.assertEqual((self.parts(), (self.root / "w.npy").exists()), ([], False))
        self.assertEqual(self.run_line("dump some on types/*", "dump")["tensors"], 13)


if __name__ == "__main__":
    harness.main()
