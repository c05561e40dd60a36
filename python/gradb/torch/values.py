# SPDX-License-Identifier: MIT
"""Tensors as libgradb sees them, and where a node's value lies when the debugger asks.

Nothing is kept alive for the debugger's sake: outputs are found by weak references, and a value that is
gone or was overwritten is said to be so.
"""
import contextlib
import ctypes
import weakref

import torch

from .. import _lib, native

DTYPES = {torch.bool: (_lib.BOOL, 1), torch.int8: (_lib.INT8, 1), torch.int16: (_lib.INT16, 2),
          torch.int32: (_lib.INT32, 4), torch.int64: (_lib.INT64, 8), torch.uint8: (_lib.UINT8, 1),
          torch.float16: (_lib.FLOAT16, 2), torch.float32: (_lib.FLOAT32, 4), torch.float64: (_lib.FLOAT64, 8),
          torch.bfloat16: (_lib.BFLOAT16, 2), torch.complex64: (_lib.COMPLEX64, 8),
          torch.complex128: (_lib.COMPLEX128, 16)}
for _name, _code in (("uint16", _lib.UINT16), ("uint32", _lib.UINT32), ("uint64", _lib.UINT64)):
    if hasattr(torch, _name):
        DTYPES[getattr(torch, _name)] = (_code, int(_name[4:]) // 8)
# Each of their values is one of float32: that is what is shown.
_AS_FLOAT32 = frozenset(getattr(torch, name) for name in (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu") if hasattr(torch, name))

PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_MAX_GEOMETRIES = 16384
_geometries = {}  # (shape, strides, dtype) -> what geometry() returns
storage_of = getattr(torch.Tensor, "untyped_storage", None) or getattr(torch.Tensor, "_storage", None) \
    or torch.Tensor.storage


class NoValue(Exception):
    """Why a tensor cannot be looked at; .answer is one of gradb_answer."""

    def __init__(self, reason, answer=_lib.NO_VALUE):
        super().__init__(reason)
        self.answer = answer


def _unsupported(text, *args):
    return NoValue(text % args, _lib.UNSUPPORTED)


@contextlib.contextmanager
def aside():
    """What is computed inside is no part of the training: no gradients, no modes of the program."""
    guard = None
    with torch.no_grad(), torch._C.DisableTorchFunction():
        try:
            guard = torch._C._DisableTorchDispatch()
            if hasattr(guard, "__enter__"):
                with guard:
                    yield
            else:  # 1.13: it holds as long as it lives
                yield
        finally:
            del guard


# ---- what can be read, and how ----

def readable(tensor):
    """A strided tensor that shares its memory where it can, of a type of DTYPES, on the device where it lies;
    its local part where it is sharded. NoValue: why there is none. See note()."""
    if type(tensor) not in PLAIN:
        tensor = _inner(tensor)
    try:
        _check(tensor)
        tensor = tensor.detach()
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        if tensor.dtype in _AS_FLOAT32:
            tensor = tensor.to(torch.float32)
        if tensor.device.type in ("cpu", "cuda"):
            _address(tensor)
        if tensor.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            raise _unsupported("a CUDA graph is being captured: nothing can be read before it is")
    except (RuntimeError, AttributeError) as error:  # wrappers of all kinds
        if "TensorWrapper" in str(error) or "BatchedTensor" in str(error):
            raise _unsupported("it stands for other tensors inside a transform (vmap, grad): what comes out of "
                               "that has values")
        raise _unsupported("the tensor has no memory of its own (%s)", _first_line(error))
    return tensor


def may_be_infinite(tensor):
    """Whether it has elements that are not finite, or cannot be looked at."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return False
    try:
        with aside():
            return not bool(torch.isfinite(readable(tensor)).all())
    except (NoValue, RuntimeError):
        return True


def _inner(tensor):
    """What a subclass of Tensor is made of: of one that is spread over processes the local part."""
    shards = getattr(tensor, "local_shards", None)
    if callable(shards):
        shards = shards()
        if not shards:
            raise NoValue("no part of it lies on this rank")
        return shards[0].tensor
    kind = type(tensor).__name__
    if kind == "FakeTensor":
        raise _unsupported("the tensor is fake: it has a shape and no values")
    for name in ("_local_tensor", "elem"):  # DTensor; AsyncCollectiveTensor and wrappers alike
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
        return "the tensor is quantised (%s): dequantize() it to look" % _short(tensor.dtype)
    if tensor.device.type == "meta":
        return "the tensor lies on the meta device: it has a shape and no values"
    if tensor.dtype not in DTYPES and tensor.dtype not in _AS_FLOAT32:
        return "values of %s cannot be shown: convert it to look" % _short(tensor.dtype)
    return None


def _sparse(tensor):
    layout = str(tensor.layout).rsplit(".", 1)[-1]
    words = {"sparse_coo": "sparse (COO", "sparse_csr": "sparse (CSR", "sparse_csc": "sparse (CSC",
             "sparse_bsr": "sparse (BSR", "sparse_bsc": "sparse (BSC"}.get(layout)
    if words is None:
        return "the tensor's layout is %s: only strided ones can be read" % layout
    return "the tensor is %s, %d of %d elements stored): to_dense() it to look" % (
        words, tensor._nnz(), tensor.numel())


def note(tensor):
    """What a user must know of a tensor's values to read them right; "" when they are what they seem."""
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
    """The attributes of a node with these outputs, gradients that are `scale` times what they should be: ("value",
    what note() says) and ("scale", ...) pairs."""
    found = [note(tensor) for tensor in tensors if tensor is not None]
    found = [("value", text) for text in found if text]
    if scale != 1.0:
        found.append(("scale", "%g when it was first seen: it is shown without it; \"agent scale NODE\" shows both"
                      % scale))
    return found


def _short(dtype):
    return str(dtype).rsplit(".", 1)[-1]


def _first_line(error):
    return str(error).split("\n", 1)[0].rstrip(".")[:80]


# ---- struct gradb_tensor ----

def geometry(tensor):
    """(shape array, strides array in bytes, dtype number, rank, bytes that its elements reach, whether they lie side
    by side in whatever order of the axes), shared by all tensors alike. The tensor is strided. NoValue."""
    key = (tensor.shape, tensor.stride(), tensor.dtype)
    found = _geometries.get(key)
    if found is None:
        shape, strides, dtype = key
        if dtype not in DTYPES:
            raise _unsupported("values of %s cannot be shown: convert it to look", _short(dtype))
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
    """Whether each element has a place of its own, with none left over between them."""
    expected = 1
    for stride, length in sorted((stride, length) for length, stride in zip(shape, strides) if length != 1):
        if stride != expected:
            return False
        expected *= length
    return True


def _address(tensor):
    """Where its elements lie; None when there are none. NoValue: its memory is not there. Frameworks shrink the
    memory of tensors that go on being referred to (FSDP does with gathered parameters): to read there would
    end the process."""
    reach = geometry(tensor)[4]
    if reach == 0:
        return None
    storage = storage_of(tensor)
    if tensor.storage_offset() * tensor.element_size() + reach > storage.nbytes():
        raise NoValue("its memory was given back: sharded training keeps parameters only while they are used"
                      if storage.nbytes() == 0 else "its memory is smaller than its shape says")
    return tensor.data_ptr()


def describe(tensor):
    """The struct gradb_tensor of a plain strided tensor; without its address when it is not in host memory.
    NoValue, and RuntimeError from tensors that have no memory."""
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
    """Its struct without address, for the graph; None when nothing is known of it."""
    try:
        if type(tensor) not in PLAIN:
            tensor = _inner(tensor)
        if tensor.layout == torch.strided and tensor.dtype in DTYPES:
            shape, _, number, rank, *_ = geometry(tensor)
        else:
            number = DTYPES.get(tensor.dtype, (_lib.FLOAT32, 0))[0]
            rank = tensor.dim()
            shape = (ctypes.c_int64 * rank)(*tensor.shape)
    except (NoValue, RuntimeError, AttributeError, TypeError):
        return None
    return _lib.Tensor(number, rank, shape, None, None)


NOT_TOLD = _lib.Tensor(_lib.FLOAT32, 0, None, None, None)
NO_TENSOR = _lib.Tensor(0, 0, None, None, None)  # a slot that has none: nothing to look at


def told(tensor):
    """For gradb_did_with: a tensor without address is asked for when it is wanted, so that its reason is told."""
    if tensor is None:
        return NO_TENSOR
    try:
        if type(tensor) in PLAIN:
            return describe(tensor)
    except (NoValue, RuntimeError):
        pass
    return NOT_TOLD


class Places(native.base("Places")):
    """The structs of a node's outputs for gradb_did_with, the same ones each time: what has the shape, strides and
    type that it had the last time gets a new address and nothing else.

    array: what gradb_did_with takes; address: where it lies; count: its length."""
    __slots__ = native.slots("Places", ("array", "address", "count", "_structs", "_forms", "_held"))

    def __init__(self, count):
        self.array = (_lib.Tensor * count)()
        self.address = ctypes.addressof(self.array)
        self.count = count
        self._structs = [self.array[slot] for slot in range(count)]  # they lie in the array
        self._held = [None] * count  # what holds the shapes and strides
        # (shape, strides, dtype, reach, bytes of an element, type, dense) as geometry() says; None: look
        self._forms = [None] * count

    def fill(self, tensors):
        """The addresses of this run's outputs: a tensor or None per slot."""
        for slot, tensor in enumerate(tensors):
            form = self._forms[slot]
            if form is None:
                self._look(slot, tensor)
                continue
            shape, strides, dtype, reach, size, kind, _ = form
            if (type(tensor) is not kind or tensor.shape != shape or tensor.stride() != strides
                    or tensor.dtype is not dtype or not tensor.is_cpu or tensor.is_neg()
                    or tensor.storage_offset() * size + reach > storage_of(tensor).nbytes()):
                self._look(slot, tensor)  # it says why
            else:
                self._structs[slot].data = tensor.data_ptr()

    def fill_none(self, tensors):
        """The values are to be asked for."""
        for slot, tensor in enumerate(tensors):
            self._put(slot, NO_TENSOR if tensor is None else NOT_TOLD)

    def _look(self, slot, tensor):
        struct = told(tensor)
        self._put(slot, struct)
        if struct.data and not tensor.is_complex():  # those may be lazily conjugated
            *_, reach, dense = geometry(tensor)
            self._forms[slot] = (tensor.shape, tensor.stride(), tensor.dtype, reach, tensor.element_size(),
                                 type(tensor), dense)

    def _put(self, slot, struct):
        self._forms[slot] = None
        self._held[slot] = struct
        ctypes.pointer(self._structs[slot])[0] = struct


# ---- where a node's value lies ----

class Live(native.base("Live")):
    """Weak references to the outputs of nodes in this step and the one before, and the holders of what lasts.

    kept: the numbers of the nodes of which `on_kept(number, tensors)` hears when they have run; scale: what a
    GradScaler multiplies gradients by in the backward pass that runs."""

    def __init__(self):
        self._step = 0
        self._now = {}      # node number -> (reference, version, ...) or None per slot, of this step
        self._before = {}   # of the one before
        self._scales = {}   # node number -> scale when it ran last, where there was one
        self._lasting = {}  # node number -> function that gives the tensor, or None when there is none
        self._leaves = {}   # node number of a gradient -> function that gives its parameter, or None
        self.kept = frozenset()
        self.on_kept = None
        self.scale = 1.0

    def ran(self, number, step, tensors):
        """Its outputs of this step: a tensor or None per slot."""
        self.ran_as(number, step, tuple(None if tensor is None else (weakref.ref(tensor), version_of(tensor))
                                        for tensor in tensors))

    def ran_as(self, number, step, records):
        """The same, as (weak reference, version, ...) or None per slot."""
        if step != self._step:
            self._before = self._now if step == self._step + 1 else {}
            self._now = {}
            self._step = step
        self._now[number] = records
        if self.scale != 1.0:
            self._scales[number] = self.scale
        elif self._scales:
            self._scales.pop(number, None)
        if number in self.kept:
            self.on_kept(number, [None if record is None else record[0]() for record in records])

    def lasts(self, number, get):
        """The node's one value is what `get()` returns whenever it is asked for."""
        self._lasting[number] = get

    def gradient(self, number, leaf):
        """The node's one value is the gradient of the parameter that `leaf()` returns."""
        self._leaves[number] = leaf

    def leaf(self, number):
        """The parameter whose gradient the node is; None when it is none, or gone."""
        get = self._leaves.get(number)
        return get() if get is not None else None

    def getter(self, number):
        """What lasts() was given."""
        return self._lasting.get(number)

    def lasting(self, number):
        """The tensor of a node whose value lasts; None when it has none now, or is another node."""
        leaf = self._leaves.get(number)
        if leaf is not None:
            parameter = leaf()
            return parameter.grad if parameter is not None else None
        get = self._lasting.get(number)
        return get() if get is not None else None

    def is_lasting(self, number):
        """Whether its value is asked for where it lies, rather than seen when it is made."""
        return number in self._lasting or number in self._leaves

    def run_scale(self, number):
        """What its gradients were multiplied by when it ran."""
        return self._scales.get(number, 1.0)

    def counts(self):
        """How much is referred to: (outputs of this step, of the one before, values that last)."""
        return len(self._now), len(self._before), len(self._lasting) + len(self._leaves)

    def find(self, number, slot):
        """(tensor, step) of a node's output; step -1 when it is as old as whoever holds it. NoValue."""
        if number in self._leaves:
            return self._find_gradient(number, slot), -1
        get = self._lasting.get(number)
        if get is not None:
            tensor = get() if slot == 0 else None
            if tensor is None:
                raise NoValue("the program has no such tensor any more", _lib.GONE)
            return tensor, -1
        if number in self._now:
            return self._find_output(self._now[number], slot), self._step
        if number in self._before:
            return self._find_output(self._before[number], slot), self._step - 1
        raise NoValue("it has not run in this step or the last one while the debugger was looking")

    def _find_gradient(self, number, slot):
        leaf = self.leaf(number)
        if leaf is None:
            raise NoValue("the program has dropped its parameter", _lib.GONE)
        if leaf.grad is None or slot != 0:
            raise NoValue("there is no gradient: no backward pass has reached it since zero_grad()")
        return leaf.grad

    @staticmethod
    def _find_output(records, slot):
        if slot >= len(records) or records[slot] is None:
            raise NoValue("output %d of it is no tensor" % slot)
        tensor = records[slot][0]()
        if tensor is None:
            raise NoValue("the program has dropped it: stop right behind the operator to look at it")
        if version_of(tensor) != records[slot][1]:
            raise NoValue("it was overwritten in place since: stop right behind the operator to look at it")
        return tensor


def version_of(tensor):
    """How often it was written in place; 0 for those that do not count (inference mode)."""
    try:
        return tensor._version
    except RuntimeError:
        return 0
