# SPDX-License-Identifier: GPL-3.0-or-later
"""Broken and malicious memory snapshots: one clear line each, nothing is run, time and memory stay bounded."""
import copy
import pickle
import resource
import struct
import unittest

import harness
import snapshots
from snapshot_writer import Device, snapshot, train

MEMORY = 400 << 20  # bytes of address space on top of what gradb needs without a file


class Attack:
    """An object whose unpickling would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def small():
    """A snapshot of a short training."""
    device = Device()
    train(device, 2, layers=2)
    return snapshot(device)


class Attacks(snapshots.Snapshots):
    def refused(self, data, pattern, protocol=4):
        """The file is refused with one line."""
        path = self.put(data, protocol=protocol)
        done = self.run_on(path, "info memory")
        self.assertEqual(done.returncode, 1, done.stdout)
        line, = done.stdout.splitlines() + done.stderr.splitlines()
        self.assertRegex(line, r"^error: .*snapshot\.pickle: " + pattern)

    def changed(self, change, pattern):
        """The same for a good snapshot that is changed."""
        found = copy.deepcopy(small())
        change(found)
        self.refused(found, pattern)

    def test_code_is_refused(self):
        victim = self.folder / "written"
        for protocol, pattern in ((2, "byte [0-9]+: GLOBAL of io.open: refused"),
                                  (4, "byte [0-9]+: STACK_GLOBAL of io.open: refused")):
            found = small()
            found["user"] = Attack(victim)
            self.refused(found, pattern, protocol)
        start = pickle.dumps({"segments": [{"device": 0}]}, protocol=2)[:-4]
        for code, pattern in ((b"cos\nsystem\n", "GLOBAL of os.system: refused"),
                              (b"(ios\nsystem\n", "INST of os.system: refused"), (b"(o", "OBJ: refused"),
                              (b"NNR", "REDUCE: refused"), (b"Nb", "BUILD: refused"), (b"\x82\x01", "EXT1: refused"),
                              (b"\x97", "NEXT_BUFFER: refused"), (b"NQ", "BINPERSID: refused")):
            self.refused(start + code, "byte [0-9]+: " + pattern)
        self.assertFalse(victim.exists())

    def test_wrong_values(self):
        segment = ("segments", 0)
        block = (*segment, "blocks", 0)
        event = ("device_traces", 0, 1)
        for where, key, value, pattern in (
                (segment, "total_size", -1, '"total_size" of the segment is -1: negative'),
                (segment, "total_size", 1 << 60, '"total_size" of the segment is [0-9]+: more than any device'),
                (segment, "total_size", 1 << 70, '"total_size" of the segment is an integer beyond 64 bits'),
                (segment, "total_size", "x", '"total_size" of the segment is a string'),
                (segment, "total_size", 512, "the blocks of the segment at 0x7f0000000000 have more than its 512"),
                (segment, "total_size", 1 << 40, "the blocks of the segment at .* have [0-9]+ bytes, the segment"),
                (segment, "device", -1, "-1 is not the number of a device"),
                (segment, "device", 1 << 20, "1048576 is not the number of a device"),
                (segment, "device", "cuda", '"device" of the segment is a string'),
                (segment, "address", 1.5, '"address" of the segment is a float'),
                (segment, "blocks", {}, '"blocks" of the segment is a dict'),
                (segment, "blocks", [1, 2], '"blocks" of the segment has other items'),
                (segment, "blocks", None, '"blocks" of the segment is None'),
                (block, "size", -512, '"size" of the block is -512: negative'),
                (block, "size", None, "."),
                (block, "state", "lost", '"lost" is not a state of a block'),
                (block, "state", 3, '"state" of the block is an integer'),
                (block, "requested_size", 1 << 40, "a block of [0-9]+ bytes for a request of"),
                (block, "frames", "stack", '"frames" of the block is a string'),
                (block, "frames", [{"filename": 1, "line": 2, "name": "f"}], '"filename" of the frame is an integer'),
                (block, "frames", [{"filename": "f", "line": 2}], 'the frame has no "name"'),
                (block, "frames", [None, None], '"frames" of the block is a list'),
                (event, "size", -3, '"size" of the event is -3: negative'),
                (event, "size", "3", '"size" of the event is a string'),
                (event, "action", None, '"action" of the event is None'),
                (event, "addr", [], '"addr" of the event is a list'),
                (event, "time_us", "now", '"time_us" of the event is a string')):
            def change(found, where=where, key=key, value=value):
                for step in where:
                    found = found[step]
                found[key] = value
            with self.subTest(where=where, key=key, value=value):
                self.changed(change, "byte [0-9]+: " + pattern)

    def test_wrong_structure(self):
        def overlap(found):
            found["segments"][1]["address"] = found["segments"][0]["address"] + 4096

        def twice(found):
            found["segments"].append(found["segments"][0])

        def mixed(found):
            found["device_traces"][0][1] = found["segments"][0]["blocks"][0]

        for change, pattern in (
                (overlap, "the segments at 0x[0-9a-f]+ and 0x[0-9a-f]+ of device 0 overlap"),
                (twice, "5 segments, of which 6 are in"),
                (mixed, "a container is used again"),
                (lambda found: found.update(device_traces=[[1, 2], [3]]), '"device_traces" of the snapshot'),
                (lambda found: found["device_traces"].append(found), "a list contains lists of events and other values"),
                (lambda found: found["device_traces"][0].append(3), "a list contains events and other values"),
                (lambda found: found["segments"][0].pop("total_size"), 'the segment has no "total_size"'),
                (lambda found: found["segments"][0]["blocks"][0].pop("size"), "."),
                (lambda found: found["device_traces"][0][0].pop("size"), 'the event has no "size"')):
            with self.subTest(pattern=pattern):
                self.changed(change, "byte [0-9]+: (" + pattern + ")")

    def test_programs(self):
        head = b"\x80\x04}\x94(\x8c\x08segments\x94]\x94(}\x94(\x8c\x06device\x94K\x00"
        long = struct.pack("<Q", 1 << 60)
        for program, pattern in (
                (head, "the pickle has no STOP"), (head + b"\xff", "0xff is not a pickle opcode"),
                (head + b"\x8d" + long, "1152921504606846976 bytes announced"),
                (head + b"\x8a\xff\x01", "255 bytes announced"), (head + b"u.", "the pickle ends with"),
                (head + b"\x8c\x06device\x94K\x00u", 'a dict has the key "device" twice'),
                (head + b"Nu", "a key without a value"), (head + b"h\x77", "memo entry 119 does not exist"),
                (head + b"r\xff\xff\xff\xff", "more than 268435456 memo entries"),
                (head + b"r\xff\xff\xff\x00", "memo entry 16777215 after entry"),
                (head + b"u" + b"0", "."),  # the segment misses its keys, then the list gets none
                (head + b"a", "the target of appended items is a string"), (head + b"1e1e1", "no MARK|appended|too few"),
                (head + b"u2e}", "."), (head + b"S'abc'\n", "a pickle of protocol 0"),
                (head + b"(" * 1_000_010, "more than 1000000 open MARKs"),
                (head + b"]" * 1_000_010, "more than 1000000 (values|lists)"),
                (head + b"N" * 1_000_010, "more than 1000000 values on the stack")):
            with self.subTest(pattern=pattern):
                self.refused(program, "byte [0-9]+: (" + pattern + ")")

    def test_truncated_anywhere(self):
        data = pickle.dumps(small(), protocol=2)
        for size in range(120, len(data), 997):
            self.refused(data[:size], "byte [0-9]+: ")

    def test_bombs_need_little_memory(self):
        head = b"\x80\x02}q\x00(X\x08\x00\x00\x00segmentsq\x01]q\x02(}q\x03(X\x06\x00\x00\x00device"
        if b"__asan_init" in (harness.BUILD / "src" / "gradb").read_bytes():  # it reserves far more
            self.skipTest("needs a limit of the address space")
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, limits[1]))
        try:
            for program, pattern in (
                    (head + b"N\x94" * 3_000_000, "."),  # numbered values
                    (head + b"}0" * 3_000_000, "."),  # dicts that nobody keeps
                    (head + b"]q\x050h\x05" * 300_000, "."),
                    (head + b"".join(b"X\x08\x00\x00\x00%08d0" % i for i in range(300_000)), ".")):
                self.refused(program, "byte [0-9]+: " + pattern)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)


if __name__ == "__main__":
    harness.main()
