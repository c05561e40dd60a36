# SPDX-License-Identifier: MIT
"""Tensors in .npy files, bit for bit, without numpy.

Types that numpy does not have are widened without loss: bfloat16 and float8 are stored as float32."""
import ast
import ctypes
import math
import os
import stat

import torch

_MAGIC = b"\x93NUMPY"
_MAX_HEADER = 1 << 20
_MAX_AXES = 64
_CODES = {torch.bool: "|b1", torch.int8: "|i1", torch.uint8: "|u1", torch.int16: "<i2", torch.int32: "<i4",
          torch.int64: "<i8", torch.float16: "<f2", torch.float32: "<f4", torch.float64: "<f8",
          torch.complex64: "<c8", torch.complex128: "<c16"}
for _name, _code in (("uint16", "<u2"), ("uint32", "<u4"), ("uint64", "<u8")):
    if hasattr(torch, _name):
        _CODES[getattr(torch, _name)] = _code
_DTYPES = {code: dtype for dtype, code in _CODES.items()}


class NpyError(Exception):
    """Why no tensor can be made of a file."""


def stored_as(dtype):
    """The type that a type is stored as, such as "float32"; None when it cannot be stored."""
    if dtype in _CODES:
        return str(dtype).rsplit(".", 1)[-1]
    return "float32" if dtype == torch.bfloat16 or "float8" in str(dtype) else None


def write(path, tensor):
    """Writes a strided tensor in host memory, of a type that stored_as() knows. OSError."""
    tensor = _widened(tensor.detach()).contiguous()
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (_CODES[tensor.dtype], tuple(tensor.shape))
    room = -(len(_MAGIC) + 4 + len(header) + 1) % 64
    header = header.encode("ascii") + b" " * room + b"\n"
    size = tensor.numel() * tensor.element_size()
    with open(path, "wb") as file:
        file.write(_MAGIC + b"\x01\x00" + len(header).to_bytes(2, "little") + header)
        if size:
            file.write((ctypes.c_char * size).from_address(tensor.data_ptr()))
        file.flush()
        os.fsync(file.fileno())


def read(path, dtype=None):
    """Reads the tensor in a file; narrows it to `dtype` where that was widened. OSError, NpyError."""
    with open(path, "rb", opener=_open_now) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NpyError("%s is not a regular file" % path)
        code, shape, fortran = _header(file, path)
        if code not in _DTYPES:
            raise NpyError("%s: no tensor has elements of type '%s'" % (path, code))
        stored = _DTYPES[code]
        size = math.prod(shape) * torch.empty(0, dtype=stored).element_size()
        there = os.fstat(file.fileno()).st_size - file.tell()
        if there == size:  # checked before memory is allocated for what the header says
            data = bytearray(file.read(size))
    if there != size or len(data) != size:
        raise NpyError("%s: the elements take %d bytes, the header says %d" % (path, there, size))
    tensor = torch.frombuffer(data, dtype=stored) if size else torch.empty(0, dtype=stored)
    try:
        tensor = tensor.reshape(shape[::-1]).permute(*range(len(shape))[::-1]) if fortran else tensor.reshape(shape)
    except (RuntimeError, OverflowError, TypeError) as error:
        raise NpyError("%s: no tensor can have the shape in the header: %s" % (path, str(error).split("\n", 1)[0]))
    return _narrowed(tensor, dtype) if dtype is not None and dtype != stored else tensor


def _open_now(path, flags):
    """Does not wait for the writer of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _header(file, path):
    """(type code, shape, whether in Fortran order)."""
    begin = file.read(8)
    if len(begin) < 8 or not begin.startswith(_MAGIC):
        raise NpyError("%s is not a .npy file" % path)
    length = int.from_bytes(file.read(2 if begin[6] == 1 else 4), "little")
    if length > _MAX_HEADER:
        raise NpyError("%s: its header is too long" % path)
    try:
        header = ast.literal_eval(file.read(length).decode("latin-1"))
        shape = tuple(int(size) for size in header["shape"])
        if len(shape) > _MAX_AXES or min(shape, default=0) < 0:
            raise ValueError("invalid sizes %.100s" % (shape,))
        return str(header["descr"]), shape, bool(header["fortran_order"])
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise NpyError("%s: cannot read the header: %s" % (path, error))


def _widened(tensor):
    if tensor.dtype == torch.bfloat16:  # bit by bit: a conversion would change NaN payloads
        bits = tensor.contiguous().view(torch.int16).to(torch.int32)
        return (bits << 16).view(torch.float32)
    return tensor if tensor.dtype in _CODES else tensor.to(torch.float32)


def _narrowed(tensor, dtype):
    if dtype == torch.bfloat16 and tensor.dtype == torch.float32:
        return (tensor.view(torch.int32) >> 16).to(torch.int16).view(torch.bfloat16)
    return tensor.to(dtype)
