# SPDX-License-Identifier: GPL-3.0-or-later
"""Broken and malicious .npy, .npz, safetensors files and indexes: one clear line each, nothing else happens.

Every prefix of a good file is also tried: none may be taken for a complete one.
"""
import io
import json
import os
import pathlib
import struct
import tempfile
import zipfile
import zlib

import dumptool
import harness
import numpy as np


def npy_bytes(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npy(text, data=b"", version=(1, 0), size=None):
    text = text.encode() if isinstance(text, str) else text
    length = len(text) if size is None else size
    return b"\x93NUMPY" + bytes(version) + length.to_bytes(2 if version[0] == 1 else 4, "little") + text + data


def described(descr="'<f4'", order="False", shape="(2,)", more=""):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, {more}}}"


def safetensors(header, data=b"", size=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def tensor(begin, end, dtype="F32", shape=None):
    shape = [(end - begin) // 4] if shape is None else shape
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


class Zip:
    """A hand-made zip file: every field of it can be wrong."""

    def __init__(self):
        self.body, self.central, self.count = b"", b"", 0

    def add(self, name, data, method=0, packed=None, **wrong):
        packed = data if packed is None else packed
        size, csize = wrong.get("size", len(data)), wrong.get("csize", len(packed))
        crc, flags = wrong.get("crc", zlib.crc32(data)), wrong.get("flags", 0)
        at = wrong.get("at", len(self.body))
        local = wrong.get("local_name", name)
        self.body += struct.pack("<IHHHHHIIIHH", 0x04034b50, 20, flags, wrong.get("local_method", method), 0, 0, crc,
                                 wrong.get("local_csize", csize), size, len(local), wrong.get("xlen", 0))
        self.body += local + packed
        self.central += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 20, 20, flags, method, 0, 0, crc, csize, size,
                                    len(name), 0, 0, wrong.get("disk", 0), 0, 0, at) + name
        self.count += 1
        return self

    def bytes(self, **wrong):
        at = wrong.get("at", len(self.body))
        count = wrong.get("count", self.count)
        end = struct.pack("<IHHHHIIH", 0x06054b50, wrong.get("disk", 0), 0, count, count,
                          wrong.get("size", len(self.central)), at, len(wrong.get("comment", b"")))
        return self.body + self.central + wrong.get("before_end", b"") + end + wrong.get("comment", b"")


def deflated(data):
    return zlib.compress(data, 9)[2:-4]


class Attacks(dumptool.Files):
    def prefixes(self, data, step=1):
        """No prefix of a good file opens as a complete one, and none crashes the reader."""
        for end in range(0, len(data), step):
            path = self.put(data[:end])
            with self.assertRaises(dumptool.Refused, msg=end):
                self.tool.open(path)

    def test_npy(self):
        eight = b"\0" * 8
        for data, pattern in [
                (npy(described(), eight, size=60000), "ends within its header of 60000 bytes"),
                (npy(described(), eight, (2, 0), 0xffffffff), "header of 4294967295 bytes exceeds the limit of 65536"),
                (npy(described(), eight, (4, 0)), ".npy version 4.0"),
                (npy("[1, 2]"), "expected a dictionary"),
                (npy("{'descr': '<f4', 'fortran_order': False}"), "shape is missing"),
                (npy(described(more="'x': 1")), "each once"),
                (npy(described(more="'shape': (2,)")), "each once"),
                (npy(described(shape="(-1,)")), "expected a dimension"),
                (npy(described(shape="(True,)")), "expected a dimension"),
                (npy(described(shape="(1.5,)")), "expected a comma"),
                (npy(described(shape="2")), "expected a tuple"),
                (npy(described(shape="(2)")), "expected a comma"),
                (npy(described(shape="(99999999999999999999,)")), "dimension exceeds 64 bits"),
                (npy(described(shape="(1152921504606846976,)")), "do not fit|truncated"),
                (npy(described(shape="(4294967296, 4294967296)")), "64 bits"),
                (npy(described(shape="(0, 4294967296, 4294967296)")), "64 bits"),
                (npy(described(shape="(" + "1, " * 20000 + ")")), "more than 32 dimensions"),
                (npy(described(shape="((((((1,),),),),),)")), "expected a dimension"),
                (npy("{'shape': " + "(" * 60000 + ")"), "expected a dimension"),
                (npy(described("'|O'")), "pickled Python objects are not read"),
                (npy(described("[('a', '<f4'), ('b', '<i4')]")), "structured array.*'a', '<f4'"),
                (npy(described("('<f4', (2,))")), "structured"),
                (npy(described("'<f16'")), "of this size are not supported"),
                (npy(described("'<M8[ns]'")), "dates and times"),
                (npy(described("'<f4444444444444444444'")), "too long|unknown type"),
                (npy(described("'<q4'")), "unknown type"),
                (npy(described("'<f'")), "unknown type"),
                (npy(described("'\\x3cf4'")), "unsupported escape"),
                (npy(described("__import__('os').abort()")), "expected a string"),
                (npy(described(order="1")), "True or False"),
                (npy(described() + "; 1"), "text after"),
                (npy(described(shape="(3,)"), eight), "truncated: 12 bytes of elements expected, 8 found"),
                (npy("{'descr"), "unterminated string"),
                (b"", "is empty"),
                (b"\x93NUMPX\1\0", "not a tensor file of a known format")]:
            self.refused(data, pattern)
        self.prefixes(npy_bytes(np.arange(3)))

    def test_zip(self):
        one = npy_bytes(np.arange(5, dtype="<f4"))
        packed = deflated(one)
        good = Zip().add(b"a.npy", one).add(b"b.npy", one, 8, packed)
        path = self.put(good.bytes(comment=b"hello"))
        self.assertEqual(self.tool.read(path, "b").tolist(), [0, 1, 2, 3, 4])
        fake = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 0, 0, 0, 0, 0)
        huge = npy(described(shape="(268435456,)"))
        for data, pattern in [
                (good.bytes(comment=fake + b"x"), "wrong comment size"),
                (good.bytes(comment=fake), "does not directly follow its directory"),
                (good.bytes(at=10), "does not directly follow its directory"),
                (good.bytes(size=3), "does not directly follow its directory"),
                (good.bytes(before_end=b"gap"), "does not directly follow its directory"),
                (good.bytes(count=1), "bytes after the last directory entry"),
                (good.bytes(count=3), "directory too short for its members"),
                (Zip().add(b"a" * 60 + b".npy", one).bytes(count=2), "no directory entry"),
                (good.bytes(count=60000), "directory too short for its members"),
                (good.bytes(count=0xffff), "without the zip64 record"),
                (good.bytes(disk=1), "multi-part zip file"),
                (Zip().add(b"a.npy", one, disk=1).bytes(), "multi-part zip file"),
                (Zip().add(b"a.npy", one).add(b"a.npy", one).bytes(), "two members named a.npy"),
                (Zip().add(b"a.npy", one).add(b"b.npy", one, at=0).bytes(), "overlaps another"),
                (Zip().add(b"a.npy", one).add(b"b.npy", one, at=20).bytes(), "overlaps another"),
                (Zip().add(b"a.npy", one, at=1 << 30).bytes(), "exceeds the file"),
                (Zip().add(b"a.npy", one, size=500, csize=500).bytes(), "exceeds the file"),
                (Zip().add(b"a.npy", one, size=500).bytes(), "two different sizes"),
                (Zip().add(b"a.npy", one, flags=1).bytes(), "encrypted"),
                (Zip().add(b"a.npy", one, 12).bytes(), "compression method 12"),
                (Zip().add(b"a.npy", one, 8, packed, size=1 << 31).bytes(), "claims to inflate"),
                (Zip().add(b"", one).bytes(), "name that is empty"),
                (Zip().add(b"a\0.npy", one).bytes(), "NUL"),
                (good.bytes()[:-1], "truncated|no end"),
                (b"PK\3\4" + b"\0" * 100, "no end record")]:
            self.refused(data, pattern, format="npz")
        for data, pattern in [
                (Zip().add(b"a.npy", one, local_name=b"b.npy").bytes(), "local header of another member"),
                (Zip().add(b"a.npy", one, local_method=8).bytes(), "contradicts the directory"),
                (Zip().add(b"a.npy", one, local_csize=3).bytes(), "contradicts the directory"),
                (Zip().add(b"a.npy", one, xlen=200).bytes(), "exceeds the file"),
                (Zip().add(b"a.npy", one, crc=5).bytes(), "is damaged: its CRC is not 00000005"),
                (Zip().add(b"a.npy", one, 8, packed, crc=5).bytes(), "is damaged: its CRC"),
                (Zip().add(b"a.npy", one, 8, packed, size=len(one) - 1).bytes(), "more than its size|truncated"),
                (Zip().add(b"a.npy", one, 8, packed, size=len(one) + 1).bytes(), "its data end too early|less than its size"),
                (Zip().add(b"a.npy", one, 8, packed[:-9]).bytes(), "damaged: its data end too early|damaged: invalid"),
                (Zip().add(b"a.npy", one, 8, b"\xff" * 60).bytes(), "damaged: invalid"),
                (Zip().add(b"a.npy", huge, 8, deflated(huge)).bytes(), "truncated"),
                (Zip().add(b"a.npy", one[:40]).bytes(), "ends within its header")]:
            self.refused(data, pattern, read="a")

    def test_zip64_counts(self):
        """The number of members is accepted only if the directory has room for them."""
        plain = Zip().add(b"a.npy", npy_bytes(np.arange(5))).bytes()
        size, start = struct.unpack("<II", plain[-10:-2])
        for count, pattern in [(1, None), (2, "directory too short for its members"), (1 << 32, "claims to have 4294967296 members in 51 bytes"),
                               ((1 << 64) - 1, "claims to have 18446744073709551615 members")]:
            record = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, count, count, size, start)
            locator = struct.pack("<IIQI", 0x07064b50, 0, len(plain) - 22, 1)
            end = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 0xffff, 0xffff, 0xffffffff, 0xffffffff, 0)
            data = plain[:-22] + record + locator + end
            if pattern:
                self.refused(data, pattern, format="npz")
            else:
                self.assertEqual(self.tool.read(self.put(data), "a").tolist(), [0, 1, 2, 3, 4])

    def test_large_member_is_checked_as_it_is_read(self):
        """Its checksum is known when all of it has been read, in any pieces; until then, parts are returned unchecked.
        """
        array = np.arange(400000, dtype="<f4").reshape(1000, 400)
        whole = npy_bytes(array)
        broken = bytearray(whole)
        broken[1200000] ^= 4
        path = self.put(Zip().add(b"a.npy", bytes(broken), crc=zlib.crc32(whole)).add(b"b.npy", whole).bytes())
        for name in "ab":
            self.assertEqual(self.tool.read(path, name, "[3, 1:3]").tolist(), [1201, 1202])
        for _ in range(2):
            with self.assertRaisesRegex(dumptool.Refused, "the member a.npy is damaged: its CRC is not"):
                self.tool.read(path, "a")
            self.assertEqual(self.tool.read(path, "b").tobytes(), array.tobytes())

    def test_zip_bomb_stays_packed(self):
        """A member that claims to inflate too much is refused; one with a wrong size ends at that size."""
        zeros = zlib.compressobj(9, zlib.DEFLATED, -15)
        bomb = zeros.compress(b"\0" * (64 << 20)) + zeros.flush()
        head = npy_bytes(np.zeros(4, "u1"))
        self.refused(Zip().add(b"a.npy", b"", 8, bomb, size=len(head), crc=0).bytes(), "damaged|no .npy header", read="a")
        nested = io.BytesIO()
        with zipfile.ZipFile(nested, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("inner.zip", b"PK\3\4" * 1000)
        self.refused(nested.getvalue(), "not a tensor file of a known format")

    def test_zip_names_are_only_names(self):
        data = Zip().add(b"../../up.npy", npy_bytes(np.arange(2))).add(b"/tmp/\x1b[2Jx.npy", npy_bytes(np.arange(2)))
        path = self.put(data.bytes())
        self.assertEqual(list(self.tool.entries(path)), ["../../up", "/tmp/\x1b[2Jx"])
        self.assertEqual(sorted(os.listdir(self.dir)), sorted(p.name for p in self.dir.iterdir()))
        self.assertFalse((self.dir.parent / "up.npy").exists())

    def test_safetensors(self):
        two = {"a": tensor(0, 8), "b": tensor(8, 16)}
        path = self.put(safetensors(two, b"\0" * 16))
        self.assertEqual(list(self.tool.entries(path)), ["a", "b"])
        a = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
        for data, pattern in [
                (safetensors(two, b"\0" * 16, size=1 << 26), "ends within its header"),
                (safetensors(two, b"\0" * 15), "truncated: b ends at byte 16 of 15"),
                (safetensors(two, b"\0" * 17), "1 bytes after the last tensor"),
                (safetensors({"a": tensor(0, 8), "b": tensor(4, 12)}, b"\0" * 12), "overlap at byte 4"),
                (safetensors({"a": tensor(0, 8), "b": tensor(0, 8)}, b"\0" * 8), "overlap"),
                (safetensors({"a": tensor(0, 8), "b": tensor(12, 16)}, b"\0" * 16), "leave a gap at byte 8"),
                (safetensors({"a": tensor(4, 8)}, b"\0" * 8), "leave a gap at byte 0"),
                (safetensors({"a": tensor(8, 0, shape=[2])}, b"\0" * 8), "a begin and an end"),
                (safetensors({"a": tensor(0, 8, shape=[3])}, b"\0" * 8), "do not match dtype"),
                (safetensors({"a": tensor(0, 8, shape=[1 << 40, 1 << 40])}, b"\0" * 8), "exceeds 64 bits"),
                (safetensors({"a": tensor(0, 8, "F33")}, b"\0" * 8), "unknown element type F33"),
                (safetensors({"a": tensor(0, 1, "F4", [1])}, b"\0"), "do not match dtype"),
                (safetensors({"a": tensor(0, 8, shape=[1] * 33 + [2])}, b"\0" * 8), "more than 32 numbers"),
                (safetensors({"__metadata__": {"a": 1}}), "only contain strings"),
                (safetensors({"__metadata__": []}), "expected an object"),
                (safetensors(a + b',"a":{"dtype":"F32","shape":[],"data_offsets":[8,12]}}', b"\0" * 12), "duplicate tensor"),
                (safetensors(a[:-1] + b',"dtype":"F32"}}', b"\0" * 8), "each once"),
                (safetensors(a[:-1] + b',"more":[[[[[[[[[1]]]]]]]]]}}', b"\0" * 8), "each once"),
                (safetensors(a.replace(b"[2]", b"[2.0]") + b"}", b"\0" * 8), "unsigned integers"),
                (safetensors(a.replace(b"[2]", b"[-2]") + b"}", b"\0" * 8), "unsigned integers"),
                (safetensors(a.replace(b"8]", b"8e0]") + b"}", b"\0" * 8), "unsigned integers"),
                (safetensors(a.replace(b"8]", b"99999999999999999999]") + b"}", b"\0" * 8), "unsigned integers"),
                (safetensors(a.replace(b'"a"', b'"\xff"') + b"}", b"\0" * 8), "not valid UTF-8"),
                (safetensors(b'{"a":{"dtype":"F32"}}'), "data_offsets is missing"),
                (safetensors(b'{"a":[]}'), "expected an object"),
                (safetensors(a, b"\0" * 8), "ends unexpectedly"),
                (safetensors(a + b"}}", b"\0" * 8), "after the end")]:
            self.refused(data, pattern)
        self.refused(struct.pack("<Q", 1 << 60) + b"{" + b" " * 64, "not a tensor file of a known format")
        self.prefixes(safetensors(two, b"\0" * 16))

    def test_sharded_index(self):
        good = safetensors({"a": tensor(0, 8)}, b"\0" * 8)
        outside = pathlib.Path(tempfile.mkdtemp(dir=self.dir))
        (outside / "secret.safetensors").write_bytes(good)
        os.symlink(outside / "secret.safetensors", self.dir / "link.safetensors")
        os.mkfifo(self.dir / "pipe.safetensors")
        (self.dir / "broken.safetensors").write_bytes(good[:-1])
        for name, blanks in (("nested.json", 0), ("deep.json", 100)):
            (self.dir / name).write_text(" " * blanks + json.dumps({"weight_map": {"a": name}}))
        shards = {"../x/a.safetensors": "directories are refused", str(outside / "secret.safetensors"): "directories",
                  "..": "directories", "link.safetensors": "a symbolic link, which is not followed",
                  "pipe.safetensors": "a pipe, not a regular file", "broken.safetensors": "truncated",
                  "nested.json": "JSON, not a tensor file", "deep.json": "JSON, not a tensor file",
                  "gone.safetensors": "No such file"}
        index = {"weight_map": {f"t{i}": name for i, name in enumerate(shards)}}
        path = self.put(json.dumps(index).encode(), "model.safetensors.index.json")
        problems = [entry["problem"] for entry in self.tool.open(path)["entries"]]
        for problem, pattern in zip(problems, shards.values(), strict=True):
            self.assertRegex(problem, pattern)
        for text, pattern in [('{"weight_map": {"a": {"file": "x"}}}', "not mapped to a file name"),
                              ('{"weight_map": {"a": "x", "a": "y"}}', "not a tensor file of a known format"),
                              ('{"weight_map": []}', "not a tensor file of a known format"),
                              ('{"a": 1}', "not a tensor file of a known format")]:
            self.refused(text.encode(), pattern)

    def test_what_is_no_file(self):
        with self.assertRaisesRegex(dumptool.Refused, "is a directory, not a regular file"):
            self.tool.open(self.dir)
        os.mkfifo(self.dir / "fifo")
        with self.assertRaisesRegex(dumptool.Refused, "is a pipe, not a regular file"):
            self.tool.open(self.dir / "fifo")
        with self.assertRaisesRegex(dumptool.Refused, "is a device, not a regular file"):
            self.tool.open("/dev/zero")
        with self.assertRaisesRegex(dumptool.Refused, "No such file"):
            self.tool.open(self.dir / "nothing")


if __name__ == "__main__":
    harness.main()
