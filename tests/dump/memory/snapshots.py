# SPDX-License-Identifier: GPL-3.0-or-later
"""Opening snapshots in tests, and the numbers of a snapshot computed once more, the slow way."""
import collections
import itertools
import json
import pickle
import struct
import unittest

import harness

INTERNAL = ("/site-packages/torch/", "/usr/lib/python3")


def place(frames):
    """The user's innermost frame; of no user's, the innermost: (name, FILE:LINE)."""
    for frame in frames:
        if not any(part in frame["filename"] for part in INTERNAL):
            return frame["name"], f"{frame['filename']}:{frame['line']}"
    return (frames[0]["name"], f"{frames[0]['filename']}:{frames[0]['line']}") if frames else ("(no stack recorded)", "")


def replay(trace, blocks):
    """The most bytes that were requested at a time, the event (0: the start), and what held them by place. `blocks`:
    those in use at the end, by address: bytes and frames."""
    live = {}
    for event in trace:  # what was there before: freed without an allocation, or still there
        if event["action"] == "alloc":
            live[event["addr"]] = None
        elif event["action"] == "free_completed" and live.pop(event["addr"], 1):
            live.setdefault("before", []).append((event["addr"], event["size"]))
    old = {address: (size, [{"name": "(allocated before the trace)", "filename": "", "line": 0}])
           for address, size in live.pop("before", [])}
    old.update({address: block for address, block in blocks.items() if address not in live})
    held, best = dict(old), (-1, 0, {})
    for number, event in enumerate([{"action": ""}] + trace):
        if event["action"] == "alloc":
            held[event["addr"]] = (event["size"], event.get("frames", []))
        elif event["action"] == "free_completed":
            del held[event["addr"]]
        total = sum(size for size, _ in held.values())
        if total > best[0]:
            best = (total, number, dict(held))
    return best


def sums(held):
    """Bytes and blocks by place."""
    found = collections.defaultdict(lambda: [0, 0])
    for size, frames in held.values():
        name, where = place(frames)
        where = "" if name == "(allocated before the trace)" else where
        found[name, where][0] += size
        found[name, where][1] += 1
    return {key: tuple(value) for key, value in found.items()}


class Jit:
    """Writes as torch::jit::Pickler does, which torch::cuda::_memory_snapshot_pickled() uses: protocol 2, one MARK for
    all items of a container, even of an empty one, which gets its number after its items."""

    def __init__(self):
        self.out, self.known, self.count = bytearray(b"\x80\x02"), {}, 0

    def number(self, key):
        """Numbers what was just written."""
        self.known[key] = self.count
        self.out += b"q" + bytes([self.count]) if self.count < 256 else b"r" + struct.pack("<I", self.count)
        self.count += 1

    def value(self, value):
        """Any value of a snapshot."""
        key = value if isinstance(value, str) else id(value)
        if isinstance(value, (str, list, dict)) and key in self.known:
            number = self.known[key]
            self.out += b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)
        elif isinstance(value, str):
            self.out += b"X" + struct.pack("<I", len(value)) + value.encode()
            self.number(key)
        elif isinstance(value, (list, dict, tuple)):
            self.out += {list: b"](", dict: b"}(", tuple: b"("}[type(value)]
            for item in itertools.chain(*value.items()) if isinstance(value, dict) else value:
                self.value(item)
            self.out += {list: b"e", dict: b"u", tuple: b"t"}[type(value)]
            if not isinstance(value, tuple):
                self.number(key)
        elif isinstance(value, bool):
            self.out += b"\x88" if value else b"\x89"
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif 0 <= value < 256:
            self.out += b"K" + bytes([value])
        else:
            self.out += b"\x8a\x08" + struct.pack("<q", value)

    def dumps(self, value):
        """The whole pickle."""
        self.value(value)
        return bytes(self.out + b".")


class Snapshots(unittest.TestCase):
    """A folder for snapshots."""

    def setUp(self):
        self.folder = harness.folder_of(self)

    def put(self, snapshot, name="snapshot.pickle", protocol=4):
        """A snapshot, or bytes, as a file."""
        path = self.folder / name
        path.write_bytes(snapshot if isinstance(snapshot, bytes) else pickle.dumps(snapshot, protocol=protocol))
        return path

    def run_on(self, path, *commands, json=False):
        """gradb with the file open."""
        words = [word for command in commands for word in ("-ex", command)]
        return harness.run_gradb("--batch", "-nx", *(["--json"] if json else []), *words, "open", str(path))

    def report(self, path):
        """The record of `info memory`."""
        done = self.run_on(path, "info memory", json=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return next(record for line in done.stdout.splitlines() if line
                    for record in [json.loads(line)] if record["type"] == "memory")

    @staticmethod
    def rows(rows):
        """Bytes and count by place, of all kinds."""
        found = collections.defaultdict(lambda: [0, 0])
        for row in rows:
            found[row["name"], row.get("where", "")][0] += row["bytes"]
            found[row["name"], row.get("where", "")][1] += row["count"]
        return {key: tuple(value) for key, value in found.items()}
