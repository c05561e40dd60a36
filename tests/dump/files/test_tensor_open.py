# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories of tensor files as sessions: trees of parameters, steps and ranks from names; save writes them back."""
import json
import pathlib
import pickle
import re
import struct
import tempfile
import unittest

import dumpvenv
import harness
import numpy as np
from dumptool import gradb
from torch_writer import single, tensor, torch_zip
from wire import varint

rng = np.random.default_rng(3)


def records(path, *commands):
    return harness.read_records(gradb(path, *commands, options=["--json"]))


class Opening(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = harness.folder_of(cls)

    def put(self, name, array):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)

    def test_steps_and_ranks_of_a_tree(self):
        for rank in (0, 1):
            for step in (3, 10):
                self.put(f"tree/rank_{rank}/step_{step}/net.conv1.npy", np.full((2, 3), rank * 100 + step, "f4"))
                self.put(f"tree/rank_{rank}/step_{step}/loss.npy", np.float64(step))
        (self.dir / "tree" / "rank_0" / "notes.txt").write_text("no tensor")
        (self.dir / "tree" / "rank_0" / "cut.npy").write_bytes(b"\x93NUMPY\1\0")
        text = gradb(self.dir / "tree", "print net.conv1", "step", "print net/conv1[0]", "rank 1", "print loss",
                     "info formats")
        self.assertRegex(text, r"2 ranks, 2 nodes, 2 steps from 3 to 10")
        self.assertRegex(text, r"(?s)\[\[3\. 3\. 3\.\].*\[10\. 10\. 10\.\].*rank 1 of 2.*float64 \(\)\n10\.0")
        self.assertRegex(text, r"tensor-files +9 .*file names end as those of tensors")
        self.assertRegex(text, r"cut\.npy.*no \.npy header")

    def test_files_of_graphs_on_ascend(self):
        """Files of msprobe's graphs: one per tensor, named after the call; configurations are reported."""
        folder = self.dir / "aclgraph" / "step2" / "rank1" / "tensor_data"
        folder.mkdir(parents=True)
        for name in ("Torch.add.0.input.0.pt", "Torch.add.0.output.pt"):
            (folder / name).write_bytes(torch_zip(single(tensor())))
        (folder / "kernel_config_77.json").write_text("{}")
        text = gradb(self.dir / "aclgraph", "info nodes", "info formats")
        self.assertRegex(text, r"2 nodes, step 2\.")
        self.assertRegex(text, r"tensor_data/Torch/add/0/input/0\n.*tensor_data/Torch/add/0/output\n")
        self.assertRegex(text, r"kernel_config_77\.json.*a dump configuration")

    def test_checkpoints_with_steps_in_their_names(self):
        for step in (100, 200):
            np.savez(self.dir / f"model_step_{step}.npz", **{"layer.0.weight": np.full((2, 2), step, "f4"),
                                                             "a.b": np.ones(1), "a/b": np.zeros(1)})
        text = gradb(self.dir / "model_step_100.npz", "print layer.0.weight", "info node layer/0/weight")
        self.assertRegex(text, r"3 nodes, step 100")
        self.assertRegex(text, r"\[\[100\. +100\.\]")
        only = self.dir / "only"
        only.mkdir()
        for path in self.dir.glob("model_step_*.npz"):
            path.rename(only / path.name)
        text = gradb(only, "tensors", "step", "print layer.0.weight[0]")
        self.assertRegex(text, r"3 nodes, 2 steps from 100 to 200")
        self.assertRegex(text, r"(?s)layer/0/weight:0.*a/b:0.*a/b#2:0.*\[200\. 200\.\]")

    def test_many_on_the_command_line(self):
        """`gradb open` takes the same paths and options as the command."""
        self.put("one.npy", np.arange(3, dtype="f4"))
        self.put("with space.npy", np.arange(4, dtype="f4"))
        (self.dir / "cut off.npy").write_bytes((self.dir / "one.npy").read_bytes()[:-4])
        paths = [str(self.dir / "one.npy"), str(self.dir / "with space.npy"), "--partial", str(self.dir / "cut off.npy")]
        done = harness.run_gradb("-q", "-batch", "-ex", "session 1", "-ex", "print one", "open", *paths)
        self.assertRegex(done.stdout, r"(?s)Session 1, one\.npy.*Session 2, with space\.npy.*Session 3, cut off\.npy.*"
                                      r"\[0\. 1\. 2\.\]")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = harness.run_gradb("-q", "-batch", "--json", "open", *paths)
        opened = harness.records(done, "open")[0]
        self.assertEqual([(one["session"], one["program"]) for one in opened["opened"]],
                         [(1, "one.npy"), (2, "with space.npy"), (3, "cut off.npy")])

    def test_what_was_cut_short(self):
        self.put("short.npy", np.arange(12, dtype="f4").reshape(4, 3))
        path = self.dir / "short.npy"
        path.write_bytes(path.read_bytes()[:-16])
        self.assertRegex(gradb(path), "truncated: 48 bytes of elements expected, 32 found")
        self.assertRegex(gradb(f"{path} --partial", "print short"), r"float32 \(2, 3\)(?s:.*)the file is truncated")

    def test_pickles_without_tensors(self):
        """Their values are shown; signs of an attack are reported at once."""
        (self.dir / "values.pkl").write_bytes(pickle.dumps({"lr": 0.125, "opt": {"name": "Adam", "betas": (0.9, 0.5)}}))
        text = gradb(self.dir / "values.pkl", "info target")
        self.assertRegex(text, r"(?s)0 nodes.*lr +0\.125\n.*opt\.name +'Adam'.*opt\.betas +\(0\.9, 0\.5\)")
        self.assertNotIn("SUSPICIOUS", text)
        evil = self.dir / "evil.pkl"
        evil.write_bytes(b"\x80\x02cos\nsystem\nX\x02\0\0\0ls\x85R.")
        self.assertRegex(gradb(evil), rf"(?m)^{evil}: SUSPICIOUS: os\.system at byte 2 of the pickle: .* not run$")
        alarm, = records(evil)[0]["alarms"]
        self.assertIn("SUSPICIOUS: os.system", alarm)

    def test_save_is_what_was_opened(self):
        arrays = {f"block.{i}.weight": rng.standard_normal((40, 30)).astype(dtype)
                  for i, dtype in enumerate(["f2", "f4", "f8", "i8", "u1", "?"])}
        arrays["scalar"] = np.float32(2.5)
        arrays["empty"] = np.zeros((0, 4), "i4")
        arrays["names/of äny \"kind\""] = np.arange(3)
        np.savez(self.dir / "in.npz", **arrays)
        one, many, safe = (self.dir / name for name in ("cut.npy", "many.npz", "many.safetensors"))
        text = gradb(self.dir / "in.npz", f"save all {many}", f"save all {safe}", f"save block.1.weight[3, ::2] {one}")
        self.assertRegex(text, rf"Saved 9 tensors, [0-9.]+ KiB, to {many}")
        self.assertEqual(np.load(one).tolist(), arrays["block.1.weight"][3, ::2].tolist())
        saved = np.load(many)
        self.assertEqual(set(saved.files), set(arrays))
        for name, array in arrays.items():
            self.assertEqual((saved[name].dtype, saved[name].shape), (array.dtype, array.shape), name)
            self.assertEqual(saved[name].tobytes(), array.tobytes(), name)
        head = safe.read_bytes()
        size = int.from_bytes(head[:8], "little")
        header = json.loads(head[8:8 + size])
        self.assertEqual(set(header), set(arrays))
        for name, array in arrays.items():
            begin, end = header[name]["data_offsets"]
            self.assertEqual(head[8 + size + begin:8 + size + end], array.tobytes(), name)
            self.assertEqual((8 + size + begin) % max(array.itemsize, 1), 0, name)

    def test_their_libraries_read_what_is_saved(self):
        why = dumpvenv.missing("numpy", "safetensors", "ml_dtypes")
        if why:
            self.skipTest(why)
        dumpvenv.write("write_tensors.py", self.dir)
        out = self.dir / "again.safetensors"
        text = gradb(self.dir / "all.safetensors", f"save all {out}", f"save all {self.dir / 'again.npz'}")
        self.assertRegex(text, r"(?s)Saved 43 tensors.*Saved 43 tensors.*bfloat16 as its bits")
        dumpvenv.write("compare_tensors.py", self.dir / "all.safetensors", out)

    def test_refusals_leave_what_was_there(self):
        np.savez(self.dir / "complex.npz", a=np.ones(2, "c16"), b=np.ones(2))
        target = self.dir / "kept.safetensors"
        target.write_text("before")
        for command, pattern in [(f"save all {target}", "a is complex128, which safetensors"),
                                 (f"save all {self.dir / 'x.npy'}", "2 tensors do not fit into one .npy"),
                                 (f"save nothing {target}", "there is no node 'nothing'"),
                                 (f"save a b diff {target}", "only the current values")]:
            self.assertRegex(gradb(self.dir / "complex.npz", command), pattern)
        self.assertEqual(target.read_text(), "before")
        self.assertFalse((self.dir / "x.npy").exists())


