# SPDX-License-Identifier: GPL-3.0-or-later
"""CANN's dumps: containers of every type and layout bit for bit, trees of all front ends, overflow records, compiled
graphs, and conversion like the vendor's converter. The files are made by cann_writer."""
import json
import struct
import unittest
import uuid

import cann_writer as writer
import harness
import numpy as np
from cann_writer import Tensor

rng = np.random.default_rng(11)
STAMP = 1700000000000000

# Type in the dump, numpy's type of its bytes, numpy's type of the result.
PLAIN = [("FLOAT", "<f4"), ("FLOAT16", "<f2"), ("INT8", "i1"), ("UINT8", "u1"), ("INT16", "<i2"),
         ("UINT16", "<u2"), ("INT32", "<i4"), ("INT64", "<i8"), ("UINT32", "<u4"), ("UINT64", "<u8"), ("BOOL", "?"),
         ("DOUBLE", "<f8"), ("COMPLEX64", "<c8"), ("COMPLEX128", "<c16"), ("QINT8", "i1"), ("QINT16", "<i2"),
         ("QINT32", "<i4"), ("QUINT8", "u1"), ("QUINT16", "<u2")]


def any_bits(dtype, shape):
    """Arbitrary bits of the type."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def small_float(bits, exponents, mantissas, bias, special):
    """A byte of sign, exponent and mantissa; special: other meanings of the byte without sign."""
    out = []
    for byte in bits:
        sign, rest = (-1.0 if byte >> (exponents + mantissas) & 1 else 1.0), byte & ((1 << exponents + mantissas) - 1)
        exponent, mantissa = rest >> mantissas, rest & ((1 << mantissas) - 1)
        if rest in special:
            out.append(sign * special[rest])
        elif exponent == 0:
            out.append(sign * mantissa * 2.0 ** (1 - bias - mantissas))
        else:
            out.append(sign * (1 + mantissa / (1 << mantissas)) * 2.0 ** (exponent - bias))
    return np.array(out, "<f4")


def hifloat8(bits):
    """Dot field, exponent with its own sign, mantissa; the smallest dot field has no exponent."""
    special = {0x00: 0.0, 0x80: np.nan, 0x6F: np.inf, 0xEF: -np.inf}
    out = []
    for byte in bits:
        sign, v = (-1.0 if byte & 0x80 else 1.0), byte & 0x7F
        if byte in special:
            out.append(special[byte])
            continue
        if v >= 0x60:
            d = 4
        elif v >= 0x40:
            d = 3
        elif v >= 0x20:
            d = 2
        elif v >= 0x10:
            d = 1
        elif v >= 0x08:
            d = 0
        else:
            out.append(sign * 2.0 ** (v - 23))
            continue
        width = min(5 - d, 3)
        mantissa, field = v & ((1 << width) - 1), v >> width & ((1 << d) - 1)
        exponent = 0
        if d:
            exponent = (1 << (d - 1)) + (field & ((1 << (d - 1)) - 1))
            exponent = -exponent if field >> (d - 1) else exponent
        out.append(sign * 2.0 ** exponent * (1 + mantissa / (1 << width)))
    return np.array(out, "<f4")


def small_types():
    """Name, stored bytes, shape, result."""
    every = np.arange(256, dtype=np.uint8)
    nan, inf = float("nan"), float("inf")
    yield "FLOAT8_E4M3FN", every, (16, 16), small_float(every, 4, 3, 7, {0x7F: nan})
    yield "FLOAT8_E5M2", every, (16, 16), small_float(every, 5, 2, 15, {0x7C: inf, 0x7D: nan, 0x7E: nan, 0x7F: nan})
    yield "HIFLOAT8", every, (16, 16), hifloat8(every)
    e8m0 = np.array([np.ldexp(1.0, int(v) - 127) if v < 255 else nan for v in every], "<f4")
    yield "FLOAT8_E8M0", every, (16, 16), e8m0
    halves = np.stack([every & 15, every >> 4], 1).reshape(-1)
    yield "INT4", every, (2, 256), (halves.astype("i1") ^ 8) - 8
    yield "FLOAT4_E2M1", every, (2, 256), np.array([0, .5, 1, 1.5, 2, 3, 4, 6] + [-0., -.5, -1, -1.5, -2, -3, -4, -6],
                                                   "<f4")[halves]
    yield "FLOAT4_E1M2", every, (2, 256), (np.arange(16) % 8 / 4 * np.where(np.arange(16) < 8, 1, -1)).astype("<f4")[halves]
    yield "UINT1", every, (4, 512), np.unpackbits(every)
    quarters = np.stack([every >> s & 3 for s in (0, 2, 4, 6)], 1).reshape(-1)
    yield "UINT2", every, (4, 256), quarters
    yield "INT2", every, (4, 256), (quarters.astype("i1") ^ 2) - 2
    yield "COMPLEX32", any_bits("<f2", (10, 2)), (10,), None


def layouts():
    """Name, stored array, group, the framework's array, for several element widths and odd sizes."""
    for dtype, c0 in (("<f2", 16), ("<f4", 16), ("i1", 32)):
        for shape in ((2, 20, 3, 5), (1, 16, 1, 1), (17, 3, 2, 2)):
            x = any_bits(dtype, shape)
            yield f"NC1HWC0 {dtype} {shape}", "NC1HWC0", writer.nc1hwc0(x, c0), 0, x
            yield f"FRACTAL_Z {dtype} {shape}", "FRACTAL_Z", writer.fractal_z(x, c0), 0, x
            yield f"C1HWNCoC0 {dtype} {shape}", "C1HWNCoC0", writer.c1hwncoc0(x, c0), 0, x
        x = any_bits(dtype, (18, 20, 2, 3, 5))
        yield f"NDC1HWC0 {dtype}", "NDC1HWC0", writer.ndc1hwc0(x, c0), 0, x
        yield f"FRACTAL_Z_3D {dtype}", "FRACTAL_Z_3D", writer.fractal_z_3d(x, c0), 0, x
        for shape in ((40, 33), (2, 3, 17, 50), (21,)):
            x = any_bits(dtype, shape)
            matrix = x.reshape(1, -1) if len(shape) == 1 else x
            yield f"FRACTAL_NZ {dtype} {shape}", "FRACTAL_NZ", writer.fractal_nz(matrix, c0), 0, x
    for groups, rows, channels in ((2, 16, 16), (4, 8, 3), (6, 5, 4), (3, 32, 20)):
        x = any_bits("<f2", (groups * rows, channels, 2, 3))
        yield (f"FRACTAL_Z of {groups} groups", "FRACTAL_Z", writer.fractal_z_groups(x, groups, 16), groups, x)
    x = any_bits("<f2", (20, 3, 5, 7))
    yield "FRACTAL_Z_C04", "FRACTAL_Z_C04", writer.fractal_z_c04(x), 0, x
    yield "NC1HWC0_C04", "NC1HWC0_C04", writer.nc1hwc0(x, 4), 0, x
    # Elements of half a byte: a block has 64 of them.
    x = rng.integers(-8, 8, (2, 70, 3, 2)).astype("i1")
    for fmt, stored in (("NC1HWC0", writer.nc1hwc0(x, 64)), ("FRACTAL_Z", writer.fractal_z(x, 64))):
        yield f"{fmt} of int4", fmt, stored, 0, x
    # The framework's order was not NCHW.
    yield "NC1HWC0 of NHWC", "NC1HWC0", writer.nc1hwc0(x, 16), 0, x.transpose(0, 2, 3, 1)
    yield "FRACTAL_Z of HWCN", "FRACTAL_Z", writer.fractal_z(x, 16), 0, x.transpose(2, 3, 1, 0)
    yield "NHWC of NCHW", "NHWC", x.transpose(0, 2, 3, 1), 0, x
    x = any_bits("<f4", (3, 4, 5, 6, 7))
    yield "NDHWC of NCDHW", "NDHWC", x.transpose(0, 2, 3, 4, 1), 0, x


