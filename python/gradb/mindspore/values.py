# SPDX-License-Identifier: MIT
"""MindSpore's tensors as libgradb sees them.

On the CPU a tensor is read where it is; from another device MindSpore copies it to the host (Tensor.asnumpy)."""
import ctypes
import functools

import mindspore

from .. import _lib

DTYPES = {mindspore.bool_: (_lib.BOOL, 1), mindspore.int8: (_lib.INT8, 1), mindspore.int16: (_lib.INT16, 2),
          mindspore.int32: (_lib.INT32, 4), mindspore.int64: (_lib.INT64, 8), mindspore.uint8: (_lib.UINT8, 1),
          mindspore.uint16: (_lib.UINT16, 2), mindspore.uint32: (_lib.UINT32, 4), mindspore.uint64: (_lib.UINT64, 8),
          mindspore.float16: (_lib.FLOAT16, 2), mindspore.float32: (_lib.FLOAT32, 4),
          mindspore.float64: (_lib.FLOAT64, 8), mindspore.complex64: (_lib.COMPLEX64, 8),
          mindspore.complex128: (_lib.COMPLEX128, 16)}
if hasattr(mindspore, "bfloat16"):
    DTYPES[mindspore.bfloat16] = (_lib.BFLOAT16, 2)
FLOATS = frozenset(dtype for dtype, (number, _) in DTYPES.items()
                   if number in (_lib.FLOAT16, _lib.FLOAT32, _lib.FLOAT64, _lib.BFLOAT16))
_FLOAT32 = mindspore.float32
_BY_NAME = {str(kind).lower().rstrip("_"): entry for kind, entry in DTYPES.items()}  # of numpy

# Up to 2.7, _data_ptr gives 0 and logs an error for a tensor that no kernel has used yet.
_HAS_ADDRESSES = hasattr(mindspore.Tensor, "_grad_node")
_place = {"is_host": None}  # where tensors are, as MindSpore said last; asking it takes longer than an operator
_fixed = None  # id(tensor) -> (tensor, struct, memory) while MindSpore must not be asked


class NoValue(Exception):
    """Why a tensor cannot be read; answer: one of enum gradb_answer."""

    def __init__(self, reason, answer=_lib.NO_VALUE):
        super().__init__(reason)
        self.answer = answer


def ask_where():
    """Asks MindSpore which device it uses."""
    _place["is_host"] = mindspore.get_context("device_target") == "CPU"


def is_in_host_memory():
    """Whether the addresses of tensors are the host's."""
    if _place["is_host"] is None:
        ask_where()
    return _place["is_host"]


def address_of(tensor):
    """Where a contiguous tensor's elements are in host memory; 0: ask for a copy. Waits until they are computed."""
    return tensor._data_ptr() if _HAS_ADDRESSES and is_in_host_memory() else 0


def wait_for(tensor):
    """Waits until a tensor has been computed."""
    try:
        if not address_of(tensor):
            tensor.wait_pipeline()
    except (RuntimeError, AttributeError):
        pass  # the program will meet the error itself


def fix(tensors):
    """From now on these tensors are read where they are now, and no others: MindSpore would wait for the compiled code
    that runs. None: ends that."""
    global _fixed
    _fixed = None
    if tensors is None:
        return
    found = {}
    for tensor in tensors:
        try:
            found[id(tensor)] = (tensor, *describe(tensor))
        except (NoValue, RuntimeError):
            pass
    _fixed = found


def is_fixed():
    """Whether MindSpore must not be asked for values now."""
    return _fixed is not None


def _entry(tensor):
    """(number, bytes) of the type of a tensor or a numpy array; None: it has no number."""
    return DTYPES.get(tensor.dtype) if isinstance(tensor, mindspore.Tensor) else _BY_NAME.get(str(tensor.dtype))