GB = 10**9


def field(number, data):
    """A message or string of a .ckpt: the bytes before it, where `data` is the number of bytes that follow."""
    return bytes([number << 3 | 2]) + (data if isinstance(data, bytes) else varint(data))


def huge_npy(out):
    np.lib.format.write_array_header_1_0(out, {"descr": "<f4", "fortran_order": False, "shape": (250000, 100000)})
    return [(out.tell() + 100 * GB, b"")]


def huge_safetensors(out):
    head = json.dumps({f"w{i}": {"dtype": "F32", "shape": [100000, 2500], "data_offsets": [i * GB, (i + 1) * GB]}
                       for i in range(100)}).encode()
    out.write(struct.pack("<Q", len(head)) + head)
    return [(out.tell() + 100 * GB, b"")]


def huge_torch(out):
    """As torch.save writes it: 64-bit sizes, in the directory and after the values."""
    program = (b"\x80\x02}X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n"
               b"X\x01\0\0\x000X\x03\0\0\0cpu\x8a\x08" + struct.pack("<q", 25 * GB) +
               b"tQK\0J" + struct.pack("<i", 250000) + b"J" + struct.pack("<i", 100000) + b"\x86J" +
               struct.pack("<i", 100000) + b"K\x01\x86\x89ccollections\nOrderedDict\n)RtRs.")
    central, at, pieces = b"", 0, []
    for name, data, size in ((b"big/data.pkl", program, len(program)), (b"big/data/0", b"", 100 * GB)):
        extra = struct.pack("<HHQQ", 1, 16, size, size)
        local = struct.pack("<IHHHHHIIIHH", 0x04034b50, 45, 0, 0, 0, 0, 0, 0xffffffff, 0xffffffff, len(name), len(extra))
        central += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 45, 45, 0, 0, 0, 0, 0, 0xffffffff, 0xffffffff, len(name),
                               28, 0, 0, 0, 0, 0xffffffff) + name + struct.pack("<HHQQQ", 1, 24, size, size, at)
        pieces.append((at, local + name + extra + data))
        at += len(local + name + extra) + size
    end = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, 2, 2, len(central), at)
    end += struct.pack("<IIQI", 0x07064b50, 0, at + len(central), 1)
    end += struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 2, 2, len(central), 0xffffffff, 0)
    return [*pieces, (at, central + end)]