def type_of(array):
    return {"<f2": "FLOAT16", "<f4": "FLOAT", "|i1": "INT8"}[array.dtype.str]


class Dump(unittest.TestCase):
    """A directory, and one gradb that answers everything about it."""

    def setUp(self):
        self.dir = harness.folder_of(self)
        self.asked = []

    def write(self, path, data):
        file = self.dir / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())
        return file

    def gradb(self, *commands, fails=False, json_lines=False):
        done = harness.run_gradb("-q", "-nx", "--batch", *(["--json"] if json_lines else []),
                                 *harness.typed(*commands), cwd=self.dir, timeout=harness.DEADLINE)
        self.assertEqual(done.returncode, 1 if fails else 0, done.stdout + done.stderr)
        if json_lines:
            return harness.records(done)
        return done.stdout + done.stderr

    def ask(self, tensor, want, what):
        """Adds a tensor; `check` compares it with what gradb saves."""
        self.asked.append((tensor, want, what))

    def check(self, target="dump", *before):
        commands = [f'open "{self.dir / target}"', *before]
        commands += [f'save {tensor} "{self.dir / f"{i}.npy"}"' for i, (tensor, _, _) in enumerate(self.asked)]
        out = self.gradb(*commands)
        for i, (_, want, what) in enumerate(self.asked):
            got = np.load(self.dir / f"{i}.npy")
            self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape), what)
            same = got.tobytes() == np.ascontiguousarray(want).tobytes()
            if want.dtype.kind in "fc":  # any NaN will do if the type is widened
                same = same or np.array_equal(got, want, equal_nan=True)
            self.assertTrue(same, what)
        self.asked = []
        return out


