# SPDX-License-Identifier: GPL-3.0-or-later
"""The profiler's directory of MindSpore 1.3 to 2.2, with the files of all ranks: as its writers write them (csv.writer,
json.dump, the lines of flops_parser and optime_parser), in the columns of each release; truncated and hostile ones."""
import csv
import json
import pathlib
import shutil
import tempfile
import time
import unittest

import harness

CONV, MATMUL, BIAS = "Default/net-Net/conv-Conv2d/Conv2D-op3", "Default/net-Net/fc-Dense/MatMul-op5", "Default/BiasAdd-op6"
FRAMEWORK = [["task_id", "stream_id", "block_dim", "full_kernel_name", "op_name", "kernel_name", "kernel_type", "subgraph",
              "op_info"]] + [
    [str(number), "5", "1", name, name, name.split("/")[-1], kind, "Default", json.dumps(
        {f"input_{i}": {"format": "NC1HWC0", "data_type": "NUMBER_TYPE_FLOAT16", "shape": shape}
         for i, shape in enumerate(shapes)} | {"output_0": {"format": "", "data_type": "NUMBER_TYPE_FLOAT16", "shape": "9"}})]
    for number, (name, kind, shapes) in enumerate([
        (CONV, "Conv2D", ["8,3,28,28", "6,3,5,5"]), (MATMUL, "MatMul", [[8, 120], [120, 84]]), (BIAS, "BiasAdd", [])])]
DETAIL = [["full_kernel_name", "execution_time", "execution_frequency"],
          [CONV, "0.05651", "4"], [MATMUL, "0.370864", "4"], [BIAS, "0.0015", "8"]]
DETAIL_1_5 = [["full_op_name", "execution_time"], [CONV, "0.05651"], [MATMUL, "0.370864"]]
DETAIL_2_1 = [["full_op_name", "task_duration", "execution_frequency", "task_type"], [CONV, 0.05651, 4, "AI_CORE"]]
DETAIL_ALL = DETAIL_2_1 + [["Default/Add-op9", 0.01, 3, "AI_VECTOR_CORE"], ["Default/GetNext-op1", 0.22, 1, "AI_CPU"],
                           ["hcom_allReduce__1", 0.1, 2, "HCCL"]]
TYPE_2_1 = [["op_type", "total_time", "execution_frequency", "percent"], ["MatMul", 1.085, 9, 0.83], ["GetNext", 0.22, 1, 0.17]]
TYPE = [["kernel_type", "total_time", "execution_frequency", "percent"], ["MatMul", "1.085", 9, "73.80"],
        ["Cast", "0.053395", 13, "3.63"]]
AICPU = [["serial_number", "kernel_type", "total_time", "dispatch_time", "execution_time", "run_start", "run_end"],
         ["1", "GetNext", "0.888", "0.132", "0.22", "4500000010.5", "4500000230.5"]]
TIMELINE = "op_name, stream_id, start_time(ms), duration(ms)\n" \
    f"{CONV},5,450000.3,0.05\n{MATMUL},5,450000.4,0.35\n{CONV},5,450040.5,0.06\n{MATMUL},5,450041.0,0.37\n"
# units of 10 ns; a collective in the backward pass and one behind it
STEPS = [["step_num", "start_point", "end_point", "total", "fp_point", "bp_point", "iteration_interval", "fp_and_bp", "tail",
          "stream_48_0_AllReduce-op7", "stream_48_0_AllReduce-op7_start_point", "stream_48_0_AllReduce-op7_end_point",
          "stream_49_0_parallel", "stream_49_0_parallel_start_point", "stream_49_0_parallel_end_point"],
         [1, 45000030000, 45004030000, 4000000, 45000030000, 45001730000, 0, 1700000, 2300000,
          100000, 45001700000, 45001800000, 0, 0, 0],
         [2, 45004030000, 45004130000, 100000, 45004040000, 45004110000, 10000, 70000, 20000,
          20000, 45004100000, 45004120000, 10000, 45004115000, 45004125000],
         ["-", 45002030000, 45004080000, 2050000, 45002035000, 45002920000, 5000, 885000, 1160000,
          60000, 45002900000, 45002960000, 5000, 22502057500, 22502062500]]