def huge_ckpt(out):
    """One parameter in records of 512 MiB."""
    at, left, pieces = 0, 100 * GB, []
    while left:
        size = min(left, 512 << 20)
        tensor = b"".join(b"\x08" + varint(dim) for dim in (250000, 100000)) + field(2, 7) + b"Float32" + field(3, size)
        value = field(1, 1) + b"w" + field(2, len(tensor) + size) + tensor
        head = field(1, len(value) + size) + value
        pieces.append((at, head))
        at += len(head) + size
        left -= size
    return [*pieces, (at, b"")]


class Profiles(unittest.TestCase):
    """Profiler output that gradb cannot read: it says in one line what it is."""

    def test_told_for_what_they_are(self):
        with tempfile.TemporaryDirectory(prefix="gradb-open-") as folder:
            root = pathlib.Path(folder)
            raw = root / "host_4711_20260102030405_ascend_ms"
            (raw / "FRAMEWORK").mkdir(parents=True)
            (raw / "profiler_info_0.json").write_text("{}")
            (root / "log").mkdir()
            (root / "log" / "report.nsys-rep").write_bytes(b"data")
            for path in (raw, f"{raw}/", root / "log", root / "log" / "report.nsys-rep"):
                text = gradb(path)
                self.assertEqual(len(text.splitlines()), 1, text)
                self.assertRegex(text, "error: .* is profiler output without .* let the profiler analyse", path)


