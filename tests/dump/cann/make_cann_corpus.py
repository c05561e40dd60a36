# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the seeds of the fuzz targets `cann` and `ge_text`: make_cann_corpus.py tests/fuzz/corpus"""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]

import cann_writer as writer
import numpy as np
import test_cann
from cann_writer import Tensor

MAX = 4000


def seeds():
    """Name, kind (as fuzz_cann.c numbers them), bytes."""
    x = np.arange(6, dtype="<f4")
    plain = Tensor(x, "FLOAT", "ND", (2, 3), (2, 3))
    yield "plain", 0, writer.container([plain], [plain], buffers=[b"buffer"], spaces=[b"log"], op_name="a/b", dfx="text")
    yield "legacy", 0, writer.legacy([plain], [plain])
    yield "nano", 0, writer.nano([(plain, "FLOAT")], [(plain, "FLOAT")])
    yield "cut", 0, writer.container([plain], [plain])[:-10]
    for what, fmt, stored, group, want in test_cann.layouts():
        if stored.nbytes < MAX - 200:
            tensor = Tensor(stored, test_cann.type_of(want), fmt, stored.shape, want.shape, group)
            yield fmt + ("-groups" if group else ""), 0, writer.container([], [tensor])
    x = np.arange(16, dtype="<f2").reshape(4, 2, 1, 2)
    for name, fmt, stored, group in (("groups", "FRACTAL_Z", writer.fractal_z_groups(x, 2, 16), 2),
                                     ("c04", "FRACTAL_Z_C04", writer.fractal_z_c04(x), 0),
                                     ("3d", "NDC1HWC0", writer.ndc1hwc0(x[:, :, None], 16), 0)):
        original = x[:, :, None].shape if name == "3d" else x.shape
        yield name, 0, writer.container([], [Tensor(stored, "FLOAT16", fmt, stored.shape, original, group)])
    yield "int4", 0, writer.container([], [Tensor(bytes(range(16)), "INT4", "ND", (4, 8))])
    yield "statistics", 1, (b"Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count\n"
                            b"Output,0,24,DT_FLOAT,ND,2x3,2.5,-1,0.5,6\nInput,0,8,DT_INT64,ND,-,NA,NA,NA,1\n")
    yield "old-record", 2, writer.old_record(core=(514, 3, 57, 0, 1, 2, 0x120, 3, 1))
    yield "new-record", 2, writer.new_record(0, (1, 2, 3, 4, 65535, 65535, 1, 2, 3, 4, 0x20), version=1)[:256]
    yield "name", 3, b"Add.a.7.2.1700000000000001.4.21.2.0"
    yield "place", 3, b"3/0/net/rank_7"
    yield "exception", 3, b"te_add.v2.5.1.0.3.1706152473105513"


def main():
    root = pathlib.Path(sys.argv[1])
    for name in ("cann", "ge_text"):
        (root / name).mkdir(parents=True, exist_ok=True)
    seen = set()
    for name, kind, data in seeds():
        if name not in seen:  # one of each layout is enough
            (root / "cann" / name).write_bytes(bytes([kind]) + data)
        seen.add(name)
    (root / "ge_text" / "graph").write_text(test_cann.GRAPH)
    (root / "ge_text" / "lists").write_text('a: [1, 2] b < c: "x" \'y\' > d { e: [{f: 1}, {f: 2}] } # end')


if __name__ == "__main__":
    main()