class Values(Dump):
    def test_types(self):
        """Every type, in every form of container."""
        for i, (name, dtype) in enumerate(PLAIN):
            x = any_bits(dtype, (3, 5))
            tensor = Tensor(x, name, "ND", (3, 5), (3, 5), packed=bool(i % 2))
            self.write(f"dump/0/Op.usual{i}.{i}.1.{STAMP + i}", writer.container([tensor], [tensor, tensor]))
            self.ask(f"usual{i}:1", x, name)
            self.ask(f"usual{i}:in0", x, name)
            self.write(f"dump/0/Op.legacy{i}.{STAMP + i}.{STAMP + i}", writer.legacy([tensor], [tensor]))
            self.ask(f"legacy{i}", x, name + " of old releases")
            if name in writer.RUNTIME:
                self.write(f"dump/0/Op.nano{i}.{i}.2.{STAMP + i}", writer.nano([(tensor, name)], [(tensor, name)]))
                self.ask(f"nano{i}:0", x, "nano " + name)
        for i, (name, data, shape, want) in enumerate(small_types()):
            tensor = Tensor(data, name, "ND", shape, shape)
            self.write(f"dump/0/Op.small{i}.{i}.3.{STAMP + i}", writer.container([], [tensor]))
            if name == "COMPLEX32":
                want = data.astype("<f4").reshape(-1).view("<c8")
            self.ask(f"small{i}", want.reshape(shape), name)
        bf16 = any_bits("<u2", (4, 4))
        self.write(f"dump/0/Op.bf16.1.4.{STAMP}", writer.container([], [Tensor(bf16, "BF16", "ND", (4, 4))]))
        self.ask("bf16", bf16, "bfloat16 as its bits")
        self.check()

    def test_layouts(self):
        for i, (what, fmt, stored, group, want) in enumerate(layouts()):
            if what.endswith("of int4"):
                nibbles = (stored & 15).astype("u1").reshape(-1, 2)
                self.write(f"dump/0/Op.n{i}.{i}.1.{STAMP + i}", writer.container([], [Tensor(
                    nibbles[:, 0] | nibbles[:, 1] << 4, "INT4", fmt, stored.shape, want.shape)]))
                self.ask(f"n{i}:0", want, what)
                continue
            self.write(f"dump/0/Op.n{i}.{i}.1.{STAMP + i}", writer.container([], [
                Tensor(stored, type_of(want), fmt, stored.shape, want.shape, group),
                # The description has the framework's shape for both.
                Tensor(stored, type_of(want), fmt, want.shape, want.shape, group)]))
            self.ask(f"n{i}:0", want, what)
            if what.startswith(("NC1HWC0 <", "FRACTAL_NZ", "FRACTAL_Z <")):
                self.ask(f"n{i}:1", want, what + ", with the framework's shape alone")
        x = any_bits("<f2", (2, 3, 16, 16))
        stored = Tensor(x, "FLOAT16", "FRACTAL_ZN_LSTM", x.shape, (6, 256))
        self.write(f"dump/0/Op.lstm.1.2.{STAMP}", writer.container([], [stored]))
        self.ask("lstm", x, "an unknown layout stays as stored")
        # A weight of 16 x 16 x 16 x 16 fits several orders: the file says which one it is.
        x = any_bits("<f2", (16, 16, 16, 16))
        origin = Tensor(writer.fractal_z(x, 16), "FLOAT16", "FRACTAL_Z", writer.fractal_z(x, 16).shape,
                        x.shape, origin=("w", 0, "HWCN"))
        self.write(f"dump/0/Op.hinted.1.3.{STAMP}", writer.container([], [origin]))
        self.ask("hinted", x.transpose(2, 3, 1, 0), "the order given in the file")
        self.check()
        out = self.gradb(f'open "{self.dir / "dump"}"', "print lstm", "print n0:0")
        self.assertIn("as stored by the device: FRACTAL_ZN_LSTM", out)
        self.assertIn("stored as NC1HWC0 (2, 2, 3, 5, 16)", out)

    def test_what_is_missing(self):
        """Wrong sizes, empty addresses, truncated files: what is there is shown, the rest is reported."""
        x = any_bits("<f4", (2, 3))
        whole = Tensor(x, "FLOAT", "ND", (2, 3))
        self.write(f"dump/0/Op.cut.1.1.{STAMP}", writer.container([whole], [whole])[:-10])
        self.write(f"dump/0/Op.null.2.1.{STAMP}",
                   writer.container([whole], [Tensor(b"", "FLOAT", "ND", (2, 3), size=24)]))
        self.write(f"dump/0/Op.optional.3.1.{STAMP}", writer.container([Tensor(size=0), whole], [whole]))
        self.write(f"dump/0/Op.shapeless.4.1.{STAMP}", writer.container([], [Tensor(x, "FLOAT", "ND", None)]))
        self.write(f"dump/0/Op.lies.5.1.{STAMP}", writer.container([], [Tensor(x, "FLOAT", "ND", (2, 4))]))
        self.write(f"dump/0/Op.huge.6.1.{STAMP}", writer.container([], [
            Tensor(x, "FLOAT", "NC1HWC0", (2 ** 62, 1, 2 ** 62, 1, 16), (2 ** 40, 2 ** 40, 2 ** 40, 2))]))
        self.write(f"dump/0/Op.strings.7.1.{STAMP}", writer.container([], [Tensor(b"abcdef", "STRING", "ND", (1,))]))
        self.ask("cut:in0", x, "in front of the cut")
        self.ask("null:in0", x, "in front of the gap")
        self.ask("optional:in1", x, "after a missing one")
        self.ask("shapeless", x.reshape(-1), "without a shape")
        self.ask("lies", x.reshape(-1), "with a wrong shape")
        self.ask("huge", x.reshape(-1), "with a shape that no memory holds")
        self.ask("strings", np.frombuffer(b"abcdef", "u1"), "of a type that is bytes here")
        self.check()
        self.assertIn("14 of the 24 bytes", self.gradb(f'open "{self.dir / "dump"}"', "print cut:0", fails=True))
        self.assertIn("10 bytes of its file are missing", self.gradb(f'open "{self.dir / "dump"}"', "print cut:in0"))
        self.assertIn("0 of the 24 bytes", self.gradb(f'open "{self.dir / "dump"}"', "print null:0", fails=True))

    def test_statistics(self):
        """Statistics dumped instead of values; the header may be repeated."""
        head = ("Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count,Nan Count,"
                "Negative Inf Count,Positive Inf Count\n")
        rows = "Output,0,24,DT_FLOAT,ND,2x3,2.5,-1.25,0.5,6,1,0,2\n" + head + "Input,0,8,DT_INT64,ND,-,NA,NA,NA,1,0,0,0\n"
        self.write(f"dump/0/Op.stat.1.1.{STAMP}.csv", head + rows)
        out = self.gradb(f'open "{self.dir / "dump"}"', "stats stat:0", "tensors")
        for word in ("2.5", "-1.25", "float32", "(2, 3)", "int64"):
            self.assertIn(word, out)

    def test_statistics_that_are_not_finite(self):
        """Without counts they prove that such elements exist."""
        head = "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count\n"
        for name, row in (("bad", "nan,nan,nan,6"), ("high", "inf,-1,inf,6"), ("good", "2,1,1.5,6")):
            self.write(f"numbers/0/Op.{name}.1.1.{STAMP}.csv", head + f"Output,0,24,DT_FLOAT,ND,2x3,{row}\n")
        lines = (f'open "{self.dir / "numbers"}"', "watch TO on all", "scan", "stats bad:0", "stats high:0")
        out = harness.run_gradb("-q", "-nx", "--batch", *harness.typed(*lines)).stdout
        for name in ("bad:0", "high:0"):
            self.assertRegex(out, rf"(?m)^  {name}$")
        self.assertRegex(out, r"(?m)^  NaN +at least 1$")
        self.assertRegex(out, r"(?m)^  \+Inf +at least 1$")
        self.assertRegex(out, r"(?m)^  good:0 could not be checked: ")


