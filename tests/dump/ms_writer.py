# SPDX-License-Identifier: GPL-3.0-or-later
"""Dumps as MindSpore's releases write them, made from the layouts only: names, npy files, statistic.csv, execution
order, graphs as hand-written protobuf."""
import hashlib
import re

import numpy as np
from wire import field

DTYPES = {"float32": "Float32", "float16": "Float16", "float64": "Float64", "int32": "Int32", "int64": "Int64",
          "int8": "Int8", "uint8": "UInt8", "bool": "Bool"}


def escape(name):
    """An operator's name in file names since 2.3."""
    return re.sub(r"[/\\. ]", "_", name)


def short(name):
    """The same before 2.3: its last part."""
    return name.rsplit("/", 1)[-1]


def npy(path, array, descr=None):
    """MindSpore's way of writing the header: no blanks in the shape, a comma after every dimension."""
    shape = "(" + "".join(f"{n}," for n in array.shape) + ")"
    text = f"{{'descr': '{descr or array.dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    head = text + " " * (-(10 + len(text) + 1) % 64) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()
                     + array.tobytes(order="C"))


def number(value):
    """C++ streams print six digits."""
    if np.isnan(value):
        return "nan"
    return f"{float(value):.6g}"


HEADER = ("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape")
ALL = ["Max Value", "Min Value", "Avg Value", "Count", "Negative Zero Count", "Positive Zero Count", "NaN Count",
       "Negative Inf Count", "Positive Inf Count", "Zero Count", "L2Norm Value", "MD5"]


def figures(array):
    """MindSpore's statistics, by numpy."""
    flat = array.astype(np.float64).ravel()
    finite = flat[np.isfinite(flat)]
    return {"Max Value": number(finite.max()) if finite.size else "null",
            "Min Value": number(finite.min()) if finite.size else "null",
            "Avg Value": number(finite.mean()) if finite.size else "null",
            "Count": str(flat.size), "Negative Zero Count": str(int((finite < 0).sum())),
            "Positive Zero Count": str(int((finite > 0).sum())), "NaN Count": str(int(np.isnan(flat).sum())),
            "Negative Inf Count": str(int(np.isneginf(flat).sum())),
            "Positive Inf Count": str(int(np.isposinf(flat).sum())), "Zero Count": str(int((flat == 0).sum())),
            "L2Norm Value": number(np.sqrt((flat * flat).sum())), "MD5": hashlib.md5(array.tobytes()).hexdigest()}


class Statistic:
    """statistic.csv of one iteration."""

    def __init__(self, columns=None, comma=False):
        self.columns = columns or ALL[:10]
        self.comma = "," if comma else ""
        self.rows = [",".join([HEADER, *self.columns])]

    def nothing(self, known):
        """Since 2.3 the extremes without finite elements keep their initial values; before, they are null."""
        if self.comma and known["Max Value"] == "null":
            known |= {"Max Value": "-1.79769e+308", "Min Value": "1.79769e+308", "Avg Value": "0"}
        return known

    def add(self, op_type, name, stamp, io, slot, array):
        """A row."""
        shape = '"(' + ",".join(map(str, array.shape)) + ')"'
        known = self.nothing(figures(array))
        self.rows.append(",".join([op_type, name, "0", "0", str(stamp), io, str(slot), str(array.nbytes),
                                   array.dtype.name, shape, *(known[c] for c in self.columns)]) + self.comma)

    def write(self, directory):
        """The file."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "statistic.csv").write_text("\n".join(self.rows) + "\n")


class WholeGraphStatistic(Statistic):
    """The same for a whole graph on Ascend, as msprobe writes it: other words, device types, no comma at the end, and
    what the device did not compute is NA."""
    HEADER = "Op Type,Op Name,Task ID,Stream ID,Timestamp,Input/Output,Slot,Data Size,Data Type,Format,Shape"
    COLUMNS = ["Max Value", "Min Value", "Avg Value", "L2Norm Value", "NaN Count", "Negative Inf Count",
               "Positive Inf Count", "MD5 Value"]
    TYPES = {"float32": "DT_FLOAT", "int32": "DT_INT32"}

    def __init__(self, columns=None):
        super().__init__(columns or self.COLUMNS)
        self.rows = [",".join([self.HEADER, *self.columns])]

    def add(self, op_type, name, stamp, io, slot, array):
        known = figures(array)
        known["MD5 Value"] = known["MD5"]
        values = ["NA" if known[c] == "null" else known[c] for c in self.columns]
        self.rows.append(",".join([op_type, name, "5", "1", str(stamp), io.capitalize(), str(slot), str(array.nbytes),
                                   self.TYPES[array.dtype.name], "ND", "x".join(map(str, array.shape)), *values]))


def tensor_type(shape, elem=11):
    """TypeProto of a tensor of float32."""
    dims = b"".join(field(1, field(1, n)) for n in shape)
    return field(1, 14) + field(2, field(1, elem) + field(2, dims))


def node(index, inputs, op_type, full_name, shape, source=""):
    """NodeProto."""
    out = b"".join(field(1, field(1, name) + field(2, 0)) for name in inputs)
    return (out + field(2, str(index)) + field(3, op_type) + field(4, full_name.rsplit("/", 1)[0])
            + field(6, tensor_type(shape)) + field(8, full_name) + field(9, source))


def graph(name, nodes, parameters):
    """GraphProto: nodes as bytes, parameters as (name, shape)."""
    out = b"".join(field(1, one) for one in nodes) + field(2, name)
    return out + b"".join(field(3, field(1, n) + field(2, tensor_type(s))) for n, s in parameters)


def model(graph_bytes):
    """ModelProto."""
    return field(1, 1) + field(4, graph_bytes)