def shape_of(tensor):
    """The struct of a tensor without its address, for the graph; None when nothing is known of it."""
    try:
        number, shape = (_entry(tensor) or (_lib.FLOAT32, 0))[0], tuple(tensor.shape)
    except (RuntimeError, AttributeError, TypeError, ValueError):
        return None
    if any(length < 0 for length in shape) or len(shape) > _lib.MAX_RANK:
        return None
    return _lib.Tensor(number, len(shape), (ctypes.c_int64 * len(shape))(*shape), None, None)


@functools.lru_cache(maxsize=4096)
def _lengths(shape):
    return (ctypes.c_int64 * len(shape))(*shape)


def describe(tensor, address=None):
    """(struct gradb_tensor with its address, the object that holds that memory). Waits until the tensor is computed.
    address: what address_of returned just before, where that is known. A numpy array is taken as it is. NoValue."""
    is_tensor = isinstance(tensor, mindspore.Tensor)
    if is_tensor and is_fixed():
        if id(tensor) not in _fixed:
            raise NoValue("it cannot be read inside compiled code")
        return _fixed[id(tensor)][1:]
    if getattr(tensor, "has_init", False):
        raise NoValue("it is not initialised yet")
    entry = _entry(tensor)
    if entry is None:
        raise NoValue("values of type %s cannot be shown" % tensor.dtype, _lib.UNSUPPORTED)
    number, size = entry
    held = tensor
    if not is_tensor:
        address = tensor.ctypes.data
    elif not tensor.is_contiguous():
        address = 0
    elif address is None:
        address = address_of(tensor)
    shape = tuple(tensor.shape)
    if len(shape) > _lib.MAX_RANK:
        raise NoValue("the tensor has %d axes, at most %d can be shown" % (len(shape), _lib.MAX_RANK))
    if not address and 0 not in shape:
        held = tensor.asnumpy()
        if held.itemsize != size:
            raise NoValue("MindSpore copies it as %s, not as %s" % (held.dtype, tensor.dtype), _lib.UNSUPPORTED)
        if not held.flags.c_contiguous:
            held = held.copy()
        address = held.ctypes.data
    return _lib.Tensor(number, len(shape), _lengths(shape), None, address or None), held


def copy_of(tensor):
    """(struct, its memory) of a copy that later steps do not change. NoValue."""
    struct, _held = describe(tensor)
    size = tensor.nbytes
    memory = ctypes.create_string_buffer(size) if size else None
    if size:
        ctypes.memmove(memory, struct.data, size)
    return _lib.Tensor(struct.dtype, struct.rank, struct.shape, None,
                       ctypes.addressof(memory) if size else None), memory


def write(tensor, memory):
    """Sets a contiguous tensor in host memory to the value of copy_of, in place."""
    if memory is not None:
        ctypes.memmove(address_of(tensor), memory, tensor.nbytes)


def number_of(value):
    """A Python number or a tensor of one element as a float; None for anything else."""
    if not isinstance(value, mindspore.Tensor):
        return float(value) if isinstance(value, (bool, int, float)) else None
    try:
        if is_fixed() or not is_number(value):
            return None
        address = address_of(value) if _is_float32(value.dtype) else 0
        return ctypes.c_float.from_address(address).value if address else float(value.asnumpy().reshape(-1)[0])
    except (RuntimeError, ValueError, TypeError):
        return None


def is_number(value):
    """Whether it is a tensor of one floating-point element."""
    if not isinstance(value, mindspore.Tensor):
        return False
    return value.size == 1 and (_is_float32(value.dtype) or value.dtype in FLOATS)


def _is_float32(dtype):
    return dtype is _FLOAT32 or dtype == _FLOAT32  # comparing takes 15 times as long


def find_tensor(value):
    """The first tensor in a result, depth first, or None."""
    if isinstance(value, mindspore.Tensor):
        return value
    for item in value if isinstance(value, (tuple, list)) else ():
        found = find_tensor(item)
        if found is not None:
            return found
    return None


def find_number(value):
    """The first tensor of one floating-point element in a result, depth first: a loss. None: there is none."""
    if is_number(value):
        return value
    for item in value if isinstance(value, (tuple, list)) else ():
        found = find_number(item)
        if found is not None:
            return found
    return None