class Trees(Dump):
    """Directories of all front ends, and what their paths say."""

    def op(self, where, name, value, stamp=0, task=1, stream=1, **more):
        tensor = Tensor(np.full((2,), value, "<f4"), "FLOAT", "ND", (2,), (2,))
        return self.write(f"{where}/Op.{name}.{task}.{stream}.{STAMP + stamp}",
                          writer.container([], [tensor], **more))

    def steps(self, path):
        """Of every rank: its number, and the value of `v` in each step."""
        found = {}
        opened = self.gradb(f'open "{self.dir / path}"', "info ranks", json_lines=True)
        ranks = opened[0]["ranks"]
        for i in range(1, ranks + 1):
            lines = self.gradb(f'open "{self.dir / path}"', f"session {i}", "info target", "info steps", json_lines=True)
            record = next(line for line in lines if line.get("command") == "info steps")
            numbers = [row["step"] for row in record["steps"]]
            self.asked = []
            commands = [f'open "{self.dir / path}"', f"session {i}"]
            for number in numbers:
                commands += [f"goto {number}", f'save -f v "{self.dir / f"s{number}.npy"}"']
            self.gradb(*commands)
            rank = next(line for line in lines if line.get("command") == "info target")
            found[i, rank.get("rank", 0)] = {n: float(np.load(self.dir / f"s{n}.npy")[0]) for n in numbers}
        return found

    def test_places(self):
        places = {
            "ms13": ["rank_{r}/net/0/{s}"],
            "ms11": ["device_{r}/net_graph_0/0/{s}"],
            "ms10": ["dump_{r}/net_0/0/{s}"],
            "ge": ["2023010101010{r}/{r}/ge_default_1/1/{s}"],
            "single": ["2023010101010{s}/{r}"],
            "acl": ["{s}/20230101010101/{r}"],
            "torchair": ["worldsize2_global_rank{r}/20230101010101/0/model/1/{s}"],
            "probe": ["step{s}/rank{r}/20230101010101/0"],
            "plain": ["{s}"],
        }
        for name, (form,) in places.items():
            ranks = 1 if name == "plain" else 2
            for rank in range(ranks):
                for step in range(2):
                    self.op(f"{name}/" + form.format(r=rank, s=step), "v", 10 * rank + step, stamp=step)
            found = self.steps(name)
            self.assertEqual([steps for _, steps in sorted(found.items())],
                             [{s: 10.0 * r + s for s in range(2)} for r in range(ranks)], name)

    def test_names(self):
        """Dots in names, long names, tasks of FFTS+, repeated executions, halves of a collective."""
        x = np.arange(4, dtype="<f4")
        tensor = Tensor(x, "FLOAT", "ND", (4,), (4,))
        one = writer.container([], [tensor])
        self.write(f"d/0/Op.conv1.weight.7.1.{STAMP}", one)
        self.write(f"d/0/Op.sliced_lxslice0.8.1.{STAMP}.4.21.1.0", one)
        self.write(f"d/0/Op.sliced_lxslice0.8.1.{STAMP + 1}.4.21.2.0",
                   writer.container([], [Tensor(2 * x, "FLOAT", "ND", (4,), (4,))]))
        long = "Op." + "n" * 260 + f".9.1.{STAMP}"
        self.write("d/0/12345678901234567890", one)
        self.write("d/0/mapping.csv", f"12345678901234567890,{long}\n")
        self.write(f"d/0/HcomAllReduce.sum.10.1.{STAMP + 5}", writer.container([tensor], []))
        self.write(f"d/0/HcomAllReduce.sum.11.1.{STAMP + 6}", writer.container([], [tensor]))
        for name in ("conv1.weight", "sliced_lxslice0", "n" * 260, "sum:0", "sum:in0"):
            self.ask(name, x, name[:20])
        self.ask("sliced_lxslice0#2", 2 * x, "the second thread")
        self.check("d")

    def test_overflows(self):
        """Records of both layouts, and as JSON, with the operator they blame."""
        self.op("d/rank_0/net/0/1", "Default_guilty", 1, task=57, stream=3, op_name="Default/guilty")
        self.op("d/rank_0/net/0/1", "innocent", 1, task=58, stream=3)
        core = (514, 3, 57, 0, 0x1000, 0x2000, 0x120, 0x3000, 1)
        self.write(f"d/rank_0/net/0/1/Opdebug.Node_OpDebug.57.3.{STAMP + 3}",
                   writer.record_file(writer.old_record(core=core)))
        self.write(f"d/rank_0/net/0/1/Opdebug.Node_OpDebug.58.3.{STAMP + 4}",  # not in the contents
                   writer.record_file(writer.old_record(dha=(2 ** 64 - 1,) * 3 + (0, 0, 0, 0xB00))))
        new = writer.new_record(1, (514, 3, 57, 0, 65535, 65535, 1, 2, 3, 4, 0x20, 0, 0x400, 0), version=1)
        self.write(f"d/rank_0/debug_files/1/Opdebug.Node_OpDebug.1.1.{STAMP + 5}", writer.record_file(new))
        self.write(f"d/rank_0/net/0/1/Opdebug.Node_OpDebug.99.9.{STAMP + 6}.output.0.json",
                   json.dumps({"L2 Atomic Add": {"task_id": 99, "stream_id": 9, "status": 1 << 16}}))
        out = self.gradb(f'open "{self.dir / "d"}"', "info overflows")
        lines = [line for line in out.splitlines() if line.split()[1:2] == ["overflow"]]
        self.assertEqual(len(lines), 4, out)
        texts = {
            "AI Core: floating-point overflow, overflow in the conversion to float16 (status 0x120)": "Default/guilty",
            "DHA Atomic Add: the source is NaN (status 0xb00)": "innocent",
            "AIV: floating-point overflow, overflow in the accumulation of the cube unit (status 0x420)":
                "Default/guilty",
            "L2 Atomic Add: overflow (status 0x10000): no file belongs to the operator": "",
        }
        for text, node in texts.items():
            line = next(line for line in lines if text in line)
            self.assertIn(node, line)

    def test_overflows_of_every_unit(self):
        """Every unit, every status bit, and the operator named in the record, otherwise in the file name."""
        nothing = 2 ** 64 - 1
        atomic = ["overflow", "underflow", "the source is NaN", "the destination is NaN", "both are NaN"]
        bits = {0x8: "negation of the smallest signed integer", 0x10: "integer overflow",
                0x20: "floating-point overflow", 0x80: "negative number converted to unsigned",
                0x100: "overflow in the conversion to float16",
                0x400: "overflow in the accumulation of the cube unit", 0x2: "unknown bits 0x2"}
        records = [(writer.old_record(dha=(1, 3, i, 0, 0, 0, 9 + i << 8)), "DHA Atomic Add: " + words)
                   for i, words in enumerate(atomic)]
        records += [(writer.old_record(l2=(1, 3, len(atomic) + i, 0, 0, 0, 1 + i << 16)), "L2 Atomic Add: " + words)
                    for i, words in enumerate(atomic)]
        for bit, words in bits.items():
            task = len(records)
            records.append((writer.old_record(core=(1, 3, task, 0, 1, 2, bit, 3, 1)), "AI Core: " + words))
            records.append((writer.new_record(0, (1, 3, task + 1, 0, 65535, 65535, 1, 2, 3, 4, bit)), "AIC: " + words))
        task = len(records)
        records.append((writer.new_record(1, (1, 3, task, 0, 65535, 65535, 1, 2, 3, 4, 0, 0, 0, 0x20), version=1),
                        "AIV: floating-point overflow"))
        records.append((writer.new_record(2, (1, 3, task + 1, 0, 65535, 0, 65535, 7)), "AICPU: overflow (status 0x7)"))
        records.append((writer.new_record(3, (1, 3, task + 2, 0, 65535, 65535, 1, 2, 3, 9)), "SDMA: overflow (status 0x9)"))
        records.append((writer.new_record(1, (nothing, nothing, nothing, 0, 65535, 65535, 1, 2, 3, 4, 0x10)),
                        "AIV: integer overflow"))  # from the file name
        for i, (record, _) in enumerate(records):
            self.op("d/rank_0/net/0/1", f"op{i:02}", 1, task=i, stream=3)
            self.write(f"d/rank_0/net/0/1/Opdebug.Node_OpDebug.{i}.3.{STAMP + i}", writer.record_file(record))
        [table] = [line for line in self.gradb(f'open "{self.dir / "d"}"', "info overflows", json_lines=True)
                   if "events" in line]
        found = {event["node"].rsplit("/", 1)[-1]: event["text"] for event in table["events"]}
        self.assertEqual(len(found), len(records))
        for i, (_, words) in enumerate(records):
            self.assertIn(words, found[f"op{i:02}"])
            self.assertIn(f"in task {i} of stream 3", found[f"op{i:02}"])

    def test_mindspores_graph(self):
        """An asynchronous dump next to MindSpore's own graph: files belong to its nodes, which have edges."""
        def node(number, full, kind, *inputs):
            return writer.message(1, b"".join(writer.message(1, writer.message(1, i)) for i in inputs)
                                  + writer.message(2, number) + writer.message(3, kind) + writer.message(8, full))
        graph = (node("1", "Default/net/conv1/Conv2D-op1", "Conv2D") + node("2", "Default/net/ReLU-op2", "ReLU", "1")
                 + writer.message(2, "0"))
        self.write("d/rank_0/graphs/ms_output_trace_code_graph_0.pb", writer.message(4, graph))
        for step in range(2):
            x = np.full((3,), step, "<f4")
            tensor = Tensor(x, "FLOAT", "ND", (3,), (3,))
            self.write(f"d/rank_0/net/0/{step}/Conv2D.Default_net_conv1_Conv2D-op1.5.1.{STAMP + step}",
                       writer.container([tensor], [tensor]))
        self.ask("Default/net/conv1/Conv2D-op1:0", x, "by its full name")
        self.ask("conv1/Conv2D-op1:in0", x, "an input")
        self.check("d", "goto 1")
        out = self.gradb(f'open "{self.dir / "d"}"', "inputs ReLU-op2", "info graph")
        self.assertIn("Default/net/conv1/Conv2D-op1", out)
        self.assertIn("2 nodes, 1 edge", out)

    def test_exceptions(self):
        tensor = Tensor(np.arange(3, dtype="<f4"), "FLOAT", "ND", None)
        self.write(f"d/extra-info/data-dump/2/exception_info.5.1.{STAMP}",
                   writer.container([tensor], [], spaces=[b"log"], op_name="net/bad", dfx="te_add kernel0\nregisters"))
        out = self.gradb(f'open "{self.dir / "d"}"', "info events", "print net/bad:in0")
        self.assertIn("the device raised an exception in net/bad: te_add kernel0", out)
        self.assertIn("[0. 1. 2.]", out)

    def test_rotten_files_are_left_out(self):
        """Wrong lengths, random bytes, a description that grows: reported, and the others are read."""
        self.op("d/0", "v", 7)
        for i, data in enumerate((struct.pack("<Q", 1 << 40) + bytes(100), struct.pack("<Q", 64) + b"\x0a" * 64,
                                  struct.pack("<Q", 20) + struct.pack("<II", writer.MAGIC, 1)
                                  + struct.pack("<III", 4, 4, 1 << 30) + bytes(9),
                                  rng.bytes(4000), writer.legacy([], [Tensor(b"1234", "FLOAT", "ND", (1,))])[:-2],
                                  # a million outputs of two bytes each
                                  struct.pack("<Q", 2 << 20) + b"\x1a\x00" * (1 << 20))):
            self.write(f"d/0/Op.bad{i}.{i}.1.{STAMP}", data)
        self.write("d/0/mapping.csv", "no comma\n,\n99,../../../x\n" + "1,2,3\n" * 100)
        out = self.gradb(f'open "{self.dir / "d"}"', "print v", "info formats")
        self.assertIn("[7. 7.]", out)
        self.assertIn("bad0", out)


