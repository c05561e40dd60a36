# SPDX-License-Identifier: GPL-3.0-or-later
"""Files as CANN writes them, byte by byte from the layout of the format: containers of both kinds, overflow
records, device layouts of tensors. Nothing of gradb is used."""
import struct

import numpy as np
from wire import field as message, varint

MAGIC = 0x5A5A5A5A
# Numbers of element types in dumps, and how wide an element is in bits.
TYPES = {"FLOAT": (1, 32), "FLOAT16": (2, 16), "INT8": (3, 8), "UINT8": (4, 8), "INT16": (5, 16), "UINT16": (6, 16),
         "INT32": (7, 32), "INT64": (8, 64), "UINT32": (9, 32), "UINT64": (10, 64), "BOOL": (11, 8),
         "DOUBLE": (12, 64), "STRING": (13, 8), "COMPLEX64": (16, 64), "COMPLEX128": (17, 128), "QINT8": (18, 8),
         "QINT16": (19, 16), "QINT32": (20, 32), "QUINT8": (21, 8), "QUINT16": (22, 16), "BF16": (27, 16),
         "INT4": (28, 4), "UINT1": (29, 1), "INT2": (30, 2), "UINT2": (31, 2), "COMPLEX32": (32, 32),
         "HIFLOAT8": (33, 8), "FLOAT8_E5M2": (34, 8), "FLOAT8_E4M3FN": (35, 8), "FLOAT8_E8M0": (36, 8),
         "FLOAT4_E2M1": (39, 4), "FLOAT4_E1M2": (40, 4)}
# The runtime has other numbers.
RUNTIME = {"FLOAT": 0, "FLOAT16": 1, "INT8": 2, "INT32": 3, "UINT8": 4, "INT16": 6, "UINT16": 7, "UINT32": 8,
           "INT64": 9, "UINT64": 10, "DOUBLE": 11, "BOOL": 12, "COMPLEX64": 16, "COMPLEX128": 17, "BF16": 27,
           "INT4": 29, "UINT1": 30, "INT2": 31, "UINT2": 32}
FORMATS = {"NCHW": 0, "NHWC": 1, "ND": 2, "NC1HWC0": 3, "FRACTAL_Z": 4, "NC1HWC0_C04": 12, "FRACTAL_Z_C04": 13,
           "CHWN": 14, "HWCN": 16, "C1HWNCoC0": 25, "NDHWC": 27, "FRACTAL_NZ": 29, "NCDHW": 30, "DHWCN": 31,
           "NDC1HWC0": 32, "FRACTAL_Z_3D": 33, "FRACTAL_ZN_LSTM": 38}


def number(field, value):
    """A field that is left out when it is 0, as proto3 has it."""
    return varint(field << 3) + varint(value) if value else b""


def shape_message(field, dims, packed):
    if dims is None:
        return b""
    if packed:
        return message(field, message(1, b"".join(varint(d) for d in dims)) if dims else b"")
    return message(field, b"".join(varint(1 << 3) + varint(d) for d in dims))


class Tensor:
    """One input or output. `data` are its bytes; `size` is what the description claims."""

    def __init__(self, data=b"", dtype="FLOAT", fmt="ND", shape=(), original=None, group=0, size=None,
                 origin=None, packed=True):
        self.data = data.tobytes() if isinstance(data, np.ndarray) else data
        self.dtype = TYPES[dtype][0] if isinstance(dtype, str) else dtype
        self.fmt = FORMATS[fmt] if isinstance(fmt, str) else fmt
        self.shape, self.original, self.group = shape, original, group
        self.size = len(self.data) if size is None else size
        self.origin, self.packed = origin, packed  # origin: (name, index, format) before fusion


def output_message(tensor, inside=False):
    out = number(1, tensor.dtype) + number(2, tensor.fmt) + shape_message(3, tensor.shape, tensor.packed)
    if tensor.origin:
        name, index, fmt = tensor.origin
        out += message(4, message(1, name) + number(2, index) + number(4, FORMATS[fmt]))
    out += message(5, tensor.data) if inside else number(6, tensor.size)
    return out + shape_message(7, tensor.original, tensor.packed) + number(8, tensor.group)


def input_message(tensor, inside=False):
    out = number(1, tensor.dtype) + number(2, tensor.fmt) + shape_message(3, tensor.shape, tensor.packed)
    out += message(4, tensor.data) if inside else number(5, tensor.size)
    return out + shape_message(6, tensor.original, tensor.packed) + number(7, tensor.group)


def description(inputs=(), outputs=(), buffers=(), spaces=(), op_name="", dfx="", version="2.0", inside=False):
    out = message(1, version) + number(2, 1700000000000000)
    out += b"".join(message(3, output_message(t, inside)) for t in outputs)
    out += b"".join(message(4, input_message(t, inside)) for t in inputs)
    out += b"".join(message(5, number(3, len(b))) for b in buffers)
    out += message(6, op_name) if op_name else b""
    out += b"".join(message(8, number(3, len(s))) for s in spaces)
    return out + (message(9, dfx) if dfx else b"")


def container(inputs=(), outputs=(), buffers=(), spaces=(), **more):
    header = description(inputs, outputs, buffers, spaces, **more)
    payload = b"".join(t.data for t in (*inputs, *outputs)) + b"".join(buffers) + b"".join(spaces)
    return struct.pack("<Q", len(header)) + header + payload


