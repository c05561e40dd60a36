# SPDX-License-Identifier: GPL-3.0-or-later
"""MindSpore's checkpoints: written here from the description of the format, and by MindSpore itself if it is installed.
"""
import json
import pathlib
import struct
import subprocess
import unittest
import zlib

import dumptool
import harness
import numpy as np
import venvs
from wire import field, varint

WRITER = pathlib.Path(__file__).resolve().parent / "write_ckpt.py"
TYPES = {"Int8": "i1", "UInt8": "u1", "Int16": "<i2", "UInt16": "<u2", "Int32": "<i4", "UInt32": "<u4", "Int64": "<i8",
         "UInt64": "<u8", "Float16": "<f2", "Float32": "<f4", "Float64": "<f8", "Bool": "?", "Uint8": "u1", "Uint64": "<u8"}


def tensor(dims, kind, data, packed=False):
    if packed:
        return field(1, b"".join(map(varint, dims))) + field(2, kind.encode()) + field(3, data)
    return b"".join(b"\x08" + varint(dim) for dim in dims) + field(2, kind.encode()) + field(3, data)


def record(tag, dims, kind, data, **how):
    return field(1, field(1, tag.encode()) + field(2, tensor(dims, kind, data, **how)))


def with_sum(data):
    return data + b"crc_num" + zlib.crc32(data).to_bytes(10, "big")


F2 = struct.pack("<2f", 1.0, -2.0)


class Files(dumptool.Files):
    name = "net-1_2.ckpt"


