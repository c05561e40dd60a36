# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes files with safetensors' and ml_dtypes' own code: write_tensors.py DIRECTORY.

The expected values of each tensor are written as plain .npy to DIRECTORY/expected/FILE/TENSOR.npy.
"""
import json
import pathlib
import sys

import ml_dtypes
import numpy as np
import safetensors
from safetensors.numpy import save_file

OUT = pathlib.Path(sys.argv[1])
SMALL = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3", "float8_e3m4",
         "float8_e4m3b11fnuz", "float8_e8m0fnu"]
rng = np.random.default_rng(11)


def expect(file, name, array):
    """What gradb must make of a tensor: types that numpy lacks are widened, bfloat16 stays as bits."""
    if array.dtype == ml_dtypes.bfloat16:
        array = array.view(np.uint16)
    elif array.dtype.kind == "V" or array.dtype.name.startswith("float8"):
        array = array.astype(np.float32)
    path = OUT / "expected" / file
    path.mkdir(parents=True, exist_ok=True)
    np.save(path / (name + ".npy"), array)


def bits(dtype, shape):
    dtype = np.dtype(dtype)
    if dtype == bool:
        return rng.integers(0, 2, shape).astype(bool)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def npy_files():
    """Every value of the types of one byte, and bfloat16, as numpy writes them."""
    for name in SMALL:
        array = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name)).reshape(16, 16)
        np.save(OUT / (name + ".npy"), array)
        expect("npy", name, array)
    for name in ("float6_e2m3fn", "float6_e3m2fn"):
        array = np.arange(64, dtype=np.uint8).view(getattr(ml_dtypes, name)).reshape(8, 8)
        np.save(OUT / (name + ".npy"), array)
        expect("npy", name, array)
    np.save(OUT / "int4.npy", np.arange(-8, 8).astype(ml_dtypes.int4))
    array = bits("uint16", (9, 7)).view(ml_dtypes.bfloat16)
    np.save(OUT / "bfloat16.npy", array)
    np.save(OUT / "bfloat16_f.npy", np.asfortranarray(array))
    expect("npy", "bfloat16", array)


def safetensors_files():
    tensors = {}
    for name in ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
                 "float32", "float64", "complex64"]:
        for label, shape in {"": (3, 5), ".scalar": (), ".empty": (2, 0, 3)}.items():
            tensors["layer." + name + label] = bits(name, shape)
    tensors["b.f.16"] = bits("uint16", (4, 4)).view(ml_dtypes.bfloat16)
    for name in ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"]:
        tensors[name] = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name))
    save_file(tensors, OUT / "all.safetensors", metadata={"format": "np", "made by": "tests"})
    for name, array in tensors.items():
        expect("safetensors", name, array)


def sharded_files():
    parts = {"model-1-of-2.safetensors": {"a.weight": bits("float32", (4, 3)), "a.bias": bits("float16", (4,))},
             "model-2-of-2.safetensors": {"b.weight": bits("int64", (2, 2)), "unlisted": bits("uint8", (1,))}}
    where = {name: file for file, tensors in parts.items() for name in tensors if name != "unlisted"}
    for file, tensors in parts.items():
        save_file(tensors, OUT / file)
        for name, array in tensors.items():
            expect("sharded", name, array)
    where.update({"c.gone": "model-3-of-2.safetensors", "d.absent": "model-1-of-2.safetensors"})
    index = {"metadata": {"total_size": 1}, "weight_map": where}
    (OUT / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))


npy_files()
safetensors_files()
sharded_files()
print(safetensors.__version__)
