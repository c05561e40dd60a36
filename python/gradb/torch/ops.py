# SPDX-License-Identifier: MIT
"""Operators as the user writes them: a TorchFunctionMode that is on only while somebody wants to know.

It lies below all modes of the program (a `with torch.device(...)`, a default device), so that each of those can
be left in any order, and a step may end inside one.
"""
import os
import sys
from types import FunctionType

import torch
from torch import overrides
from torch.overrides import TorchFunctionMode

from .. import native
from . import stack, values
from .guard import OLD, apart, set_mode

# Calls that compute nothing that anybody would look for in a graph. What returns no tensor makes no node
# anyway: it stands here because it is called often.
_NOISE = frozenset((
    "__set__", "__delete__", "size", "dim", "ndimension", "stride", "numel", "nelement", "element_size",
    "data_ptr", "storage_offset", "storage", "untyped_storage", "_typed_storage", "is_contiguous", "is_pinned",
    "is_shared", "is_complex", "is_floating_point", "is_signed", "is_same_size", "is_set_to", "is_conj", "is_neg",
    "is_inference", "is_nonzero", "get_device", "__len__", "__hash__", "__repr__", "__format__", "__str__",
    "__dir__", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__contains__", "__iter__",
    "__reduce_ex__", "__deepcopy__", "__setstate__", "__array__", "__array_wrap__", "numpy", "tolist", "item",
    "requires_grad_", "retain_grad", "register_hook", "register_post_accumulate_grad_hook", "backward", "detach_",
    "set_", "record_stream", "share_memory_", "pin_memory", "dense_dim", "sparse_dim", "is_tensor", "is_storage",
    "unflatten_names", "refine_names", "align_to", "has_names", "names", "manual_seed", "is_coalesced", "qscheme",
    "_is_view", "can_cast", "result_type", "promote_types", "get_default_dtype", "broadcast_shapes",
    "is_grad_enabled", "_assert_async", "_make_subclass", "_make_wrapper_subclass", "as_subclass",
    "profiler_record_function", "_record_function_enter", "_record_function_exit", "_record_function_enter_new",
    "_use_cudnn_ctc_loss", "_choose_qparams_per_tensor", "_nested_tensor_size", "is_distributed",
    "is_autocast_cache_enabled", "_is_any_true", "_is_all_true", "get_num_threads", "set_grad_enabled",
    "_has_compatible_shallow_copy_type", "_backward_hooks",
    "__dlpack__", "grad", "resize_", "_to_copy_noop", "_sync", "is_vulkan_available", "equal", "allclose"))
# Of these the ones after which the program may write where nobody sees it.
_LEAKS = frozenset(("data_ptr", "storage", "untyped_storage", "_typed_storage", "numpy", "__array__", "set_",
                    "share_memory_", "__dlpack__"))
# Of these the ones whose result is no tensor any more: no gradient comes back from what is computed with it.
_EXITS = frozenset(("numpy", "__array__", "item", "tolist", "__float__"))
_EMPTY = frozenset(("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"))
_VIEWS = frozenset(("T", "mT", "H", "mH", "real", "imag", "data"))  # properties that give another tensor
_REVERSED = frozenset("r" + name for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "div",
                                              "and", "or", "xor", "lshift", "rshift"))
_IN_PLACE = frozenset("i" + name for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "div", "and",
                                              "or", "xor", "lshift", "rshift")) | {"setitem"}
_is_tracing = torch._C._get_tracing_state


class _Operator(native.base("Operator")):
    """A function: name of its nodes; writes: into its first argument; empty: gives memory without a value;
    view: gives another look at its argument, and is no node; leaks: is no node either, and hands out its memory;
    usual: none of these, and no other exception; in_place: it writes, and is no other exception; counts: of such a
    name are those that count up; exits: it makes a number or an array of a tensor, and is no node either."""
    __slots__ = native.slots("Operator", ("name", "writes", "empty", "view", "leaks", "sets_item", "usual", "in_place",
                                          "counts", "exits"))

    def __init__(self, name, view=False, leaks=False):
        self.name = name
        self.exits = name in _EXITS
        self.writes = name in _IN_PLACE or (name.endswith("_") and not name.startswith("_")
                                            and name != "clip_grad_norm_")
        self.empty = name in _EMPTY
        self.view = view
        self.leaks = leaks
        self.sets_item = name == "setitem"
        special = self.empty or view or leaks or self.exits or name == "zeros"  # see Telling._operator_ran
        self.usual = not (self.writes or special)
        self.in_place = self.writes and not (special or self.sets_item)
        self.counts = name in ("add_", "iadd")