GRAPH = """# a comment
graph {
  name: "ge_default_1"
  op { name: "data" type: "Iterator" input: "" id: 0
       output_desc { dtype: DT_FLOAT shape { dim: 2 } layout: "NHWC" } }
  op <
    name: 'scope/conv' "1"; type: "Conv2D", input: "data:0"
    attr { key: "strides" value { list { i: 1 i: -2 val_type: VT_LIST_INT } } }
    attr { key: "text" value { s: "a\\n\\101\\"b" } }
    attr { key: "T" value { dt: 1 } }
    attr { key: "_datadump_original_op_names" value { list { s: "scope/conv1" s: "scope/relu" } } }
    attr { key: "weights" value { t { data: "xyz" nested { deeper { } } } } }
    id: 1
    output_desc { dtype: DT_FLOAT16 shape: { dim: [2, 16, 4, 4] }
      attr { key: "origin_format" value { s: "NHWC" } }
      attr { key: "_datadump_origin_name" value { s: "scope/relu" } }
      attr { key: "_datadump_origin_output_index" value { i: 0 } } }
  >
  op { name: "ctl" type: "NoOp" input: "scope/conv1:-1" input: "gone:0" id: 3
       attr { key: "_no_task" value { b: true } } subgraph_name: "body" }
  op { name: "late" type: "Add" input: "scope/conv1:0" input: "data:0" id: 2
       output_desc { dtype: DT_FLOAT shape { dim: -1 } } }
}
graph { name: "body" op { name: "inner" type: "Mul" output_desc { dtype: DT_FLOAT } } }
"""


