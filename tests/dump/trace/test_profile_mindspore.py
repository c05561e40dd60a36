# SPDX-License-Identifier: GPL-3.0-or-later
"""What MindSpore's own profiler writes on a CPU: gradb's totals are those of its tables."""
import csv
import subprocess
import unittest

import harness
import venvs

TRAINING = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn
from mindspore.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler
ms.set_context(mode=ms.GRAPH_MODE if sys.argv[2] == "graph" else ms.PYNATIVE_MODE)
ms.set_device("CPU")
net = nn.SequentialCell(nn.Dense(12, 16), nn.ReLU(), nn.Dense(16, 5))
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
x = ms.Tensor(np.random.rand(8, 12).astype(np.float32))
y = ms.Tensor(np.random.randint(0, 5, 8).astype(np.int32))
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, schedule=schedule(wait=0, warmup=0, active=2, repeat=1, skip_first=1),
             on_trace_ready=tensorboard_trace_handler(sys.argv[1])) as p:
    for _ in range(4):
        step(x, y)
        p.step()
"""


class Profiled(unittest.TestCase):
    def check(self, mode):
        python = venvs.python("mindspore")
        if python is None:
            self.skipTest("no build/mindspore-venv: ./dev makes it where pip can install packages")
        folder = harness.folder_of(self)
        (folder / "train.py").write_text(TRAINING)
        done = subprocess.run([python, "train.py", "out", mode], cwd=folder, capture_output=True, text=True, check=False,
                              timeout=8 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = harness.run_gradb("-nx", "--batch", "--json", *harness.typed(
            f"open {folder}/out", "info timing types", "info timing shapes", "info target", "info memory"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        opened, types, shapes, target, memory = harness.records(done)
        self.assertEqual((opened["formats"], target["framework"]), (["profile"], "MindSpore"))
        table, = folder.glob("out/*_ascend_ms/FRAMEWORK/cpu_ms_memory_record_0.txt")
        rows = list(csv.DictReader(table.open()))
        self.assertGreater(len(rows), 10)
        self.assertEqual([(row["name"], row["allocated"], row["peak"], row["peak_reserved"]) for row in memory["devices"]], [
            ("MindSpore's allocator", int(rows[-1]["Total Allocated(Byte)"]),
             max(int(row["Total Allocated(Byte)"]) for row in rows), max(int(row["Total Reserved(Byte)"]) for row in rows))])
        mine = {row["type"]: (row["calls"], row["seconds"] * 1e3) for row in types["types"]}
        table, = folder.glob("out/*_ascend_ms/FRAMEWORK/cpu_op_type_info_0.csv")
        theirs = {row["op_type"]: (int(row["type_occurrences"]), float(row["total_compute_time"]))
                  for row in csv.DictReader(table.open())}
        self.assertGreater(len(theirs), 10)
        self.assertEqual({kind: calls for kind, (calls, _) in mine.items()},
                         {kind: calls for kind, (calls, _) in theirs.items()})
        for kind, (_, time) in theirs.items():
            self.assertAlmostEqual(mine[kind][1], time, delta=1e-3 + time * 1e-4, msg=kind)
        return shapes["shapes"]

    def test_graph(self):
        shapes = self.check("graph")
        """MindSpore lists shapes by the last part of a name, which both layers share: those are left out."""
        found = {kind: {row["shape"] for row in shapes if row["type"] == kind} for kind in ("ReLU", "BiasAdd")}
        self.assertEqual(found, {"ReLU": {"unknown (8, 16)"}, "BiasAdd": {""}})

    def test_pynative(self):
        self.check("pynative")


if __name__ == "__main__":
    harness.main()