class Huge(unittest.TestCase):
    """Checkpoints of 100 GB, nearly all of it holes: opening reads only headers, and a slice reads only itself."""

    @classmethod
    def setUpClass(cls):
        cls.dir = harness.folder_of(cls)

    def make(self, name, write):
        """write(file) yields pieces and their offsets; the last one ends the file."""
        path = self.dir / name
        with path.open("wb") as out:
            try:
                pieces = write(out)
                for at, data in pieces:
                    out.seek(at)
                    out.write(data)
                out.truncate(pieces[-1][0] + len(pieces[-1][1]))
            except OSError as error:
                self.skipTest(f"no file of 100 GB with holes can be made here: {error}")
        return path

    def proc(self, gradb, file, key):
        text = pathlib.Path(f"/proc/{gradb.process.pid}/{file}").read_text()
        return int(re.search(rf"^{key}:\s+(\d+)", text, re.MULTILINE)[1])

    def test_opens_by_its_head(self):
        for name, write, tensor in (("huge.npy", huge_npy, "huge"), ("huge.safetensors", huge_safetensors, "w73"),
                                    ("huge.pt", huge_torch, "w"), ("huge.ckpt", huge_ckpt, "w")):
            with self.subTest(name), harness.Gradb("-nx", listen=None, command=()) as gradb:
                path, last = self.make(name, write), "99999, 2490:" if "safe" in name else "249999, 99990:"
                before, memory = self.proc(gradb, "io", "rchar"), self.proc(gradb, "status", "VmHWM")
                gradb.run(f"open {path}", r"100 nodes|1 node\b")
                gradb.run(f"print {tensor}[{last}]", r"\[0\. 0\. 0\.")
                self.assertLess(self.proc(gradb, "io", "rchar") - before, 4 << 20)
                self.assertLess(self.proc(gradb, "status", "VmHWM") - memory, 64 << 10)

    def test_interrupted(self):
        """C-c while the statistics of the whole are computed."""
        path = self.make("whole.npy", huge_npy)
        with harness.Gradb("-nx", listen=None, command=()) as gradb:
            gradb.run(f"open {path}", "1 node")
            before = self.proc(gradb, "io", "rchar")
            for command in ("print whole", "tensor whole"):
                gradb.send(command)
                harness.wait_for("some of it", lambda at=before: self.proc(gradb, "io", "rchar") > at + (8 << 20))
                gradb.interrupt()
                gradb.expect(r"interrupted after .* of 93\.1 GiB")
                gradb.run("info steps", "belong to the whole run")
                before = self.proc(gradb, "io", "rchar")


if __name__ == "__main__":
    harness.main()
