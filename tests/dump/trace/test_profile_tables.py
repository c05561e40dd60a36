# SPDX-License-Identifier: GPL-3.0-or-later
"""Output directories of MindSpore's profiler on Ascend, from its documented tables: steps, kernels with types and shapes,
communication, the data pipeline; and tables that are broken or missing."""
import json
import tempfile
import pathlib
import unittest

import harness

KERNELS = """Step Id,Device_id,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types
1,0,2,Default/net/fc1/MatMul-op3,MatMulV2,AI_CORE,1795520585000100.500,40.25,"""\
    '"""64,128;128,256""",FLOAT16;FLOAT16' + """
1,0,2,Default/net/fc1/BiasAdd-op4,BiasAdd,AI_VECTOR_CORE,1795520585000150,4.5,"64,256;256",FLOAT16;FLOAT16
1,0,9,hcom_allReduce__123_0,hcom_allReduce_,HCCL,1795520585000120,60,N/A,N/A
2,0,2,Default/net/fc1/MatMul-op3,MatMulV2,AI_CORE,1795520585001100.500,42,"64,128;128,256",FLOAT16;FLOAT16
"""
STEPS = """Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing
0,1,44.75,30,30,60,25.25,100,0,10
0,2,42,0,0,0,58,100,0,10
"""


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gradb-profile-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def make(self, rank=0, **tables):
        above = self.root / f"host_{4711 + rank}_20260102030405_ascend_ms"
        place = above / "ASCEND_PROFILER_OUTPUT"
        place.mkdir(parents=True)
        (above / f"profiler_info_{rank}.json").write_text("{}")
        for name, text in tables.items():
            name, _, ending = name.rpartition("_")
            (place / f"{name}.{ending}").write_text(text if isinstance(text, str) else json.dumps(text))
        return above

    def gradb(self, *commands, status=0, json_too=True):
        done = harness.run_gradb("-nx", "--batch", *(["--json"] if json_too else []), *harness.typed(*commands))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return harness.records(done) if json_too else done.stdout + done.stderr

    def test_kernels_and_steps(self):
        tabs = KERNELS.replace("00150,", "00150\t,")  # CANN ends times with a tab, so that a spreadsheet shows them whole
        place = self.make(kernel_details_csv=tabs, step_trace_time_csv=STEPS)
        for path in (self.root, place, place / "ASCEND_PROFILER_OUTPUT"):
            opened, operators, steps = self.gradb(f"open {path}", "info timing operators", "info timing steps")
            self.assertEqual((opened["formats"], opened["steps"]), (["profile"], 2))
            found = {op["name"]: (op["type"], op["calls"], round(op["seconds"] * 1e6, 3), op["lane"], op["shape"])
                     for op in operators["operators"]}
            self.assertEqual(found, {
                "Default/net/fc1/MatMul-op3":
                    ("MatMulV2", 2, 82.25, "device", "float16 (64, 128) x (128, 256)"),
                "Default/net/fc1/BiasAdd-op4": ("BiasAdd", 1, 4.5, "device", "float16 (64, 256) x (256,)"),
                "hcom_allReduce__123_0": ("hcom_allReduce_", 1, 60, "communication", "")})
            rows = [(s["step"], *(round(s[key] * 1e6, 3) for key in ("total", "communication", "exposed")))
                    for s in steps["steps"]]
            self.assertEqual(rows, [(1, 100, 60, 30), (2, 100, 0, 0)])

    def test_facts(self):
        self.make(kernel_details_csv=KERNELS, step_trace_time_csv=STEPS,
                  communication_json={"step1": {"p2p": {}, "collective": {
                      "hcom_allReduce__123_0@1": {"Communication Time Info": {
                          "Start Timestamp(us)": 1795520585000120, "Elapse Time(ms)": 0.06, "Wait Time(ms)": 0.02}},
                      "Total Op Info": {"Communication Time Info": {"Elapse Time(ms)": 0.06}}}}},
                  communication_matrix_json={"step1": {"p2p": {}, "collective": {"allreduce-top1@1": {
                      "0-1": {"Transit Size(MB)": 3.5, "Bandwidth(GB/s)": 17.5},
                      "1-0": {"Transit Size(MB)": 3.5, "Bandwidth(GB/s)": 3.25}}}}},
                  dataset_csv="Operation,Stage,Occurrences,Avg. time(us),Custom Info\nBatch,Run,12,350.5,\n",
                  minddata_pipeline_summary_0_json={"op_names": ["Batch"], "bottleneck_warning": ["Batch is slow"],
                                                    "bottleneck_suggestion": "use more workers"})
        text = self.gradb(f"open {self.root}", "info target", json_too=False)
        for line in ("device +computing 43.4 %, communication not hidden 15.0 %, idle 41.6 % of 0.0002 s",
                     "communication.json +1 collectives, 0.06 ms, of which 0.02 ms waiting for others",
                     r"slowest link +1-0, 3.25 GB/s \(allreduce-top1@1\)",
                     "dataset Batch, Run +12 times, 350.5 us each",
                     "bottleneck_warning +Batch is slow", "bottleneck_suggestion +use more workers"):
            self.assertRegex(text, line)

    def test_totals_only(self):
        """Without a trace: what the tables add up."""
        self.make(op_statistic_csv="Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us)\n"
                                   "0,MatMulV2,AI_CORE,4,100.5,20\n",
                  api_statistic_csv="Device_id,Level,API Name,Time(us),Count\n0,acl,aclrtLaunchKernel,50,10\n")
        operators = self.gradb(f"open {self.root}", "info timing operators")[-1]["operators"]
        self.assertEqual([(op["type"], op["lane"], op["calls"], round(op["seconds"] * 1e6, 3)) for op in operators],
                         [("MatMulV2", "device", 4, 100.5), ("aclrtLaunchKernel", "host", 10, 50)])

    def test_ranks(self):
        for rank in range(3):
            self.make(rank, kernel_details_csv=KERNELS)
        opened, ranks = self.gradb(f"open {self.root}", "info ranks")
        self.assertEqual(opened["ranks"], 3)
        self.assertEqual([row["rank"] for row in ranks["ranks"]], [0, 1, 2])

    def test_broken(self):
        self.make(kernel_details_csv=KERNELS + '1,0,2,"never closed')
        text = self.gradb(f"open {self.root}", status=1, json_too=False)
        self.assertRegex(text, r"^error: .*kernel_details\.csv:6: a quote is not closed\n$")
        self.make(1, kernel_details_csv="Name,Duration(us)\nMatMul,abc\n", step_trace_time_csv="Step,Stage\nx,-1\n")
        text = self.gradb(f"open {self.root}", "info target", json_too=False)
        self.assertRegex(text, "1 file skipped")
        self.make(3, step_trace_time_csv=STEPS, communication_json={"s": {"c": {name: {"Communication Time Info": {
            "Start Timestamp(us)": at, "Elapse Time(ms)": 1}} for name, at in (("a", -4e15), ("b", 4e15))}}})
        self.gradb(f"open {self.root}", "info timing", json_too=False)
        self.make(2, communication_json="[1, {", kernel_details_csv=KERNELS)
        text = self.gradb(f"open {self.root}", "info formats", json_too=False)
        self.assertRegex(text, r"communication\.json:1: the JSON ends unexpectedly")


if __name__ == "__main__":
    harness.main()