FLOPS = "full_kernel_name, MFLOPs(10^6), GFLOPS(10^9), FLOPS utilization(%) \n" \
    f"{CONV}, 8.4672, 149.83, 0.057\n{MATMUL}, 0.16128, 0.4349, 0.0002\n"
FLOPS_2_1 = [["op_full_name", "MFLOPs(10^6 cube)", "GFLOPS(10^9 cube)", "MFLOPs(10^6 vector)", "GFLOPS(10^9 vector)"],
             [CONV, 8.4672, 149.83, 0.5, 8.8]]
SUMMARY = {"FLOPs": 8167.743, "FLOPS": 9868.936, "FLOPS_Utilization": 3.765}


def written(table, path):
    """A table as the profiler writes it."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(table)


def usage(graphs, total=0):
    """MemoryProto: graphs of (id, static, [(node, [tensor id])], [(id, size, first, last, lifetime)])."""
    def varint(value):
        out = b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])

    def number(field, value):
        return varint(field << 3) + varint(value) if value else b""  # proto3 leaves zeros out

    def part(field, data):
        return varint(field << 3 | 2) + varint(len(data)) + data
    out = b""
    for graph, static, nodes, tensors in graphs:
        body = number(1, graph) + number(2, static)
        for index, (name, outputs) in enumerate(nodes):
            ids = b"".join(map(varint, outputs))
            body += part(3, part(1, name.encode()) + number(2, index) + part(4, ids) + part(5, ids))
        for tensor, size, first, last, lifetime in tensors:
            body += part(4, number(1, tensor) + number(2, size) + part(3, b"Common") + number(4, first) + number(5, last)
                         + part(6, lifetime.encode()))
        out += part(1, body)
    return out + number(2, total)


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gradb-ranks-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "profiler"
        self.root.mkdir()

    def write(self, **files):
        """NAME_ENDING=contents: a table, a text, bytes or an object for JSON."""
        for name, what in files.items():
            name, _, ending = name.rpartition("_")
            path = self.root / f"{name}.{ending}"
            if isinstance(what, list):
                written(what, path)
            elif isinstance(what, dict):
                path.write_text(json.dumps(what))
            elif isinstance(what, bytes):
                path.write_bytes(what)
            else:
                path.write_text(what)

    def gradb(self, *commands, status=0):
        done = harness.run_gradb("-nx", "--batch", "--json", *harness.typed(f"open {self.root}", *commands))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return harness.records(done)[1:]

    def text(self, *commands, status=0):
        done = harness.run_gradb("-nx", "--batch", *harness.typed(f"open {self.root}", *commands))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def operators(self):
        rows, = self.gradb("info timing operators")
        return {row["name"]: (row["type"], row["calls"], round(row["seconds"] * 1e6, 3), row["shape"], row["lane"])
                for row in rows["operators"]}

    def test_means(self):
        """Without single executions: means times executions, with type and shapes of framework_raw."""
        self.write(framework_raw_0_csv=FRAMEWORK, aicore_intermediate_0_detail_csv=DETAIL,
                   aicore_intermediate_0_type_csv=TYPE, aicpu_intermediate_0_csv=AICPU)
        self.assertEqual(self.operators(), {
            CONV: ("Conv2D", 4, 226.04, "float16 (8, 3, 28, 28) x (6, 3, 5, 5)", "device"),
            MATMUL: ("MatMul", 4, 1483.456, "float16 (8, 120) x (120, 84)", "device"),
            BIAS: ("BiasAdd", 8, 12, "", "device"),
            "GetNext": ("GetNext", 1, 220, "", "device")})
        modules, = self.gradb("info timing modules")
        self.assertIn("Default/net-Net/conv-Conv2d", [row["module"] for row in modules["modules"]])

    def test_releases(self):
        """Columns of 1.5 and of 2.1; the table of types alone."""
        self.write(aicore_intermediate_0_detail_csv=DETAIL_1_5)
        self.assertEqual(self.operators(), {CONV: ("Conv2D", 1, 56.51, "", "device"),
                                            MATMUL: ("MatMul", 1, 370.864, "", "device")})
        self.write(aicore_intermediate_0_detail_csv=DETAIL_2_1)
        self.assertEqual(self.operators(), {CONV: ("Conv2D", 4, 226.04, "", "device")})
        (self.root / "aicore_intermediate_0_detail.csv").unlink()
        self.write(aicore_intermediate_0_type_csv=TYPE)
        self.assertEqual(self.operators(), {"MatMul": ("MatMul", 9, 1085, "", "device"),
                                            "Cast": ("Cast", 13, 53.395, "", "device")})

    def test_all_operators(self):
        """Since 2.1 the table of means, and that of types, have all operators; the timeline those on AI cores."""
        rest = {"Default/Add-op9": ("Add", 3, 30, "", "device"), "GetNext": ("GetNext", 1, 220, "", "device"),
                "hcom_allReduce__1": ("hcom_allReduce__1", 2, 200, "", "communication")}
        self.write(aicore_intermediate_0_detail_csv=DETAIL_ALL, aicpu_intermediate_0_csv=AICPU)
        self.assertEqual(self.operators(), rest | {CONV: ("Conv2D", 4, 226.04, "", "device")})
        self.write(output_timeline_data_0_txt=TIMELINE)
        self.assertEqual({name: row[:3] for name, row in self.operators().items()},
                         {name: row[:3] for name, row in rest.items()}
                         | {CONV: ("Conv2D", 2, 110), MATMUL: ("MatMul", 2, 720)})
        (self.root / "aicpu_intermediate_0.csv").unlink()
        self.assertEqual(self.operators()["Default/GetNext-op1"], ("GetNext", 1, 220, "", "device"))
        for path in self.root.iterdir():
            path.unlink()
        self.write(aicore_intermediate_0_type_csv=TYPE_2_1, aicpu_intermediate_0_csv=AICPU)
        self.assertEqual({name: row[1:3] for name, row in self.operators().items()}, {"MatMul": (9, 1085), "GetNext": (1, 220)})

    def test_steps(self):
        """Alone: what is waiting, computing and after; no operator, so nothing says what hides the collectives."""
        self.write(step_trace_raw_0_detail_time_csv=STEPS)
        steps, timing = self.gradb("info timing steps", "info timing")
        self.assertEqual([(row["step"], *(round(row[key] * 1e6, 3) for key in
                                          ("data", "compiled", "rest", "total", "tail", "communication")))
                          for row in steps["steps"]],
                         [(1, 0, 17000, 23000, 40000, 23000, 1000), (2, 100, 700, 200, 1000, 200, 250)])
        self.assertFalse([row for row in steps["steps"] if "exposed" in row or row["measured"]])
        self.assertIn("step_trace_raw", timing["note"])
        self.assertNotIn("set timing", self.text("info timing"))
        self.assertIn("what is open has no times of operators", self.text("info timing operators", status=1))
        inference = [row[:5] + row[6:8] for row in STEPS]
        inference[0][-1] = "fp"
        self.write(step_trace_raw_0_detail_time_csv=inference)
        steps, = self.gradb("info timing steps")
        self.assertEqual([(row["step"], round(row["compiled"] * 1e6, 3), "tail" in row) for row in steps["steps"]],
                         [(1, 17000, False), (2, 700, False)])

    def test_executions(self):
        """Each execution in its step; a collective is hidden as far as an operator runs beside it."""
        self.executions(TIMELINE, STEPS)

    def test_epoch(self):
        """2.2: times since 1970, in a column that calls its milliseconds microseconds."""
        since = 1695866820000
        lines = [line.split(",") for line in TIMELINE.splitlines()]
        later = [[name, stream, repr(float(start) + since), duration] for name, stream, start, duration in lines[1:]]
        points = [i for i, name in enumerate(STEPS[0]) if "point" in name]
        self.executions("\n".join(",".join(line) for line in [["op_name", "stream_id", "start_time(us)", "duration(ms)"], *later]),
                        [STEPS[0]] + [[cell + since * 100000 if i in points and cell else cell for i, cell in enumerate(row)]
                                      for row in STEPS[1:]])

    def executions(self, timeline, steps):
        self.write(framework_raw_0_csv=FRAMEWORK, output_timeline_data_0_txt=timeline, step_trace_raw_0_detail_time_csv=steps,
                   aicore_intermediate_0_detail_csv=DETAIL, aicpu_intermediate_0_csv=AICPU)
        found = self.operators()
        self.assertEqual(found[CONV], ("Conv2D", 2, 110, "float16 (8, 3, 28, 28) x (6, 3, 5, 5)", "device"))
        self.assertEqual(found["AllReduce-op7"][1:3] + found["AllReduce-op7"][4:], (2, 1200, "communication"))
        self.assertEqual(found["GetNext"][1], 1)
        steps, = self.gradb("info timing steps")
        self.assertEqual([(row["step"], round(row["communication"] * 1e6), round(row["exposed"] * 1e6))
                          for row in steps["steps"]], [(1, 1000, 1000), (2, 250, 0)])
        self.assertIn("Wrote 2 steps, 7 operator calls", self.text(f"export trace {self.root}/x.json"))

    def test_another_clock(self):
        """Operators that ran at other times than the steps are of no step."""
        self.write(output_timeline_data_0_txt=TIMELINE.replace("4500", "9900"), step_trace_raw_0_detail_time_csv=STEPS)
        steps, = self.gradb("info timing steps")
        self.assertEqual([row["step"] for row in steps["steps"]], [1, 2])
        self.assertFalse([row for row in steps["steps"] if "exposed" in row])
        self.assertEqual(self.operators()[MATMUL][1:3], (2, 720))

    def test_flops(self):
        self.write(output_timeline_data_0_txt=TIMELINE, flops_0_txt=FLOPS, flops_summary_0_json=SUMMARY)
        text = self.text("info target", f"info node {CONV}")
        self.assertIn("8167.743 MFLOPs in one execution of each operator; operators compute 9868.936 GFLOPS on average, "
                      "steps use 3.765 % of the AI cores", text)
        self.assertRegex(text, r"MFLOPs[ =]+8\.4672")
        self.write(flops_0_txt=FLOPS_2_1, flops_summary_0_json={"cube_FLOPs": 8.4672, "cube_FLOPS": 1.5, "vec_FLOPs": 0.5,
                                                               "vec_FLOPS": 0.1})
        text = self.text("info target", f"info node {CONV}")
        self.assertIn("8.4672 MFLOPs by matrix units, 0.5 by vector units", text)
        self.assertRegex(text, r"GFLOPS \(vector\)[ =]+8\.8")
        self.write(flops_summary_0_json={"FLOPs": 8.5})
        self.assertNotIn("GFLOPS", self.text("info target"))

    def test_many_columns_and_ranks(self):
        """A thousand columns, as pipelines have; each rank is a session, and a broken one leaves the others."""
        wide = [row[:9] for row in STEPS]
        for number in range(340):
            name = f"stream_48_{number}_Receive-op{number}"
            for row in wide:
                row += [name, name + "_start_point", name + "_end_point"] if row is wide[0] else [0, 0, 0]
        for rank in (0, 3, 12):
            self.write(**{f"step_trace_raw_{rank}_detail_time_csv": wide})
        self.write(step_trace_raw_3_detail_time_csv='step_num,total\n1,"never closed')
        ranks, = self.gradb("info ranks")
        self.assertEqual([row["rank"] for row in ranks["ranks"]], [0, 3, 12])
        self.assertRegex(self.text("info formats"), r"step_trace_raw_3_detail_time\.csv:2: a quote is not closed")

    def test_planned_memory(self):
        """The peak is where MindSpore's own parser finds it: static memory and what lives at a node."""
        nodes = [("Conv2D-op3", [1]), ("ReLU-op4", [2]), ("MatMul-op5", [3, 4]), ("SGD-op6", [])]
        tensors = [(1, 4096, 0, 2, "LifeLongNone"), (2, 1024, 1, 1, "LifeLongNone"), (3, 2048, 2, 3, "LifeLongNone"),
                   (4, 512, 2, 2, "LifeLongGraphEnd"), (9, 256, 0, 0, "LifeLongGraphAll"),
                   (5, 8192, 3, 1, "LifeLongNone")]  # the last one has no place
        self.write(memory_usage_0_pb=usage([(7, 0, nodes[:1], tensors[:1]), (1, 10240, nodes, tensors)], 32 << 30))
        memory, = self.gradb("info memory")
        self.assertEqual(memory["peak"], {"bytes": 10240 + 4096 + 2048 + 512 + 256, "name": "MatMul-op5",
                                          "note": "node 3 of 4 of graph 1"})
        self.assertEqual({row["name"]: (row["bytes"], row["count"]) for row in memory["peak_nodes"]},
                         {"(static memory)": (10240, 1), "Conv2D-op3": (4096, 1), "MatMul-op5": (2560, 2),
                          "(of no node)": (256, 1)})
        self.assertEqual((memory["devices"][0]["peak"], memory["devices"][0]["total"]), (17152, 32 << 30))
        whole = usage([(1, 10240, nodes, tensors)])
        for cut in range(1, len(whole) - 1, 7):
            self.write(memory_usage_0_pb=whole[:cut])
            self.text("info formats")
        self.assertRegex(self.text("info formats"), r"memory_usage_0\.pb is truncated or broken after graph 0")
        self.write(memory_usage_0_pb=usage([(1, 0, nodes, [(1, 1 << 62, 0, 3, "LifeLongGraphAll")])]))
        self.assertRegex(self.text("info formats"), "graph 1 is broken, or impossibly large")

    def test_two_recordings(self):
        """Each is a session: nothing is added up."""
        self.write(aicore_intermediate_0_type_csv=TYPE, memory_usage_0_pb=usage([(1, 10240, [("ReLU-op4", [])], [])]))
        shutil.copytree(self.root, self.root / "again" / "profiler")
        ranks, memory, timing = self.gradb("info ranks", "info memory", "info timing operators")
        self.assertEqual(len(ranks["ranks"]), 2)
        self.assertEqual((memory["bytes"], len(memory["devices"])), (10240, 1))
        self.assertEqual({row["name"]: row["calls"] for row in timing["operators"]}, {"MatMul": 9, "Cast": 13})

    def test_summary_alone(self):
        self.write(step_trace_raw_0_detail_time_csv=STEPS,
                   memory_usage_summary_0_json={"capacity": 31.0, "allocations": 5, "deallocations": 5, "peak_mem": 0.5,
                                                "static_mem": 0.25})
        memory, = self.gradb("info memory")
        self.assertEqual([(row["peak"], row["allocated"], row["total"]) for row in memory["devices"]],
                         [(1 << 29, 1 << 28, 31 << 30)])

    def test_what_is_not_read(self):
        """One line says that there was more."""
        self.write(aicore_intermediate_0_type_csv=TYPE, hccl_raw_0_csv="x", flops_scope_0_json="{}")
        text = self.text("info formats")
        self.assertIn("2 files skipped", text)
        self.assertRegex(text, r"hccl_raw_0\.csv.*a table of MindSpore's profiler that gradb does not read")
        for path in self.root.iterdir():
            path.unlink()
        self.write(cpu_op_type_info_0_csv="op_type,type_occurrences\nMatMul,2\n", gpu_activity_data_0_csv="name\n")
        self.assertRegex(self.text(status=1), r"^error: \S+ is profiler output without the tables or the trace that gradb reads")

    def test_many_files(self):
        """Only a trace is worth looking through its directory."""
        for number in range(20000):
            (self.root / f"MatMul.{number}.npy.part").touch()
        self.write(aicore_intermediate_0_type_csv=TYPE)
        started = time.monotonic()
        self.text()
        self.assertLess(time.monotonic() - started, 5)

    def test_hostile(self):
        self.write(framework_raw_0_csv=[FRAMEWORK[0], FRAMEWORK[1][:8] + ['{"input_0": [[['],
                                        FRAMEWORK[2][:8] + ['{"input_0": {"shape": [1e300, -1e300, "x"]}}']],
                   output_timeline_data_0_txt="a,b\n" + f"{CONV},5,-1,nan\n{CONV},5,1e300,0.1\n,,,\n{CONV}\n",
                   step_trace_raw_0_detail_time_csv=[STEPS[0], [1, -5, 3, "x", 99999999999999999999, 1, "", "nan", "inf"]],
                   flops_0_txt=", , ,\n\n", flops_summary_0_json={"FLOPs": "many"},
                   aicore_intermediate_0_detail_csv=[["full_op_name", "execution_time"], [CONV, "-3"], ["", "1"]])
        self.text("info timing", "info timing steps", "info target")
        self.write(flops_summary_0_json="{")
        self.assertRegex(self.text("info formats"), r"flops_summary_0\.json:1: the JSON ends unexpectedly")


if __name__ == "__main__":
    harness.main()
