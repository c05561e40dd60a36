# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the seeds of fuzz_ms_dump into tests/fuzz/corpus/ms_dump: PYTHONPATH=tests/dump python3
tests/dump/mindspore/make_ms_corpus.py"""
import pathlib

import ms_writer as writer
import numpy as np

TO = pathlib.Path(__file__).resolve().parents[2] / "fuzz" / "corpus" / "ms_dump"


def main():
    """One file a seed; the first byte says what the rest is."""
    graph = writer.graph("g", [writer.node(1, ["x", "w"], "Conv2D", "Default/n/Conv2D-op1", (2, 3)),
                               writer.node(2, ["1"], "ReLU", "Default/n/ReLU-op2", (2, 3), "# In file a.py(3)\n")],
                         [("x", (2,)), ("w", (3, 1))])
    full, few = writer.Statistic(writer.ALL), writer.Statistic(["L2Norm Value", "Max Value"], comma=True)
    whole = writer.WholeGraphStatistic()
    for table in (full, few, whole):
        table.add("Add", "Add-op1", 1700000000000000, "output", 0, np.array([[1, -2], [np.nan, np.inf]], "f4"))
    seeds = {
        "name": b"\0Conv2D.Default_n_Conv2D-op12.0.3.1700000000000000.input.1.DefaultFormat.float16.npy",
        "parameter": b"\0Parameter.backbone.conv1.weight.0.0.1623124369613540.output.0.DefaultFormat.npy",
        "bin": b"\0Default--a_input_0--Add-op1_output_0_shape_1_3_kNumberTypeFloat32_FRACTAL_NZ.bin",
        "table": b"\1" + "\n".join(full.rows).encode(),
        "few": b"\1" + "\n".join(few.rows).encode() + b"\n",
        "whole": b"\1" + "\n".join(whole.rows).encode() + b"\n",
        "joins": b"\3+Add Default/a/Add-op3\n+Mul b/Mul-op1\n+Mul b/Mul-op2\nAdd Default_a_Add-op0\n"
                 b"Mul b_Mul-op0\nSub c_Sub-op1\nSub c_Sub-op2\nMul b/Mul-op2\n",
        "model": b"\2" + writer.model(graph),
        "graph": b"\2" + graph,
    }
    TO.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (TO / name).write_bytes(data)


if __name__ == "__main__":
    main()
