# SPDX-License-Identifier: MIT
"""Tensors as libgradb sees them: which can be read, why others cannot, and struct gradb_tensor."""
import contextlib
import ctypes

import torch

from .. import _lib
from . import devices

DTYPES = {torch.bool: (_lib.BOOL, 1), torch.int8: (_lib.INT8, 1), torch.int16: (_lib.INT16, 2),
          torch.int32: (_lib.INT32, 4), torch.int64: (_lib.INT64, 8), torch.uint8: (_lib.UINT8, 1),
          torch.float16: (_lib.FLOAT16, 2), torch.float32: (_lib.FLOAT32, 4), torch.float64: (_lib.FLOAT64, 8),
          torch.bfloat16: (_lib.BFLOAT16, 2), torch.complex64: (_lib.COMPLEX64, 8),
          torch.complex128: (_lib.COMPLEX128, 16)}
for _name, _code in (("uint16", _lib.UINT16), ("uint32", _lib.UINT32), ("uint64", _lib.UINT64)):
    if hasattr(torch, _name):
        DTYPES[getattr(torch, _name)] = (_code, int(_name[4:]) // 8)
# Types that are shown as float32, which has all of their values.
_AS_FLOAT32 = frozenset(getattr(torch, name) for name in (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu") if hasattr(torch, name))

PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_MAX_GEOMETRIES = 16384
_geometries = {}  # (shape, strides, dtype) -> what geometry() returns
storage_of = getattr(torch.Tensor, "untyped_storage", None) or getattr(torch.Tensor, "_storage", None) \
    or torch.Tensor.storage


_opaque = {kind: False for kind in PLAIN}  # type of a tensor -> is_opaque


class NoValue(Exception):
    """Why a tensor cannot be read; answer: one of enum gradb_answer."""

    def __init__(self, reason, answer=_lib.NO_VALUE):
        super().__init__(reason)
        self.answer = answer


def _unsupported(text, *args):
    return NoValue(text % args, _lib.UNSUPPORTED)


@contextlib.contextmanager
def _untraced():
    tracing = torch._C._get_tracing_state()
    if tracing is None:
        yield
        return
    torch._C._set_tracing_state(None)
    try:
        yield
    finally:
        torch._C._set_tracing_state(tracing)


@contextlib.contextmanager
def outside_training():
    """What is computed inside is not part of the training: no gradients, no modes of the program, and nothing for a
    torch.jit.trace() that runs."""
    guard = None
    with torch.no_grad(), torch._C.DisableTorchFunction(), _untraced():
        try:
            guard = torch._C._DisableTorchDispatch()
            if hasattr(guard, "__enter__"):
                with guard:
                    yield
            else:  # 1.13: it holds as long as it exists
                yield
        finally:
            del guard


# ---- what can be read, and how ----

def readable(tensor):
    """A strided tensor with the same values, of a type of DTYPES, on the same device; it shares the memory where
    possible. The local part of a sharded tensor. NoValue: why there is none. See note()."""
    if type(tensor) not in PLAIN:
        tensor = _inner(tensor)
    try:
        _check(tensor)
        if type(tensor) not in PLAIN and tensor.numel() > 0 and tensor.data_ptr() == 0:
            raise _unsupported("it is a %s: its values are in other tensors, in a way that only the program knows",
                               type(tensor).__name__)
        tensor = tensor.detach()
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        if tensor.dtype in _AS_FLOAT32:
            tensor = tensor.to(torch.float32)
        device = devices.of(tensor)
        if device is not None or tensor.is_cpu:
            _address(tensor)
        if device is not None and device.is_capturing():
            raise _unsupported("a CUDA graph is being captured: nothing can be read until it is done")
    except (RuntimeError, AttributeError) as error:  # wrappers of all kinds
        if "TensorWrapper" in str(error) or "BatchedTensor" in str(error):
            raise _unsupported("it stands for other tensors inside a transform (vmap, grad): look at the "
                               "transform's result")
        raise _unsupported("the tensor has no memory of its own (%s)", _first_line(error))
    return tensor


def is_opaque(thing):
    """Whether it is a tensor of a subclass that gives operators their meaning (__torch_dispatch__). Outside of the
    program, nothing can be computed with it, and often it has no memory of its own."""
    kind = type(thing)
    found = _opaque.get(kind)
    if found is None:
        if not isinstance(thing, torch.Tensor):
            return False
        found = _opaque[kind] = kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    return found


def may_be_infinite(tensor):
    """Whether it has elements that are not finite, or cannot be read."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return False
    try:
        with outside_training():
            return not bool(torch.isfinite(readable(tensor)).all())
    except (NoValue, RuntimeError):
        return True


def _inner(tensor):
    """The tensor inside a subclass of Tensor; of one that is spread over processes, the local part."""
    shards = getattr(tensor, "local_shards", None)
    if callable(shards):
        shards = shards()
        if not shards:
            raise NoValue("this rank has no part of it")
        return shards[0].tensor
    kind = type(tensor).__name__
    if kind == "FakeTensor":
        raise _unsupported("the tensor is fake: it has a shape and no values")
    for name in ("_local_tensor", "elem"):  # DTensor; AsyncCollectiveTensor and similar wrappers
        inner = getattr(tensor, name, None)
        if isinstance(inner, torch.Tensor):
            return inner if type(inner) in PLAIN else _inner(inner)
    return tensor


def _check(tensor):
    """Raises NoValue for a tensor whose elements cannot be read."""
    why = _unreadable(tensor)
    if why:
        raise _unsupported("%s", why)


def _unreadable(tensor):
    """Why its elements cannot be read; None when they can."""
    if getattr(tensor, "is_nested", False):
        return "the tensor is nested: look at its parts, as unbind() gives them"
    if tensor.layout != torch.strided:
        return _sparse(tensor)
    if tensor.is_quantized:
        return "the tensor is quantized (%s): look at its dequantize() copy" % _short(tensor.dtype)
    if tensor.device.type == "meta":
        return "the tensor is on the meta device: it has a shape and no values"
    if tensor.dtype not in DTYPES and tensor.dtype not in _AS_FLOAT32:
        return "values of type %s cannot be shown: convert the tensor first" % _short(tensor.dtype)
    return None


def _sparse(tensor):
    layout = str(tensor.layout).rsplit(".", 1)[-1]
    words = {"sparse_coo": "sparse (COO", "sparse_csr": "sparse (CSR", "sparse_csc": "sparse (CSC",
             "sparse_bsr": "sparse (BSR", "sparse_bsc": "sparse (BSC"}.get(layout)
    if words is None:
        return "the tensor's layout is %s: only strided tensors can be read" % layout
    return "the tensor is %s, %d of %d elements stored): look at its to_dense() copy" % (
        words, tensor._nnz(), tensor.numel())


def note(tensor):
    """What a user must know to read a tensor's values correctly; "" when nothing."""
    if type(tensor) in PLAIN and tensor.dtype in DTYPES and tensor.layout == torch.strided:
        return ""
    try:
        shape = tuple(tensor.shape)
        if callable(getattr(tensor, "local_shards", None)) or hasattr(tensor, "_local_tensor"):
            return "local shard of %s" % (shape,)
        why = _unreadable(tensor)
        if why:
            return why
        if tensor.dtype in _AS_FLOAT32:
            return "%s, shown as float32" % _short(tensor.dtype)
    except (RuntimeError, AttributeError):
        pass
    return ""


def notes(tensors, scale=1.0):
    """The attributes of a node with these outputs: ("value", note()) and ("scale", ...) pairs. scale: of gradients."""
    found = [note(tensor) for tensor in tensors if tensor is not None]
    found = [("value", text) for text in found if text]
    if scale != 1.0:
        found.append(("scale", "%g when it was first seen; values are shown without it, \"agent scale NODE\" shows "
                               "both"
                      % scale))
    return found


def _short(dtype):
    return str(dtype).rsplit(".", 1)[-1]


def _first_line(error):
    return str(error).split("\n", 1)[0].rstrip(".")[:80]


# ---- struct gradb_tensor ----

def geometry(tensor):
    """(shape array, strides array in bytes, dtype number, rank, bytes from the first element to the end of the last,
    whether the elements fill their memory in any order of the axes) of a strided tensor, shared by all tensors of that
    form. NoValue."""
    key = (tensor.shape, tensor.stride(), tensor.dtype)
    found = _geometries.get(key)
    if found is None:
        shape, strides, dtype = key
        if dtype not in DTYPES:
            raise _unsupported("values of type %s cannot be shown: convert the tensor first", _short(dtype))
        number, size = DTYPES[dtype]
        rank = len(shape)
        if rank > _lib.MAX_RANK:
            raise _unsupported("the tensor has %d axes, at most %d can be shown", rank, _lib.MAX_RANK)
        array = ctypes.c_int64 * rank
        reach = 0 if 0 in shape else size * (1 + sum((length - 1) * stride for length, stride in zip(shape, strides)))
        found = (array(*shape), array(*[stride * size for stride in strides]), number, rank, reach,
                 _is_dense(shape, strides))
        if len(_geometries) >= _MAX_GEOMETRIES:
            _geometries.clear()
        _geometries[key] = found
    return found


def _is_dense(shape, strides):
    """Whether the elements fill their memory without gaps or overlaps."""
    expected = 1
    for stride, length in sorted((stride, length) for length, stride in zip(shape, strides) if length != 1):
        if stride != expected:
            return False
        expected *= length
    return True


def _address(tensor):
    """The address of its elements; None when there are none. NoValue: its memory is gone. Frameworks shrink the memory
    of tensors that are still referred to (FSDP does with gathered parameters), and reading it would crash the process.
    """
    reach = geometry(tensor)[4]
    if reach == 0:
        return None
    storage = storage_of(tensor)
    if tensor.storage_offset() * tensor.element_size() + reach > storage.nbytes():
        raise NoValue("its memory was released: sharded training keeps parameters only while they are used"
                      if storage.nbytes() == 0 else "its memory is smaller than its shape needs")
    return tensor.data_ptr()


def has_memory(tensor):
    """Whether a plain strided tensor has elements that can be read."""
    try:
        return _address(tensor) is not None
    except (NoValue, RuntimeError):
        return False


def describe(tensor):
    """The struct gradb_tensor of a plain strided tensor; without an address unless it is in host memory. NoValue, and
    RuntimeError from tensors that have no memory."""
    if tensor.layout != torch.strided:
        raise _unsupported("%s", _sparse(tensor))
    shape, strides, number, rank, *_ = geometry(tensor)
    address = None
    if tensor.device.type == "cpu":
        if tensor.is_conj() or tensor.is_neg():
            raise _unsupported("the tensor is a lazy conjugate or negative")
        address = _address(tensor)
    return _lib.Tensor(number, rank, shape, strides, address)


def shape_of(tensor):
    """Its struct without an address, for the graph; None when nothing is known of it."""
    try:
        with _untraced():  # else lengths are tensors
            return _shape_of(tensor if type(tensor) in PLAIN else _inner(tensor))
    except (NoValue, RuntimeError, AttributeError, TypeError):
        return None


def _shape_of(tensor):
    if tensor.layout == torch.strided and tensor.dtype in DTYPES:
        shape, _, number, rank, *_ = geometry(tensor)
    else:
        number = DTYPES.get(tensor.dtype, (_lib.FLOAT32, 0))[0]
        rank = tensor.dim()
        shape = (ctypes.c_int64 * rank)(*tensor.shape)
    return _lib.Tensor(number, rank, shape, None, None)


def version_of(tensor):
    """How often it was written in place; 0 for tensors that do not count (inference mode)."""
    try:
        return tensor._version
    except RuntimeError:
        return 0


def state_of(tensor):
    """What changes when another tensor takes its place, or it is written."""
    return id(tensor), version_of(tensor)
