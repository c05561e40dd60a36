# SPDX-License-Identifier: GPL-3.0-or-later
"""compare_tensors.py A B: safetensors' own reader finds the same in both, except that float8 became float32."""
import pathlib
import sys

import ml_dtypes
import numpy as np
import safetensors

SMALL = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu"}


def load(path):
    return dict(safetensors.deserialize(pathlib.Path(path).read_bytes()))


a, b = load(sys.argv[1]), load(sys.argv[2])
assert set(a) == set(b), set(a) ^ set(b)
for name, one in a.items():
    two = b[name]
    assert one["shape"] == two["shape"], name
    if one["dtype"] in SMALL:
        want = np.frombuffer(one["data"], getattr(ml_dtypes, SMALL[one["dtype"]])).astype(np.float32)
        assert two["dtype"] == "F32", name
        assert np.array_equal(want, np.frombuffer(two["data"], np.float32), equal_nan=True), name
    else:
        assert (one["dtype"], bytes(one["data"])) == (two["dtype"], bytes(two["data"])), name
assert "BF16" in {tensor["dtype"] for tensor in b.values()}
