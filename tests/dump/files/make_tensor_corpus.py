# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the seeds of the fuzz targets npy, npz, safetensors and json: make_tensor_corpus.py tests/fuzz/corpus."""
import io
import json
import pathlib
import struct
import sys

import numpy as np

OUT = pathlib.Path(sys.argv[1])


def put(target, name, data):
    path = OUT / target
    path.mkdir(parents=True, exist_ok=True)
    (path / name).write_bytes(data)


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(save, **arrays):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


def tight(descr, order, shape, data):
    """A header without its padding: fewer bytes to mutate needlessly."""
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}}}".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


def safetensors(header, data=b""):
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


put("npy", "written", npy(np.arange(6, dtype="<f4").reshape(2, 3)))
put("npy", "fortran", tight("<f8", "True", (2, 3), np.arange(6.0).tobytes()))
put("npy", "big", tight(">c8", "False", (3,), np.arange(3).astype(">c8").tobytes()))
put("npy", "bfloat16", tight("<V2", "True", (2, 2, 2), bytes(range(16))))
put("npy", "half", tight(">f2", "False", (4, 1, 2), bytes(range(16))))
put("npy", "text", tight("|S3", "False", (2,), b"abcdef"))
put("npy", "long", tight("<i8", "False", "(2L, )", bytes(16)))
put("npy", "scalar", tight("|b1", "False", "()", b"\1"))
put("npz", "stored", npz(np.savez, a=np.arange(3, dtype="i2"), b=np.float32(1)))
put("npz", "deflated", npz(np.savez_compressed, a=np.zeros((4, 4))))
put("npz", "empty", npz(np.savez))
put("safetensors", "two", safetensors({"__metadata__": {"format": "pt"},
                                       "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                                       "b.c": {"dtype": "F8_E4M3", "shape": [2, 2], "data_offsets": [8, 12]}},
                                      bytes(range(12))))
put("safetensors", "odd", safetensors({"s": {"dtype": "BF16", "shape": [], "data_offsets": [0, 2]},
                                       "f": {"dtype": "F4", "shape": [4], "data_offsets": [2, 4]},
                                       "e": {"dtype": "I64", "shape": [0], "data_offsets": [4, 4]}}, bytes(4)))
put("json", "tree", b'{"a": [1, -2.5, true, null, "\\u00e9\\n"], "b": {"c": [[], {}]}, "a": 3}')
put("json", "python", b'[NaN, Infinity, -Infinity, "\\ud83d\\ude00", 1e-3]')
put("json", "index", b'{"metadata": {}, "weight_map": {"a": "m-1-of-1.safetensors", "b": "../x"}}')