def _sets_memory(function, name):
    """Whether it gives a tensor other memory: `x.data = y`, after which x counts its writes on as if nothing was."""
    return name == "__set__" and getattr(getattr(function, "__self__", None), "__name__", "") == "data"


def _operator_of(function):
    """What is known of a function; None for one that is left out."""
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name in _NOISE:
        leaks = name in _LEAKS or _sets_memory(function, name)
        return _Operator(name, leaks=leaks) if leaks or name in _EXITS else None
    if name == "__get__":
        held = getattr(getattr(function, "__self__", None), "__name__", "")
        return _Operator(held, view=True, leaks=held == "data") if held in _VIEWS else None
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]  # __setitem__, __radd__: setitem, add
        if name in ("init", "new", "torch_function", "subclasscheck", "instancecheck"):
            return None
        if name in _REVERSED:
            name = name[1:]
    return _Operator(name)


def named(name):
    """What stands for a call that no function of torch's is."""
    return _Operator(name)


def tensors_in(value, found, depth=0):
    """Appends the tensors in tuples, lists, dicts and dataclasses to `found`, in order."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        if depth < 8:
            for item in value:
                tensors_in(item, found, depth + 1)
    elif isinstance(value, dict):
        if depth < 8:
            for item in value.values():
                tensors_in(item, found, depth + 1)
    elif depth < 8 and hasattr(type(value), "__dataclass_fields__"):
        for name in type(value).__dataclass_fields__:
            tensors_in(getattr(value, name, None), found, depth + 1)


_SHARDING = os.path.join(os.path.dirname(torch.__file__), "distributed", "")


_MAX_CODES = 65536
_sharding = {}  # id of a code object -> (the code object, which is held so that the id lasts, whether it shards models)


def _shards(code):
    found = _sharding.get(id(code))
    if found is None:
        if len(_sharding) >= _MAX_CODES:
            _sharding.clear()
        found = _sharding[id(code)] = (code, code.co_filename.startswith(_SHARDING))
    return found[1]


def _is_sharding(frame):
    """Whether what shards a model calls, and not the program: to fetch parameters and to put gradients together."""
    before = frame.f_back  # of a call through torch.ops
    return _shards(frame.f_code) or (before is not None and _shards(before.f_code))


def _call(caller, function, args, kwargs):
    """Calls a function that the frame `caller` has called: its warnings have that line."""
    if type(function) is FunctionType:
        return function(*args, **kwargs)
    try:
        return stack.call_from(caller, function, args, kwargs)
    except Exception as error:
        raise error.with_traceback(stack.inside(error.__traceback__))


class _Operators:
    """The base where there is no gradb._native: each operator is intercepted."""


class OperatorMode(native.base("Operators", _Operators), TorchFunctionMode):
    """Tells the agent of each operator. The native base does that of the usual ones that are known; see
    `intercept` for all others."""

    def __init__(self, agent):
        super().__init__()
        self._agent = agent
        self.operators = {}  # function -> _Operator or None; the function is held, so its identity lasts

    def intercept(self, func, types, args=(), kwargs=None):
        """Calls an operator and tells of it. It must be called by what calls the operator: see _is_sharding."""
        agent = self._agent
        try:
            operator = self.operators[func] if agent.looking else None
        except KeyError:
            operator = self.operators[func] = _operator_of(func)
        except TypeError:  # not hashable
            operator = None
        if operator is None or _is_tracing() is not None or (agent.shards and _is_sharding(sys._getframe(1))):
            return _call(sys._getframe(1), func, args, kwargs or {})
        telling = agent.telling
        if operator.leaks:
            telling.graph.leaked = telling.graph.step
        if operator.view:
            result = _call(sys._getframe(1), func, args, {})
            telling.same_as(result, args[0], operator.leaks)
            return result
        if operator.leaks or operator.exits:
            result = _call(sys._getframe(1), func, args, kwargs or {})
            if operator.exits and args:
                telling.left_by(operator.name, args[0])
            return result
        out = kwargs.get("out") if kwargs else None
        if operator.writes or out is not None or (kwargs and kwargs.get("inplace")):
            telling.before_write()
        overflow = agent.overflow
        if overflow is not None:
            overflow.begins(func, operator, args, kwargs)
        timing = agent.timing
        began = timing.now() if timing.on else 0.0
        try:
            if agent.detail is not None:
                result = agent.detail.run(func, args, kwargs or {})
            else:
                result = _call(sys._getframe(1), func, args, kwargs or {})
        except Exception as error:
            telling.operator_raised(operator, args, kwargs, error)
            if overflow is not None:
                overflow.forget()
            raise
        if timing.on:
            timing.took(timing.now() - began)
        # an assignment to elements writes its first argument and returns nothing
        telling.operator_ran(operator, args, kwargs, args[0] if operator.sets_item else result,
                             operator.writes or out is not None)
        if overflow is not None:
            overflow.forget()
        return result

    if native.module is None:
        __torch_function__ = intercept


def push(mode):
    """Puts the mode on this thread, below those of the program."""
    if is_on(mode):
        return
    above = _take_all()
    default = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
    if _DEFAULT_IS_LOWEST and above and default is not None and above[-1] is default:
        torch._C._push_on_torch_function_stack(above.pop())
    _put_back([mode] + above[::-1])
    if _UNASKED:
        _see_indexing()


def pop(mode):
    """Takes the mode off."""
    if _UNASKED:
        _unsee_indexing()
    _remove(mode)


def again(mode):
    """Puts the mode on inside a function of torch that it was taken off for. Returns what undoes it, or None
    when it was on."""
    if is_on(mode):
        return None
    push(mode)
    return lambda: _remove(mode)


def off(mode):
    """Takes the mode off for a moment. Returns what puts it on again, or None when it was not on."""
    if not is_on(mode):
        return None
    _remove(mode)
    return lambda: push(mode)


def is_on(mode):
    """Whether the mode is on this thread."""
    return any(torch._C._get_function_stack_at(i) is mode for i in range(torch._C._len_torch_function_stack()))


def _take_all():
    return [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]


def _put_back(modes):
    for mode in modes:
        torch._C._push_on_torch_function_stack(mode)
    if OLD:
        set_mode()


def _remove(mode):
    _put_back([other for other in _take_all()[::-1] if other is not mode])


# ---- older versions ----

class _Asked(TorchFunctionMode):
    """Notes whether it is asked, and computes nothing."""
    asked = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.asked = True


# What the native mode has call a function in the program's name: there is a frame of torch's in between.
stand_in = (lambda function, args, kwargs: _call(sys._getframe(1), function, args, kwargs or {})) if OLD else None


def _is_indexing_seen():
    tensor = torch.empty(1, device="cpu")
    with _Asked() as mode:
        _ = tensor[0]
    return mode.asked


_UNASKED = not _is_indexing_seen()  # up to 2.1 plain tensors do not ask the mode when they are read by an index
# The default device wants to be the lowest mode. Up to 2.4 it wants to be the highest when it goes, as every mode does.
_DEFAULT_IS_LOWEST = hasattr(getattr(torch.utils, "_device", None), "_len_torch_function_stack")


def _see_indexing():
    if "__getitem__" in vars(torch.Tensor):
        return
    read, write = torch.Tensor.__getitem__, torch.Tensor.__setitem__

    def __getitem__(tensor, index):
        if type(tensor) in values.PLAIN and torch._C._is_torch_function_mode_enabled():
            return overrides.handle_torch_function(read, (tensor,), tensor, index)
        return read(tensor, index)

    def __setitem__(tensor, index, value):
        if type(tensor) in values.PLAIN and torch._C._is_torch_function_mode_enabled():
            return overrides.handle_torch_function(write, (tensor,), tensor, index, value)
        return write(tensor, index, value)
    torch.Tensor.__getitem__, torch.Tensor.__setitem__ = __getitem__, __setitem__


def _unsee_indexing():
    if "__getitem__" in vars(torch.Tensor):
        del torch.Tensor.__getitem__, torch.Tensor.__setitem__