class Layout(Files):
    def test_types(self):
        rng = np.random.default_rng(3)
        arrays = {kind: np.frombuffer(rng.bytes(6 * np.dtype(code).itemsize), code).reshape(2, 3)
                  for kind, code in TYPES.items() if code != "?"}
        arrays["Bool"] = np.array([[True, False, True], [False, False, True]])
        data = b"".join(record(kind, [2, 3], kind, array.tobytes(), packed=i % 2) for i, (kind, array) in
                        enumerate(arrays.items()))
        data += record("half", [2], "BFloat16", b"\x80\x3f\xc0\x7f") + record("odd", [2], "Complex64", F2 + F2)
        path = self.put(data)
        self.assertEqual(self.tool.open(path)["format"], "ckpt")
        for kind, array in arrays.items():
            self.assertEqual(self.tool.read(path, kind).tobytes(), array.tobytes(), kind)
        self.assertEqual(self.tool.read(path, "Float32", "[1, ::2]").tobytes(), arrays["Float32"][1, ::2].tobytes())
        self.assertEqual(self.tool.read(path, "half").tobytes(), b"\x80\x3f\xc0\x7f")
        self.assertEqual(self.tool.read(path, "odd").tobytes(), F2 + F2)

    def test_scalars_texts_and_others(self):
        data = record("new", [], "Float32", F2[:4]) + record("old", [0], "Float32", F2[:4]) + record("none", [0], "Int32", b"")
        data += record("one", [1], "Float32", F2[:4]) + record("word", [0], "str", "h\u00e9'\U0001f600\n".encode("utf-32-le"))
        data += record("random_op", [], "random_op", b"\1\2\3") + record("four", [4], "Int4", b"\x21\xf8")
        data += record("bytes4", [2], "Int4", b"\x21\xf8")
        found = self.tool.entries(self.put(data))
        self.assertEqual({name: entry.get("shape") for name, entry in found.items()},
                         {"new": [], "old": [], "none": [0], "one": [1], "word": None, "random_op": [3], "four": [4], "bytes4": [2]})
        self.assertEqual(found["word"]["text"], "'h\u00e9\\'\U0001f600\\x0a'")
        self.assertEqual(found["random_op"]["stored"], "opaque")
        self.assertEqual(self.tool.read(self.dir / "net-1_2.ckpt", "four").tolist(), [1, 2, -8, -1])
        self.assertIn("shown as bytes", found["bytes4"]["note"])

    def test_pieces(self):
        whole = np.arange(24, dtype="<f4").tobytes()
        data = record("before", [1], "Int8", b"\1")
        for at in range(0, 96, 20):
            data += record("big", [4, 6], "Float32", whole[at:at + 20])
        data += record("after", [2], "Float32", F2)
        path = self.put(data)
        self.assertEqual(list(self.tool.entries(path)), ["before", "big", "after"])
        self.assertEqual(self.tool.read(path, "big").tobytes(), whole)
        self.assertEqual(self.tool.read(path, "big", "[1:3, ::-2]").tobytes(),
                         np.arange(24, dtype="<f4").reshape(4, 6)[1:3, ::-2].tobytes())
        entry, = self.tool.open(self.put(record("w", [2], "Float32", F2[:4]) + record("w", [2], "Int32", F2[4:])))["entries"]
        self.assertIn("parts differ", entry["problem"])

    def test_maps(self):
        def part(keys):
            pieces = [np.array(keys, "<i4"), np.array([[k, k + 0.5] for k in keys], "<f4"), np.array([1] * len(keys), "<i4")]
            inside = b"".join(field(1, tensor(piece.shape, str(piece.dtype), piece.tobytes())) for piece in pieces)
            return field(1, field(1, b"table") + field(3, inside))

        path = self.put(part([3, 5]) + part([7]))
        found = self.tool.entries(path)
        self.assertEqual({name: entry["shape"] for name, entry in found.items()},
                         {"table.keys": [3], "table.values": [3, 2], "table.status": [3]})
        self.assertEqual(self.tool.read(path, "table.keys").tolist(), [3, 5, 7])
        self.assertEqual(self.tool.read(path, "table.values").tolist(), [[3, 3.5], [5, 5.5], [7, 7.5]])

    def test_kinds(self):
        names = ["conv.weight", "bn.gamma", "bn.moving_mean", "moments.conv.weight", "learning_rate", "epoch_num"]
        found = self.tool.entries(self.put(b"".join(record(name, [2], "Float32", F2) for name in names)))
        self.assertEqual([(entry["kind"], entry["trainable"]) for entry in found.values()],
                         [("parameter", "yes"), ("parameter", "unknown"), ("buffer", "no"),
                         ("optimizer", "unknown"),
                          ("optimizer", "unknown"), ("tensor", "unknown")])

    def test_sum(self):
        data = record("w", [2], "Float32", F2)
        self.assertEqual(self.tool.open(self.put(with_sum(data)))["notes"], [])
        self.assertEqual(self.tool.read(self.dir / "net-1_2.ckpt", "w").tobytes(), F2)
        wrong = bytearray(with_sum(data))
        wrong[-20] ^= 1
        self.assertRegex(self.tool.open(self.put(bytes(wrong)))["notes"][0], "CORRUPT: the file's CRC-32")
        # The letters of a checksum at the end of a parameter are its values.
        last = record("w", [17], "Int8", b"crc_num" + bytes(10))
        self.assertEqual(self.tool.read(self.put(last), "w").tobytes(), b"crc_num" + bytes(10))
        self.refused(data + b"crc_num" + bytes(9), "a record of a checkpoint was expected")

    def test_twice_and_unfinished(self):
        data = record("w", [2], "Float32", F2) + record("v", [2], "Float32", F2) + record("w", [2], "Float32", F2[::-1])
        answer = self.tool.open(self.put(data, "net.ckpt.tmp"))
        self.assertEqual([entry["name"] for entry in answer["entries"]], ["w", "v"])
        self.assertEqual(self.tool.read(self.dir / "net.ckpt.tmp", "w").tobytes(), F2[::-1])
        self.assertRegex(answer["notes"][0], "ends in .tmp")
        self.assertRegex(answer["notes"][1], "w occurs twice, at bytes 0 and [0-9]+: the later one is used")
        self.refused(data[:-1], "a record of [0-9]+ bytes begins here, but the file ends after [0-9]+")
        cut = self.tool.open(self.put(data[:-1]), partial=True)
        self.assertEqual([entry["name"] for entry in cut["entries"]], ["w", "v"])
        self.assertRegex(cut["notes"][0], "truncated after byte")

    def test_print_files(self):
        nameless = field(1, field(2, tensor([2], "Float32", F2)))
        data = nameless + field(1, field(1, b"step:")) + field(1, field(1, b"_TS_SAVE_NAME:loss")) + \
            field(1, field(2, tensor([], "Float32", F2[:4]))) + nameless
        answer = self.tool.open(self.put(data, "print.data"))
        self.assertEqual([(entry["name"], entry.get("text")) for entry in answer["entries"]],
                         [("print[0]", None), ("print[1]", "step:"), ("loss", None), ("print[3]", None)])
        self.assertEqual(self.tool.read(self.dir / "print.data", "loss").tolist(), 1.0)

    def test_attacks(self):
        good = record("w", [2], "Float32", F2)
        for data, pattern in [
                (b"\xd8\x5e\x3a\x7f" + bytes(40), "is encrypted .AES-GCM."), (b"\xd9\x5e\x3a\x7f", "AES-CBC"),
                (b"\xda\x5e\x3a\x7f", "SM4-CBC"), (b"\x08\x01\x12\x00", "strategy file, .*: it has no weights"),
                (good + b"\x0a" + b"\xff" * 10, "more than 64 bits"), (good + b"\x0a\x80", "truncated"),
                (good + b"\x0b\x00", "a record of a checkpoint was expected"), (good + field(2, b""), "a record of a checkpoint was expected"),
                (good + field(1, b""), "without a name"), (good + field(1, field(1, b"x")), "without a value"),
                (good + field(1, field(2, tensor([2], "Float32", F2))), "without a name"),
                (good + field(1, field(1, b"") + field(2, tensor([2], "Float32", F2))), "name that is empty"),
                (good + field(1, field(1, b"a\0b") + field(2, tensor([2], "Float32", F2))), "NUL"),
                (good + field(1, field(1, b"n" * 5000) + field(2, tensor([2], "Float32", F2))), "longer than 4096"),
                (good + field(1, field(1, b"x") + field(2, tensor([2], "Float32", F2)) * 2), "two values"),
                (good + field(1, field(1, b"x") + field(2, field(3, F2))), "without a type"),
                (good + field(1, field(1, b"x") + field(2, field(2, b"Float32"))), "without content"),
                (good + field(1, b"\x08\x01"), "record field of the wrong type"),
                (good + field(1, b"\x0b"), "type that protobuf"),
                (good + field(1, b"\x0c"), "type that protobuf"), (good + field(1, b"\x00\x00"), "invalid field number"),
                (good + field(1, b"\x0a\x7f"), "exceeds its message"),
                (good + field(1, field(1, b"x") + field(2, b"\x10\x01" + field(3, F2))), "tensor field of the wrong type"),
                (good + record("x", [2**64 - 1], "Float32", F2), "negative dimension"),
                (good + record("x", [1] * 33, "Float32", F2), "more than 32 dimensions"),
                (good + field(1, field(1, b"x") + field(3, field(1, tensor([1], "int32", b"1234")) * 4)), "more than keys"),
        ]:
            self.refused(data, pattern)
        for entry, pattern in [(record("x", [3], "Float32", F2), r"8 bytes, which does not match \(3,\) of Float32"),
                               (record("x", [2**40, 2**40], "Float32", F2), "8 bytes, which does not match"),
                               (record("x", [2], "Float99", F2), "unknown type Float99"),
                               (record("x", [2**62], "Float32", F2), "8 bytes, which does not match")]:
            found = self.tool.entries(self.put(good + entry))
            self.assertRegex(found["x"]["problem"], pattern)
            self.assertEqual(found["w"]["shape"], [2])
        # Fields of later MindSpore releases are skipped.
        later = field(1, field(1, b"x") + b"\x48\x05" + field(2, tensor([2], "Float32", F2) + field(9, b"more")) + b"\x55abcd")
        self.assertEqual(self.tool.read(self.put(good + later), "x").tobytes(), F2)
        for end in range(1, len(good)):
            with self.assertRaises(dumptool.Refused, msg=end):
                self.tool.open(self.put(good[:end]))


@unittest.skipUnless(venvs.python("mindspore"), "no build/mindspore-venv: ./dev test makes it where pip can install MindSpore")
class MindSpore(Files):
    def test_saved_by_mindspore(self):
        done = subprocess.run([venvs.python("mindspore"), WRITER, str(self.dir)], capture_output=True, text=True,
                              timeout=4 * harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, entries in json.loads((self.dir / "expected.json").read_text()).items():
            path = self.dir / name
            found = self.tool.entries(path)
            self.assertEqual(list(found), list(entries), name)
            for key, want in entries.items():
                if "text" in want:
                    self.assertEqual(found[key]["text"], want["text"], (name, key))
                    continue
                got = self.tool.ask("read", path, name=key)
                self.assertEqual({part: got[part] for part in want}, want, (name, key))
        self.assertEqual(self.tool.open(self.dir / "sum.ckpt")["notes"], [])
        for name in ("gcm.ckpt", "cbc.ckpt"):
            with self.assertRaisesRegex(dumptool.Refused, f"{name} is encrypted .AES-{name[:3].upper()}."):
                self.tool.open(self.dir / name)


if __name__ == "__main__":
    harness.main()
