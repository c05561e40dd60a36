# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory tables of profilers: operator_memory.csv, memory_record.csv and npu_module_mem.csv, as MindSpore's viewers
(ascend_op_memory_viewer, ascend_memory_viewer) and torch_npu write them."""
import csv
import json
import pathlib
import tempfile
import unittest

import harness

HEADERS = ["Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Active Release Time(us)", "Duration(us)",
           "Active Duration(us)", "Allocation Total Allocated(MB)", "Allocation Total Reserved(MB)",
           "Allocation Total Active(MB)", "Release Total Allocated(MB)", "Release Total Reserved(MB)",
           "Release Total Active(MB)", "Stream Ptr", "Device Type"]
EVENTS = [("MatMul", 512, 10, 40), ("ReLU", 1024, 20, 30), ("MatMul", 256, 25, None), ("", 2048, 26, 27),
          ("Grad", 64, 50, None)]  # name, KB, when given and released
BEFORE = 4 << 20  # bytes that were allocated before the recording


def blocks():
    """One row for each block, with the allocator's totals."""
    def held(at):
        return BEFORE + sum(size << 10 for _, size, given, released in EVENTS
                            if given <= at and (released is None or released > at))
    return [HEADERS] + [
        [name, float(size), given * 1.5, "N/A" if released is None else released * 1.5, "N/A",
         "N/A" if released is None else (released - given) * 1.5, "N/A", held(given) / 1048576, 64.0, held(given) / 1048576,
         "N/A" if released is None else held(released) / 1048576, "N/A" if released is None else 64.0, "N/A", 281, "NPU:0"]
        for name, size, given, released in EVENTS]