class Graphs(Dump):
    """A dump with compiled graphs next to it."""

    def setUp(self):
        super().setUp()
        other = 'graph { name: "ge_default_0" op { name: "x" type: "Const" } }'
        self.write("d/graph/pid_12_deviceid_0/ge_proto_00000004_Build.txt", other)
        self.write("d/graph/pid_12_deviceid_0/ge_proto_00000005_Build.txt", GRAPH)
        self.write("d/graph/pid_12_deviceid_0/ge_proto_00000003_PreRunBegin.txt", GRAPH.replace("Conv2D", "Wrong"))
        where = "d/dump/20230101010101/0/ge_default_1/11"
        self.x = any_bits("<f2", (2, 16, 4, 4))
        stored = writer.nc1hwc0(self.x, 16)
        # 16 channels of 4 x 4: only the graph gives the framework's order.
        conv = Tensor(stored, "FLOAT16", "NC1HWC0", stored.shape, (2, 4, 4, 16))
        y = Tensor(np.arange(2, dtype="<f4"), "FLOAT", "ND", (2,), (2,))
        for step in (0, 3):
            self.write(f"{where}/{step}/Conv2D.scope_conv1.5.1.{STAMP + step}", writer.container([y], [conv]))
            self.write(f"{where}/{step}/Add.late.6.1.{STAMP + step + 1}", writer.container([], [y]))
        self.write(f"{where}/3/Mul.inner.7.1.{STAMP + 9}", writer.container([], [y]))
        self.write(f"{where}/3/Cast.unknown.8.1.{STAMP + 10}", writer.container([], [y]))

    def test_graph_and_values(self):
        self.ask("scope/conv1:0", self.x.transpose(0, 2, 3, 1), "in the framework's order")
        self.ask("scope/relu:0", self.x.transpose(0, 2, 3, 1), "of what was merged")
        self.ask("late", np.arange(2, dtype="<f4"), "another")
        self.check("d", "goto 3")
        self.assertEqual(self.gradb(f'open "{self.dir / "d"}"', "goto 3", "print inner").count("[0. 1.]"), 1)

    def test_what_the_graph_tells(self):
        out = self.gradb(f'open "{self.dir / "d"}"', "info graph", "info target", "inputs late", "info node scope/conv1")
        for text in ("computation graph  ge_default_1", "Iterator", "strides", "[1, -2]", "FLOAT16",
                     "[scope/conv1, scope/relu]", "late"):
            self.assertIn(text, out)
        self.assertNotIn("Wrong", out)
        self.assertNotIn("xyz", out)
        self.assertIn("_no_task", self.gradb(f'open "{self.dir / "d"}"', "print ctl", fails=True))
        # The Iterator runs on the host: its output is known from another operator's input.
        out = self.gradb(f'open "{self.dir / "d"}"', "print data")
        self.assertIn("[0. 1.]", out)
        self.assertIn("not dumped: it is the value that scope/conv1:in0 received", out)
        self.assertRegex(self.gradb(f'open "{self.dir / "d"}"', "info node ctl"), "nothing was dumped: .*_no_task")

    def test_graph_alone(self):
        out = self.gradb(f'open "{self.dir / "d" / "graph"}"', "info graph", "inputs late")
        self.assertIn("ge_default_1", out)
        self.assertIn("scope/conv1", out)

    def test_broken_graphs(self):
        """Deep nesting, unterminated strings: reported, and the values are still there."""
        graph = self.dir / "d/graph/pid_12_deviceid_0/ge_proto_00000005_Build.txt"
        for text, why in (("graph { name: \"ge_default_1\" op " + "{ a " * 100000, "too deep"),
                          (GRAPH[:700], "ends within"), (GRAPH.replace('"Mul"', '"Mul'), "not closed")):
            graph.write_text(text)
            out = self.gradb(f'open "{self.dir / "d"}"', "print late", "info formats")
            self.assertIn("[0. 1.]", out)
            self.assertIn(why, out)


