# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints saved by MindSpore, and their contents: write_ckpt.py DIRECTORY."""
import json
import pathlib
import sys

import mindspore
import numpy as np

DIRECTORY = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(5)


def parameters():
    """Of every type, with arbitrary bits; a scalar and one with a single element."""
    made = {}
    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"):
        made[name] = np.frombuffer(rng.bytes(6 * np.dtype(name).itemsize), name).reshape(2, 3)
    made["bool"] = np.array([True, False])
    made["scalar"] = np.array(2.5, np.float32)
    made["single"] = np.array([7], np.int32)
    return made


def entry(array, dtype=None):
    return {"dtype": dtype or str(array.dtype), "shape": list(array.shape), "hex": array.tobytes().hex()}


def main():
    expected = {}
    arrays = parameters()
    saved = [{"name": name, "data": mindspore.Tensor(array)} for name, array in arrays.items()]
    entries = {name: entry(array) for name, array in arrays.items()}
    half = np.array([1.0, -2.5, 0.0], np.float32)
    saved.append({"name": "bfloat16", "data": mindspore.Tensor(half, mindspore.bfloat16)})
    entries["bfloat16"] = entry((half.view(np.uint32) >> 16).astype(np.uint16), "bfloat16")
    mindspore.save_checkpoint(saved, str(DIRECTORY / "types.ckpt"))
    mindspore.save_checkpoint(saved, str(DIRECTORY / "sum.ckpt"), crc_check=True)
    expected["types.ckpt"] = expected["sum.ckpt"] = entries
    net = mindspore.nn.SequentialCell(mindspore.nn.Dense(3, 4), mindspore.nn.BatchNorm1d(4))
    mindspore.save_checkpoint(net, str(DIRECTORY / "net.ckpt"),
                              append_dict={"epoch_num": 3, "lr": 0.5, "note": "h\u00e9", "done": True})
    entries = {name: entry(p.asnumpy()) for name, p in net.parameters_and_names()}
    loaded = mindspore.load_checkpoint(str(DIRECTORY / "net.ckpt"))
    for name, value in loaded.items():
        if name not in entries:
            entries[name] = {"text": repr(value)} if isinstance(value, str) else entry(value.asnumpy())
    expected["net.ckpt"] = entries
    for name, mode in (("gcm.ckpt", "AES-GCM"), ("cbc.ckpt", "AES-CBC")):
        mindspore.save_checkpoint(saved[:2], str(DIRECTORY / name), enc_key=b"0123456789ABCDEF", enc_mode=mode)
    (DIRECTORY / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
