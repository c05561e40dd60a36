# SPDX-License-Identifier: GPL-3.0-or-later
"""Broken and malicious pickles and PyTorch files: one clear line each, nothing is executed, memory stays bounded."""
import io
import os
import pickle
import re
import struct
import tarfile

import dumptool
import harness
from torch_writer import PROTO, named, number, numbers, single, storage, tensor, text, torch_zip


class Attacks(dumptool.Files):
    def problem(self, program, pattern, records=None):
        """The file opens, and its only tensor says why it cannot be read."""
        entry, = self.tool.open(self.put(torch_zip(single(program), records)))["entries"]
        self.assertRegex(entry.get("problem", ""), pattern, f"{program[:120]!r}")
        self.assertNotIn("shape", entry)

    def test_programs(self):
        long = struct.pack("<Q", 1 << 60)
        for program, pattern in [
                (PROTO, "has no STOP"), (PROTO + b"}", "has no STOP"),
                (single(b""), "no result"),
                (single(b"NN"), "more than its result"), (single(b"(N"), "more than its result"),
                (single(b"0"), "too few values"), (single(b"a"), "too few values"),
                (single(b"]a"), "too few values"),
                (single(b"2"), "too few values"), (single(b"N(a"), "too few values"), (single(b"t"), "no MARK"),
                (single(b")Na"), "appended items is a tuple"),
                (single(b"](NNu"), "target of keys is a list"), (single(b")NNs"), "target of keys is a tuple"),
                (single(b"}(Nu"), "without a value"), (single(b"(Nd"), "without a value"),
                (single(b"K\x01)R"), "called object is an integer"),
                (single(b"cos\nsystem\n]R"), "argument tuple is a list"),
                (single(b"}}b"), "object with state is a dict"), (single(b"(N\x90"), "too few"),
                (single(b"](N\x90"), "added items is a list"),
                (single(b"h\x07"), "memo entry 7 does not exist"),
                (single(b"j\xff\xff\xff\xff"), "memo entry 4294967295"),
                (single(b"g12x\n"), "invalid memo number"), (single(b"q\x00"), "too few values"),
                (single(b"X\xff\xff\xff\xffab"), "4294967295 bytes announced"),
                (single(b"\x8d" + long), "1152921504606846976 bytes announced"),
                (single(b"\x8e" + long), "announced"),
                (single(b"\x96" + long), "announced"), (single(b"T\xff\xff\xff\xff"), "negative length"),
                (single(b"\x8b\xff\xff\xff\xff"), "negative length"),
                (single(b"\x8b\xff\xff\xff\x7f"), "announced"),
                (single(b"\x95" + long), "frame that exceeds"), (b"\x80\x09.", "protocol 9|not a tensor file"),
                (single(b"cos\nsystem"), "not terminated"), (single(b"Iabc\n"), "other characters than digits"),
                (single(b"I\n"), "without digits"),
                (single(b"Fx\n"), "invalid float"), (single(b"Sabc\n"), "without quotes"),
                (single(b"\xff"), "0xff is not a pickle opcode"),
                (single(b"(cos\nsystem\no"), "requires a running Python"),
                (single(b"(ios\nsystem\n"), "requires a running Python"),
                (single(b"\x82\x01"), "requires a running Python"),
                (single(b"\x83\x01\x01"), "requires a running Python"),
                (single(b"\x84\x01\x01\x01\x01"), "requires a running Python"),
                (single(b"\x97"), "requires a running Python"),
                (single(b"N\x98"), "requires a running Python"), (single(b"NN\x93"), "class name is None"),
                (single(named("x" * 5000, "y")), "longer than 4096 bytes"),
                (single(text("a\0b") + text("c") + b"\x93"), "broken"),
                (PROTO + b"N" * 1000001 + b".", "more than 1000000 values on the stack"),
                (PROTO + b"(" * 1000001 + b".", "more than 1000000 open MARKs"),
        ]:
            self.refused(torch_zip(program), "data.pkl: byte [0-9]+: .*(" + pattern + ")|" + pattern)
            if len(program) > 3 and program[1] < 6:
                self.refused(program, pattern)

    def test_nothing_is_run(self):
        mark = self.dir / "was-run"

        class Evil:
            def __reduce__(self):
                return os.system, (f"touch {mark}",)

        for protocol in (0, 2, 4):
            data = pickle.dumps({"w": Evil(), "x": 1}, protocol)
            answer = self.tool.open(self.put(torch_zip(data)))
            self.assertEqual([entry["name"] for entry in answer["entries"]], ["w", "x"])
            self.assertRegex(answer["notes"][0], "SUSPICIOUS: (posix|os).system at byte [0-9]+ of the pickle: .*was not run")
        for module, name in (("builtins", "eval"), ("__builtin__", "execfile"), ("subprocess", "Popen"), ("os.path", "join"),
                             ("torch.hub", "load"), ("functools", "partial"), ("builtins", "getattr"),
                             ("ctypes", "CDLL"),
                             ("operator", "methodcaller"), ("runpy", "run_path"),
                             ("builtins", "exec.__call__")):
            answer = self.tool.open(self.put(torch_zip(single(named(module, name) + b")R"))))
            self.assertRegex(answer["notes"][0], "SUSPICIOUS: " + re.escape(f"{module}.{name}"))
        for module, name in (("torch", "FloatStorage"), ("collections", "OrderedDict"), ("torch", "float32")):
            self.assertEqual(self.tool.open(self.put(torch_zip(single(named(module, name) + b")R"))))["notes"], [])
        self.assertFalse(mark.exists())

    def test_tensors(self):
        for program, pattern in [
                (tensor(storage(kind="module")), "no valid storage"),
                (tensor(b"N"), "no valid storage"),
                (tensor(storage(cls="QuadStorage")), "unknown class QuadStorage"),
                (tensor(storage("1")), "no record data/1"),
                (tensor(storage("../x")), "key of its storage is invalid"),
                (tensor(storage("a" * 65)), "key of its storage"),
                (tensor(storage("")), "key of its storage"),
                (tensor(storage(numel=7)), "7 elements of float32, 28 bytes, but has 24"),
                (tensor(storage(numel=-1)), "no valid storage"),
                (tensor(storage(numel=2**62)), "too large|and has 24"),
                (tensor(storage(location="meta")), "meta device"), (tensor(offset=1), "elements 1 to 6"),
                (tensor(offset=-1), "offset in the storage is invalid"), (tensor(stride=(4, 1)), "elements 0 to 6"),
                (tensor(stride=(-3, 1)), "elements -3 to"), (tensor(size=(2**40, 2**40)), "64 bits|do not fit"),
                (tensor(size=(-2, 3)), "negative dimension -2"),
                (tensor(size=[1] * 40, stride=[1] * 40), "more than 32 dim"),
                (tensor(size=(2,)), "strides do not match"), (tensor(stride=(2**62, 2**62)), "64 bits"),
                (named("torch._utils", "_rebuild_tensor_v2") + b")R", "shape is invalid"),
                (named("torch._utils", "_rebuild_parameter") + b"(N\x88NtR", "not a tensor"),
                (named("torch._utils", "_rebuild_parameter") + b"(" + named("os", "system") + b")R\x88NtR", "unknown function os.system"),
                (tensor(function="_rebuild_tensor_v3"), "element type"),
                (named("torch._utils", "_rebuild_sparse_tensor") + b"(NNtR", "unknown sparse layout"),
                (named("torch._utils", "_rebuild_qtensor") + b"(" + storage() + b"K\x00" + numbers((2, 3)) + numbers((3, 1)) +
                 b")\x89NtR", "unknown kind of quantisation"),
        ]:
            self.problem(program, pattern)
        # Expanded to 10**12 elements, still only the slice is read.
        path = self.put(torch_zip(single(tensor(size=(10**6, 10**6), stride=(0, 0)))))
        self.assertEqual(self.tool.open(path)["entries"][0]["shape"], [10**6, 10**6])
        self.assertEqual(self.tool.read(path, slice="[5, 7:9]").tobytes(), bytes(8))
        with self.assertRaisesRegex(dumptool.Refused, "bytes"):
            self.tool.read(path, max=1 << 20)

    def test_containers(self):
        good = single(tensor())
        for data, pattern in [
                (torch_zip(good, **{"constants.pkl": good}), "TorchScript program"),
                (b"PYTORCH1" + bytes(20), "TorchScript"),
                (torch_zip(good, byteorder="middle"), "byteorder is 'middle'"),
                (torch_zip(good, byteorder="x" * 100), "byteorder of 100 bytes"),
        ]:
            self.refused(data, pattern)
        note, = self.tool.open(self.put(torch_zip(good + b"more")))["notes"]
        self.assertEqual(note, "4 bytes after the end of data.pkl's pickle")
        whole = torch_zip(good)
        for end in range(0, len(whole), 7):
            with self.assertRaises(dumptool.Refused, msg=end):
                self.tool.open(self.put(whole[:end]))

    def test_sharing(self):
        """Containers within themselves, and very often within each other."""
        loop = self.tool.open(self.put(torch_zip(single(b"}q\x00(" + text("self") + b"h\x00" + text("w") + tensor() + b"u"))))
        self.assertEqual([entry["name"] for entry in loop["entries"]], ["w"])
        # Sixty lists, each twice in the next: 2 ** 60 names, for nothing and for something.
        for leaf, pattern in ((b"}", "contain each other so often that there are more than 16000000"),
                              (b"]", "too many for its size")):
            lists = leaf + b"q\x00"
            for i in range(60):
                lists += b"0](h" + bytes([i, ord("h"), i]) + b"eq" + bytes([i + 1])
            self.refused(torch_zip(single(lists)), pattern)
        # Thousands of objects that share one state, each searched: that counts, too.
        ordered = named("collections", "OrderedDict") + b")R"
        state = ordered + b"K\x01K\x02s" * 20000 + b"q\x040"
        objects = b"(" + (ordered + b"K\x01K\x02sh\x04b") * 1000 + b"l"
        self.refused(torch_zip(single(state + objects)), "contain each other so often")
        deep = PROTO + b"(" * 900 + tensor() + b"l" * 900 + b"."
        answer = self.tool.open(self.put(torch_zip(deep)))
        self.assertEqual(answer["entries"], [])
        self.assertRegex(answer["notes"][0], "levels beyond 256")

    def test_distributed(self):
        """Hundreds of thousands of equal places, and tensors that share very many pieces."""
        listing = "torch.distributed.checkpoint.metadata"

        def made(name, **state):
            return named(listing, name) + b")\x81}(" + b"".join(text(key) + value for key, value in state.items()) + b"ub"

        piece = made("ChunkStorageMetadata", offsets=numbers((0,)), sizes=numbers((1,)))
        index = made("MetadataIndex", fqn=text("w"), offset=numbers((0,)))
        place = made("_StorageInfo", relative_path=text("file"), offset=number(0), length=number(1))
        whole = made("TensorStorageMetadata", size=numbers((60000,)), chunks=b"](" + piece + b"q\x01" + b"h\x01" * 59999 + b"e",
                     properties=made("TensorProperties", dtype=named("torch", "float32")))
        tensors = b"}(" + text("w") + whole + b"q\x02" + b"".join(text(f"w{i}") + b"h\x02" for i in range(200)) + b"u"
        places = b"}(" + index + b"q\x03" + place + b"q\x04" + b"h\x03h\x04" * 200000 + b"u"
        self.put(b"x", "file")
        path = self.put(single(made("Metadata", state_dict_metadata=tensors, storage_data=places)), ".metadata")
        answer = self.tool.open(path)
        self.assertEqual((answer["format"], len(answer["entries"])), ("torch-dcp", 201))
        self.assertRegex(answer["entries"][0]["problem"], "its 60000 pieces are not consecutive rows")
        self.assertRegex(answer["entries"][1]["problem"], "does not say in which file")
        self.assertRegex(answer["entries"][200]["problem"], "more than 8388608 pieces")
        fields = b"}(" + b"".join(text(f"x{i}") + b"N" for i in range(65)) + text("fqn") + text("w") + b"u"
        places = b"}(" + named(listing, "MetadataIndex") + b")\x81" + fields + b"b" + place + b"u"
        path = self.put(single(made("Metadata", state_dict_metadata=b"}" + text("w") + b"Ns", storage_data=places)), ".metadata")
        self.assertRegex(self.tool.open(path)["entries"][0]["problem"], "not a tensor, and .metadata does not say")

    def legacy(self, program=None, keys=(b"0",), data=None):
        program = single(tensor(b"(" + text("storage") + named("torch", "FloatStorage") + text("0") + text("cpu") +
                                number(6) + b"NtQ")) if program is None else program
        data = struct.pack("<q", 6) + bytes(range(24)) if data is None else data
        return bytes.fromhex("80028a0a6cfc9c46f9206aa850192e") + single(b"M\xe9\x03") + \
            single(b"}" + text("little_endian") + b"\x88s") + program + single(b"](" + b"".join(map(text, keys)) + b"e") + data

    def test_legacy(self):
        whole = self.legacy()
        self.assertEqual(self.tool.read(self.put(whole)).tobytes(), bytes(range(24)))
        for data, pattern in [
                (self.legacy(data=struct.pack("<q", -1)), "number of elements"),
                (self.legacy(data=struct.pack("<q", 2**62)), "number of elements|storage of"),
                (self.legacy(data=struct.pack("<q", 60) + bytes(24)), "a storage of 240 bytes begins here"),
                (self.legacy(keys=(b"0", b"0"), data=(struct.pack("<q", 6) + bytes(24)) * 2), "a duplicate key"),
                (self.legacy(keys=(b"7",)), "a key that no tensor uses"),
                (self.legacy().replace(b"M\xe9\x03", b"M\xe8\x03"), "file version is not 1001"),
                (self.legacy().replace(b"\x88s", b"Ns"), "byte order is missing"),
        ]:
            self.refused(data, pattern)
        self.assertIn("no storage 0", self.tool.open(self.put(self.legacy(keys=(), data=b"")))["entries"][0]["problem"])
        short = self.tool.open(self.put(self.legacy(data=struct.pack("<q", 5) + bytes(20))))
        self.assertIn("6 elements", short["entries"][0]["problem"])
        for end in range(15, len(whole)):
            with self.assertRaises(dumptool.Refused, msg=end):
                self.tool.open(self.put(whole[:end]))
        cut = self.tool.open(self.put(whole[:-1]), partial=True)
        self.assertIn("truncated before storage 0", cut["entries"][0]["problem"])

    def tar(self, kind=tarfile.REGTYPE, rank=2, shape=(2, 3), stride=(3, 1), offset=0, count=6, link=""):
        out = io.BytesIO()
        pieces = {
            "storages": single(b"K\x01") + single(b"(" + number(5) + text("cpu") + named("torch", "FloatStorage") + b"t") +
            struct.pack("<q", count) + bytes(range(24)) + single(b"]"),
            "tensors": single(b"K\x01") + single(b"(" + number(9) + number(5) + named("torch", "FloatTensor") + b"t") +
            struct.pack("<ii", rank, 0) + struct.pack("<2q", *shape) + struct.pack("<2q", *stride) + struct.pack("<q", offset),
            "pickle": single(b"}" + text("w") + number(9) + b"Qs")}
        with tarfile.open(fileobj=out, mode="w:", format=tarfile.PAX_FORMAT) as target:
            for name, data in pieces.items():
                info = tarfile.TarInfo(name)
                info.size, info.type, info.linkname = len(data), kind, link
                target.addfile(info, io.BytesIO(data))
        return out.getvalue()

    def test_oldest(self):
        path = self.put(self.tar())
        self.assertEqual(self.tool.open(path)["format"], "torch-tar")
        self.assertEqual(self.tool.read(path, "w").tobytes(), bytes(range(24)))
        self.assertEqual(self.tool.read(path, "w", "[1]").tobytes(), bytes(range(12, 24)))
        self.assertIn("elements 1 to 6", self.tool.open(self.put(self.tar(offset=1)))["entries"][0]["problem"])
        for data, pattern in [(self.tar(kind=tarfile.SYMTYPE, link="/etc/passwd"), "not a regular file|header of a tar member"),
                              (self.tar(rank=99), "too many dimensions"),
                              (self.tar(rank=-1), "too many dimensions"),
                              (self.tar(count=70), "exceeds its member"),
                              (self.tar(count=-1), "exceeds"),
                              (self.tar(offset=-1), "first element")]:
            self.refused(data, pattern)
        whole = self.tar()
        for end in range(512, 2560, 64):
            with self.assertRaises(dumptool.Refused, msg=end):
                self.tool.open(self.put(whole[:end]))

    def test_a_pickle_alone(self):
        for protocol in (2, 3, 4, 5):
            answer = self.tool.open(self.put(pickle.dumps({"a": [1, 2], "b": {"c": "x"}}, protocol)))
            self.assertEqual([(entry["name"], entry["text"]) for entry in answer["entries"]], [("a", "[1, 2]"), ("b.c", "'x'")])
        entry, = self.tool.open(self.put(single(tensor())))["entries"]
        self.assertIn("a bare pickle has none", entry["problem"])


if __name__ == "__main__":
    harness.main()