class Convert(Dump):
    """The vendor converter's names and values."""

    def setUp(self):
        super().setUp()
        self.x = any_bits("<f2", (2, 20, 3, 4))
        stored = writer.nc1hwc0(self.x, 16)
        self.stored = stored
        bf16 = any_bits("<u2", (3,))
        self.bf16 = (bf16.astype("<u4") << 16).view("<f4")
        self.base = f"Conv2D.Default_conv1_Conv2D-op1.5.1.{STAMP}"
        self.write(f"d/0/{self.base}", writer.container(
            [Tensor(bf16, "BF16", "ND", (3,), (3,))],
            [Tensor(stored, "FLOAT16", "NC1HWC0", stored.shape, self.x.shape), Tensor(size=0)],
            buffers=[b"l1 bytes"], spaces=[b"space"], op_name="Default/conv1/Conv2D-op1"))
        self.long = "Op." + "n" * 250 + f".9.1.{STAMP}"
        self.write("d/1/1234567890", writer.container([], [Tensor(b"\x01\x02\x03\x04", "UINT8", "ND", (4,))]))
        self.write("d/1/mapping.csv", f"1234567890,{self.long}\n666,../../evil\n")
        record = writer.record_file(writer.old_record(core=(514, 563, 57, 0, 16, 32, 32, 48, 1)))
        self.write(f"d/1/Opdebug.Node_OpDebug.57.1.{STAMP}", record)

    def files(self, folder="out"):
        root = self.dir / folder
        return {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}

    def same(self, path, want):
        got = np.load(path)
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape), path)
        self.assertEqual(got.tobytes(), want.tobytes(), path)

    def test_npy(self):
        self.gradb(f'convert "{self.dir / "d"}" "{self.dir / "out"}"')
        new = uuid.uuid3(uuid.NAMESPACE_DNS, self.long + ".output.0.npy").hex + ".npy"
        files = self.files()
        self.assertEqual(set(files), {
            f"0/{self.base}.input.0.npy", f"0/{self.base}.output.0.npy", f"0/{self.base}.l1buffer.0.bin",
            f"0/{self.base}.space.0.bin", f"1/{new}", "1/mapping.csv",
            f"1/Opdebug.Node_OpDebug.57.1.{STAMP}.output.0.json"})
        self.same(files[f"0/{self.base}.output.0.npy"], np.ascontiguousarray(self.stored))
        self.same(files[f"0/{self.base}.input.0.npy"], self.bf16)
        self.same(files[f"1/{new}"], np.array([1, 2, 3, 4], "u1"))
        self.assertEqual(files["1/mapping.csv"].read_text(), f"{new},{self.long}.output.0.npy\n")
        self.assertEqual(files[f"0/{self.base}.l1buffer.0.bin"].read_bytes(), b"l1 bytes")
        nothing = dict.fromkeys(("model_id", "stream_id", "task_id", "task_type"), 0) | {
            "pc_start": "0x0", "para_base": "0x0", "status": 0}
        text = files[f"1/Opdebug.Node_OpDebug.57.1.{STAMP}.output.0.json"].read_text()
        self.assertEqual(text, json.dumps({
            "DHA Atomic Add": nothing, "L2 Atomic Add": nothing,
            "AI Core": {"model_id": 514, "stream_id": 563, "task_id": 57, "task_type": 0, "pc_start": "0x10",
                        "para_base": "0x20", "kernel_code": "0x30", "block_idx": 1, "status": 32}}, indent=4))

    def test_other_kinds(self):
        for args, name, want in (
                ("--format NCHW", f"{self.base}.output.0.2x20x3x4.npy", self.x),
                ("--format NHWC", f"{self.base}.output.0.2x3x4x20.npy", self.x.transpose(0, 2, 3, 1)),
                ("--as mindspore", f"Conv2D.Conv2D-op1.5.1.{STAMP}.output.0.NC1HWC0.npy", self.stored)):
            folder = "out" + args.replace(" ", "")
            self.gradb(f'convert {args} "{self.dir / "d" / "0"}" "{self.dir / folder}"')
            self.same(self.files(folder)[name], np.ascontiguousarray(want))
        self.gradb(f'convert --as bin "{self.dir / "d" / "0" / self.base}" "{self.dir / "bin"}"')
        raw = self.files("bin")[f"{self.base}.output.0.2_2_3_4_16.float16.NC1HWC0.bin"]
        self.assertEqual(raw.read_bytes(), np.ascontiguousarray(self.stored).tobytes())
        self.assertIn(f"{self.base}.input.0.3.float32.ND.bin", self.files("bin"))
        self.gradb(f'convert "{self.dir / "d" / "1" / "1234567890"}" "{self.dir / "one"}"')
        self.assertIn("mapping.csv", self.files("one"))  # of a file that mapping.csv names

    def test_links_are_not_followed(self):
        """Nothing is written through a link to a directory; a link to a file is replaced."""
        (self.dir / "elsewhere").mkdir()
        (self.dir / "out" / "1").mkdir(parents=True)
        (self.dir / "out" / "0").symlink_to(self.dir / "elsewhere")
        self.gradb(f'convert "{self.dir / "d"}" "{self.dir / "out"}"', fails=True)
        self.assertEqual(list((self.dir / "elsewhere").iterdir()), [])
        (self.dir / "out" / "0").unlink()
        (self.dir / "out" / "0").mkdir()
        victim = self.write("victim", "as it was")
        (self.dir / "out" / "0" / f"{self.base}.input.0.npy").symlink_to(victim)
        self.gradb(f'convert "{self.dir / "d"}" "{self.dir / "out"}"')
        self.assertEqual(victim.read_text(), "as it was")
        self.same(self.dir / "out" / "0" / f"{self.base}.input.0.npy", self.bf16)
        self.assertFalse(list((self.dir / "out").rglob("*.part")))


if __name__ == "__main__":
    harness.main()