class Memory(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gradb-memory-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def make(self, above="host_1_20260102030405_ascend_ms", place="ASCEND_PROFILER_OUTPUT", **tables):
        folder = self.root / above / place
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            name, _, ending = name.rpartition("_")
            with open(folder / f"{name}.{ending}", "w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(table)
        return folder

    def text(self):
        done = harness.run_gradb("-nx", "--batch", *harness.typed(f"open {self.root}", "info memory"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def memory(self, status=0):
        done = harness.run_gradb("-nx", "--batch", "--json", *harness.typed(f"open {self.root}", "info memory"))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def test_blocks(self):
        self.make(operator_memory_csv=blocks())
        memory = self.memory()
        self.assertEqual((memory["peak"]["bytes"], memory["peak"].get("name")),
                         (BEFORE + (512 + 1024 + 256 + 2048 << 10), None))
        self.assertEqual({row["name"]: (row["bytes"] >> 10, row["count"]) for row in memory["peak_nodes"]},
                         {"MatMul": (768, 2), "ReLU": (1024, 1), "(no operator recorded)": (2048, 1)})
        self.assertEqual({row["name"]: row["bytes"] >> 10 for row in memory["nodes"]}, {"MatMul": 256, "Grad": 64})
        self.assertEqual(memory["bytes"], 320 << 10)
        self.assertIn("3.75 MiB of it in recorded blocks", memory["peak"]["note"])
        self.assertEqual([(row["name"], row["peak_reserved"]) for row in memory["devices"]], [("NPU:0", 64 << 20)])

    def test_torch_npu(self):
        """It writes rows of what was released, with negative sizes, tabs, and no time of release."""
        self.make(above="host_1_20260102030405_ascend_pt", operator_memory_csv=[
            ["Name", "Size(KB)", "Allocation Time(us)", "Duration(us)", "Allocation Total Allocated(MB)", "Device Type"],
            ["aten::mm", "512", "10\t", "30", "0.5", "NPU:1"], ["aten::mm", "-512", "40\t", "", "0", "NPU:1"],
            ["aten::relu", "1024", "20\t", "", "1.5", "NPU:1"]],
            memory_record_csv=[["Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Device Type"],
                               ["PTA", "10", "2.0", "4.0", "NPU:1"], ["PTA", "20", "1.0", "4.0", "NPU:1"]])
        memory = self.memory()
        self.assertEqual((memory["peak"]["bytes"], memory["peak"]["name"]), (1536 << 10, "aten::relu"))
        self.assertEqual({row["name"]: row["bytes"] >> 10 for row in memory["peak_nodes"]},
                         {"aten::mm": 512, "aten::relu": 1024})
        self.assertEqual([(row["name"], row["allocated"], row["peak"], row["reserved"]) for row in memory["devices"]],
                         [("NPU:1, PTA", 1 << 20, 2 << 20, 4 << 20)])

    def test_records(self):
        """A MB of MindSpore's memory_record.csv is 1000 KB; of the process ("APP") only the reserved bytes are known."""
        kilobytes = {"MindSpore": (2000, 4000), "GE": (1000, 1000), "MindSpore+GE": (3000, 5000)}
        self.make(memory_record_csv=[
            ["Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)", "Device Type"]] + [
            [name, str(at), a / 1000 * at, r / 1000, a / 1000, "NPU:0"]
            for at in (2, 1) for name, (a, r) in kilobytes.items()] + [["APP", "3", 0.0, 7.0, 0.0, "NPU:0"]],
            npu_module_mem_csv=[["Device_id", "Component", "Timestamp(us)", "Total Reserved(KB)", "Device"],
                                ["0", "HCCL", "1", "2048.0", "NPU:0"], ["0", "HCCL", "2", "1024.0", "NPU:0"]])
        memory = self.memory()
        self.assertEqual({row["name"]: (row.get("allocated"), row.get("peak"), row["reserved"]) for row in memory["devices"]}, {
            "NPU:0, MindSpore": (2000 << 10, 4000 << 10, 4000 << 10), "NPU:0, GE": (1000 << 10, 2000 << 10, 1000 << 10),
            "NPU:0, MindSpore+GE": (3000 << 10, 6000 << 10, 5000 << 10), "NPU:0, APP": (None, None, 7000 << 10)})
        self.assertEqual([(row["name"], row["bytes"]) for row in memory["modules"]], [("HCCL", 2 << 20)])
        self.assertFalse({"bytes", "count"} & set(memory))  # who held it is unknown
        self.assertNotIn("tensor", self.text())

    def test_many_components(self):
        self.make(npu_module_mem_csv=[["Component", "Total Reserved(KB)"], *([f"M{i}", "1.0"] for i in range(130))],
                  memory_record_csv=[["Component", "Total Allocated(MB)"], ["GE", "1"]])
        memory = self.memory()
        self.assertEqual(len(memory["modules"]), 128)
        self.assertEqual(memory["notes"], ["2 rows of components after the first 128 (npu_module_mem.csv)"])

    def test_two_recordings(self):
        """Of one process: the memory is that of the first, and nothing is counted twice."""
        for above in ("host_1_20260102030405_ascend_ms", "host_1_20260102030505_ascend_ms"):
            self.make(above=above, operator_memory_csv=blocks())
        memory = self.memory()
        self.assertEqual((memory["bytes"], len(memory["nodes"]), len(memory["devices"])), (320 << 10, 2, 1))
        done = harness.run_gradb("-nx", "--batch", *harness.typed(f"open {self.root}", "info target"))
        self.assertRegex(done.stdout, "host_1_20260102030505_ascend_ms +its memory is not shown")

    def test_unknown_peak(self):
        """Without the allocator's totals nothing is held at a peak."""
        self.make(operator_memory_csv=[["Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)"],
                                       ["MatMul", "512", "10", "40"], ["ReLU", "256", "20", "N/A"]])
        memory = self.memory()
        self.assertEqual((memory["bytes"], memory["devices"]), (256 << 10, []))
        self.assertFalse({"peak", "peak_nodes"} & set(memory))

    def test_broken(self):
        self.make(operator_memory_csv=[HEADERS, ["a", "nan", "1", "", "", "", "", "1"], ["b", "1e300", "-1"], ["c"]],
                  memory_record_csv=[["Component"], ["GE"], ["", "x"]], npu_module_mem_csv=[["Component"], ["HCCL"]],
                  step_trace_time_csv=[["Step", "Stage"], ["1", "5"]])
        done = harness.run_gradb("-nx", "--batch", *harness.typed(f"open {self.root}", "info memory"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: ", done.stderr)


if __name__ == "__main__":
    harness.main()
