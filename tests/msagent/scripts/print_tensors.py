# SPDX-License-Identifier: MIT
"""Prints tensors with ops.Print, outside of graphs or compiled: usage: print_tensors.py pynative|graph.

Before each tensor: "@@ DTYPE DIMS BYTES", as engine_tool takes them.
"""
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

graph = sys.argv[1] == "graph"
ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
TYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
         "complex128").split()
SHAPES = [(1,), (2, 1), (3,), (7,), (12,), (13,), (24,), (48,), (999,), (1000,), (1001,), (2, 3), (7, 2), (2, 7),
          (6, 6), (40, 100), (2, 3, 4), (7, 1, 7), (20, 10, 10), (2, 2, 2, 2), (1, 1, 1, 1, 3)]
COMPILED = [(1,), (7,), (12,), (1001,), (2, 1), (2, 7), (7, 1, 7)]  # each shape is compiled
EMPTY = [(0,), (2, 0), (0, 3), (2, 0, 3)]  # the compiled operator reads beyond them


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.show = ops.Print()

    def construct(self, x):
        self.show(x)
        return x


show = Net() if graph else ops.Print()
random = np.random.RandomState(5)


def some(shape):
    return np.asarray(random.randn(*shape) * 10.0 ** random.randint(-12 if len(shape) < 2 else -2, 3, shape))


def values():
    for name in TYPES:
        alone = [] if graph and name in ("int8", "uint8") else [()]  # the compiled operator writes them as characters
        for shape in (COMPILED if graph else SHAPES + EMPTY) + alone:
            a = some(shape)
            with np.errstate(all="ignore"):
                yield np.asarray(a > 0 if name == "bool" else np.abs(a) if name[0] == "u" else a).astype(name)
    for name in ("float16", "float32", "float64"):
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-7, -1.0, 65504.0, -np.float64(np.nan)]
        special += [] if graph else [1e-45]  # the threads of compiled graphs flush it to 0
        yield np.array(special).astype(name)
        for value in special:
            yield np.array(value).astype(name)
    yield np.array([1e300, -1e300, 2.5e-308])
    yield np.array([-2**63, 2**63 - 1])
    yield np.array([2**64 - 1, 0], np.uint64)
    yield np.array([complex(1, np.nan), complex(np.nan, -np.inf), complex(-0.0, -0.0)], np.complex64)


def put(dtype, shape, data):
    sys.stdout.flush()
    sys.stdout.write(f"@@ {dtype} {','.join(map(str, shape)) or '-'} {data.tobytes().hex() or '-'}\n")
    sys.stdout.flush()


for a in values():
    put(a.dtype, a.shape, np.ascontiguousarray(a))
    show(Tensor(a))
for shape in [] if graph else [(), (1,), (30,), (4, 3), (8, 8)]:  # the compiled operator refuses bfloat16
    bits = some(shape).astype(np.float32).reshape(-1).view(np.uint32) >> 16
    put("bfloat16", shape, bits.astype(np.uint16))
    show(Tensor((bits << 16).view(np.float32).reshape(shape)).astype(ms.bfloat16))
sys.stdout.flush()
print("@@ end - -")
