# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots that PyTorch's own writer wrote, and PyTorch's own tools on the same snapshot, for both releases."""
import json
import pickle
import re
import subprocess
import sys

import harness
import snapshots
from snapshot_writer import Device, snapshot, train

sys.path.insert(0, str(harness.SOURCE / "tests" / "torch"))
import torches  # noqa: E402

# The snapshot takes the place of the device, which there need not be.
WRITE = """
import pickle, sys, torch
found = pickle.load(open(sys.argv[1], "rb"))
torch.cuda.memory._snapshot = lambda *args, **kwargs: found
if hasattr(torch.cuda.memory, "_dump_snapshot"):
    torch.cuda.memory._dump_snapshot(sys.argv[2])
else:
    pickle.dump(torch.cuda.memory._snapshot(), open(sys.argv[2], "wb"))
"""
TOOLS = """
import io, json, pickle, sys
from torch.cuda import _memory_viz as viz
found, lines = pickle.load(open(sys.argv[1], "rb")), io.StringIO()
for segment in found["segments"]:
    viz._write_blocks(lines, "", segment["blocks"])
print(json.dumps({"lines": lines.getvalue(), "segsum": viz.segsum(found) if hasattr(viz, "segsum") else "",
                  "trace": viz.trace(found) if hasattr(viz, "trace") else ""}))
"""


def size_text(size):
    """As segsum writes it."""
    for unit in ("", "Ki", "Mi", "Gi"):
        if size < 1024:
            return f"{size:3.1f}{unit}B"
        size /= 1024
    return f"{size:.1f}TiB"


@torches.both
class Torch(torches.Case, snapshots.Snapshots):
    def setUp(self):
        torches.Case.setUp(self)
        snapshots.Snapshots.setUp(self)

    def python_run(self, script, *args):
        """What the script prints under this PyTorch."""
        return subprocess.run([str(self.python), "-W", "ignore", "-c", script, *map(str, args)], check=True, text=True,
                              capture_output=True, timeout=harness.DEADLINE).stdout

    def written(self, found):
        """The file that PyTorch writes of a snapshot."""
        path = self.folder / "dump_snapshot.pickle"
        self.python_run(WRITE, self.put(found, "given"), path)
        return path

    def test_its_tools_count_the_same(self):
        device = Device()
        train(device, 4, leak=70_000)
        device.oom(1 << 33, 1 << 20, "activations")
        path = self.written(snapshot(device, old=torches.release_of(self.python) < (2, 1)))
        report = self.report(path)
        told = json.loads(self.python_run(TOOLS, path))
        row, = report["devices"]
        stacks = [line.rsplit(" ", 1) for line in told["lines"].splitlines() if ";active_allocated" in line]
        self.assertEqual(sum(int(size) for _, size in stacks), row["allocated"])
        if torches.release_of(self.python) < (2, 1):
            return
        totals = dict(re.findall(r"^(segments|total_\w+): (\S+)", told["segsum"], re.M))
        self.assertEqual(totals["segments"], str(row["segments"]))
        self.assertEqual(totals["total_reserved"], size_text(row["reserved"]))
        self.assertEqual(totals["total_allocated"], size_text(row["requested"]))
        self.assertEqual(totals["total_free"], size_text(row["unused"] + row["allocated"] - row["requested"]))
        events = re.search(r"^(\d+) entries", told["trace"], re.M)
        self.assertIn(f"of {events.group(1)} on device 0", report["peak"]["note"])
        asked, free = re.search(r"OutOfMemoryError # (\S+) requested, (\S+) free", told["trace"]).groups()
        self.assertEqual((asked, free), (size_text(report["oom"]["asked"]), size_text(report["oom"]["free"])))
        self.assertEqual(sum(int(size) for stack, size in stacks if stack.endswith("<gaps>")),
                         row["allocated"] - row["requested"])
        for node in report["nodes"]:
            spot = f"{node['where'].rsplit('/', 1)[1]}:{node['name']}"
            held = sum(int(size) for stack, size in stacks if spot in stack)
            self.assertLessEqual(held, node["bytes"])
            self.assertLess(node["bytes"] - held, 512 * node["count"])

    def test_written_by_each_release(self):
        device = Device()
        train(device, 4, leak=70_000)
        for old in (False, True):
            found = snapshot(device, old=old)
            path = self.written(found)
            self.assertEqual(pickle.loads(path.read_bytes()), found)
            self.assertEqual(self.report(path), self.report(self.put(found, "dump_snapshot.pickle")))


if __name__ == "__main__":
    harness.main()