def legacy(inputs=(), outputs=(), **more):
    """Old releases: only the message, which contains the bytes."""
    return description(inputs, outputs, version="1.0", inside=True, **more)


def nano_entry(tensor, dtype, is_output):
    lists = b"".join(struct.pack(f"<II{len(dims)}Q", tag, 8 * len(dims), *dims)
                     for tag, dims in ((0, tensor.shape), (1, tensor.original)) if dims is not None)
    middle = struct.pack("<iii", 0, RUNTIME[dtype], 2) if is_output else b""
    return (struct.pack("<iii", RUNTIME[dtype], tensor.fmt, 0) + middle
            + struct.pack("<QQQI", 0x1000, 0, tensor.size, len(lists)) + lists)


def nano(inputs=(), outputs=()):
    """Lists of (tensor, name of its type)."""
    header = struct.pack("<II", MAGIC, 1)
    for tag, entries in ((4, inputs), (5, outputs)):
        body = struct.pack("<I", len(entries)) + b"".join(nano_entry(t, d, tag == 5) for t, d in entries)
        header += struct.pack("<II", tag, len(body)) + body
    payload = b"".join(t.data for t, _ in (*inputs, *outputs))
    return struct.pack("<Q", len(header)) + header + payload


def old_record(dha=None, l2=None, core=None):
    """Each is (model, stream, task, task type, pc, parameters, status); the core's also has kernel and block."""
    out = bytearray(2048)
    for at, status_at, unit in ((0, 512, dha), (128, 768, l2), (256, None, core)):
        if unit:
            struct.pack_into("<6Q", out, at, *unit[:6])
            if status_at:
                struct.pack_into("<Q", out, status_at, unit[6])
    if core:
        struct.pack_into("<3Q", out, 1024, core[7], core[8], core[6])
    return bytes(out)


def new_record(kind, fields, version=0):
    """kind: AIC 0, AIV 1, AICPU 2, SDMA 3; fields in the order of the unit."""
    body = struct.pack(f"<{len(fields)}Q", *fields)
    out = struct.pack("<6I", MAGIC, version, 1, kind, 0, len(body)) + body
    return out + bytes(2048 - len(out))


def record_file(record):
    return container(outputs=[Tensor(record, "UINT8", "ND", (2048,), (2048,))])


def padded(array, axis, block):
    """Filled up with values that must not appear in the result."""
    more = -array.shape[axis] % block
    widths = [(0, more if i == axis % array.ndim else 0) for i in range(array.ndim)]
    return np.pad(array, widths, constant_values=np.array(99).astype(array.dtype))


def nc1hwc0(array, c0):
    n, _, h, w = array.shape
    array = padded(array, 1, c0)
    return array.reshape(n, -1, c0, h, w).transpose(0, 1, 3, 4, 2)


def ndc1hwc0(array, c0):
    n, _, d, h, w = array.shape
    array = padded(array, 1, c0)
    return array.reshape(n, -1, c0, d, h, w).transpose(0, 3, 1, 4, 5, 2)


def fractal_z(array, c0):
    h, w = array.shape[2:]
    array = padded(padded(array, 0, 16), 1, c0)
    blocks = array.reshape(array.shape[0] // 16, 16, -1, c0, h, w).transpose(2, 4, 5, 0, 1, 3)
    return blocks.reshape(-1, *blocks.shape[3:])


def fractal_z_3d(array, c0):
    d, h, w = array.shape[2:]
    array = padded(padded(array, 0, 16), 1, c0)
    blocks = array.reshape(array.shape[0] // 16, 16, -1, c0, d, h, w).transpose(4, 2, 5, 6, 0, 1, 3)
    return blocks.reshape(-1, *blocks.shape[4:])


def fractal_z_groups(array, groups, c0):
    """Groups that do not fill a block share one: a matrix with each group on its diagonal."""
    rows, channels = array.shape[0] // groups, array.shape[1]
    together = min(np.lcm(np.lcm(channels, c0) // channels, np.lcm(rows, 16) // rows), groups)
    parts = []
    for first in range(0, groups, together):
        block = np.zeros((together * rows, together * channels, *array.shape[2:]), array.dtype)
        for i in range(min(together, groups - first)):
            block[i * rows:(i + 1) * rows, i * channels:(i + 1) * channels] = (
                array[(first + i) * rows:(first + i + 1) * rows])
        parts.append(fractal_z(block, c0))
    return np.concatenate(parts)


def fractal_nz(array, w0):
    array = padded(padded(array, -2, 16), -1, w0)
    *batch, h, w = array.shape
    blocks = array.reshape(*batch, h // 16, 16, w // w0, w0)
    return np.moveaxis(blocks, -2, -4)


def c1hwncoc0(array, c0):
    n, c, h, w = array.shape
    out = np.full((-(-c // c0), h, w, n, c0, c0), 99).astype(array.dtype)
    for i in range(c):
        out[i // c0, :, :, :, i % c0, i % c0] = array[:, i].transpose(1, 2, 0)
    return out


def fractal_z_c04(array):
    n = array.shape[0]
    four = padded(array, 1, 4).transpose(0, 2, 3, 1).reshape(n, -1)
    four = padded(padded(four, 0, 16), 1, 16)
    return four.reshape(four.shape[0] // 16, 16, -1, 16).transpose(2, 0, 1, 3)
