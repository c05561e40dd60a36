# SPDX-License-Identifier: MIT
"""Operators as the user writes them: a TorchFunctionMode that is active only while somebody watches.

It is below all modes of the program (a `with torch.device(...)`, a default device), so that those can be left in any
order, and a step may end inside one."""
import os
import sys
from types import FunctionType

import torch
from torch import overrides
from torch.overrides import TorchFunctionMode

from .. import native
from . import scripted, stack, values
from .guard import OLD, set_mode

# Calls that compute nothing of interest in a graph. What returns no tensor makes no node anyway; it is listed here
# because it is called often.
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
# Those of them after which the program may write unnoticed.
_LEAKS = frozenset(("data_ptr", "storage", "untyped_storage", "_typed_storage", "numpy", "__array__", "set_",
                    "share_memory_", "__dlpack__"))
# Those of them whose result is not a tensor: no gradient comes back from what is computed with it.
_EXITS = frozenset(("numpy", "__array__", "item", "tolist", "__float__"))
# Other functions that wait for a value.
_READS = frozenset(("__bool__", "__int__", "__index__", "__complex__", "is_nonzero", "__repr__", "__str__",
                    "__format__", "equal", "allclose"))
_EMPTY = frozenset(("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"))
_VIEWS = frozenset(("T", "mT", "H", "mH", "real", "imag", "data"))  # properties that return another tensor
_REVERSED = frozenset("r" + name for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "div",
                                              "and", "or", "xor", "lshift", "rshift"))
_IN_PLACE = frozenset("i" + name for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "div", "and",
                                              "or", "xor", "lshift", "rshift")) | {"setitem"}
_is_tracing = torch._C._get_tracing_state


class _Operator(native.base("Operator")):
    """What is known of a function.

    name: of its nodes; writes: into its first argument; empty: returns memory without a value;
    view: returns a view of its argument, and is not a node; leaks: hands out its memory, and is not a node;
    exits: reads values (makes a number, an array or a text of a tensor), and is not a node;
    sets_item: an assignment to elements; usual: none of these; in_place: writes, and nothing else of these;
    counts: some calls of it are counters."""
    __slots__ = native.slots("Operator", ("name", "writes", "empty", "view", "leaks", "sets_item", "usual", "in_place",
                                          "counts", "exits"))

    def __init__(self, name, view=False, leaks=False):
        self.name = name
        name = name.partition(".")[0]  # of torch.ops.aten.add_.Tensor, which is named "add_.Tensor"
        self.exits = name in _EXITS or name in _READS
        self.writes = name in _IN_PLACE or (name.endswith("_") and not name.startswith("_")
                                            and name != "clip_grad_norm_")
        self.empty = name in _EMPTY
        self.view = view
        self.leaks = leaks
        self.sets_item = name == "setitem"
        special = self.empty or view or leaks or self.exits or name == "zeros"  # see Reporter._operator_ran
        self.usual = not (self.writes or special)
        self.in_place = self.writes and not (special or self.sets_item)
        self.counts = name in ("add_", "iadd")


def _sets_memory(function, name):
    """Whether it replaces a tensor's memory: `x.data = y`, after which x counts writes as if nothing had happened."""
    return name == "__set__" and getattr(getattr(function, "__self__", None), "__name__", "") == "data"


def _operator_of(function):
    """What is known of a function; None for one that is ignored."""
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name.partition(".")[0] in _NOISE:  # of an overload: NAME.OVERLOAD
        leaks = name in _LEAKS or _sets_memory(function, name)
        return _Operator(name, leaks=leaks) if leaks or name in _EXITS or name in _READS else None
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
    """The _Operator of a call that is not a function of PyTorch's."""
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
_sharding = {}  # id of a code object -> (the code object, held so that the id stays valid, whether it shards models)


def _shards(code):
    found = _sharding.get(id(code))
    if found is None:
        if len(_sharding) >= _MAX_CODES:
            _sharding.clear()
        found = _sharding[id(code)] = (code, code.co_filename.startswith(_SHARDING))
    return found[1]


def _is_sharding(frame):
    """Whether the caller is code that shards models (fetches parameters, reduces gradients), and not the program."""
    before = frame.f_back  # the caller of torch.ops
    return _shards(frame.f_code) or (before is not None and _shards(before.f_code))


def _call(caller, function, args, kwargs):
    """Calls a function for the frame `caller`, so that warnings name its line."""
    if type(function) is FunctionType:
        return function(*args, **kwargs)
    try:
        return stack.call_from(caller, function, args, kwargs)
    except Exception as error:
        raise error.with_traceback(stack.inside(error.__traceback__))


class _Operators:
    """The base without gradb._native: each operator is intercepted."""


class OperatorMode(native.base("Operators", _Operators), TorchFunctionMode):
    """Reports each operator to the agent. The native base handles the usual ones that are known; see `intercept` for
    all others."""

    def __init__(self, agent):
        super().__init__()
        self._agent = agent
        self.operators = {}  # function -> _Operator or None; holds the function, so that its identity stays valid

    def intercept(self, func, types, args=(), kwargs=None):
        """Calls an operator and reports it. Call it directly from what calls the operator: see _is_sharding."""
        agent = self._agent
        try:
            operator = self.operators[func] if agent.watching_now else None
        except KeyError:
            operator = self.operators[func] = _operator_of(func)
        except TypeError:  # not hashable
            operator = None
        if operator is None or _is_tracing() is not None or (agent.shards and _is_sharding(sys._getframe(1))):
            return _call(sys._getframe(1), func, args, kwargs or {})
        reporter = agent.reporter
        if operator.leaks or operator.view or operator.exits:
            return self._run_without_node(operator, sys._getframe(1), func, args, kwargs)
        out = kwargs.get("out") if kwargs else None
        if operator.writes or out is not None or (kwargs and kwargs.get("inplace")):
            reporter.before_write()
        overflow = agent.overflow
        if overflow is not None:
            overflow.begins(func, operator, args, kwargs)
        timing = agent.timing
        began = timing.now() if timing.on else 0.0
        try:
            if agent.detail is not None:
                result = agent.detail.run(func, args, kwargs or {})
            elif agent.allocations is not None:
                result = agent.allocations.run(_call, sys._getframe(1), func, args, kwargs or {})
            else:
                result = _call(sys._getframe(1), func, args, kwargs or {})
        except Exception as error:
            reporter.operator_raised(operator, args, kwargs, error)
            if overflow is not None:
                overflow.forget()
            raise
        if timing.on:
            timing.took(began, result)
        # an assignment to elements writes its first argument and returns nothing
        reporter.operator_ran(operator, args, kwargs, args[0] if operator.sets_item else result,
                             operator.writes or out is not None)
        if overflow is not None:
            overflow.forget()
        if agent.observer is not None:
            agent.observer.operator_ran(operator, func, args, kwargs, result)
        return result

    def _run_without_node(self, operator, caller, func, args, kwargs):
        """Calls an operator that is not a node: it returns a view, hands out memory, or leaves the graph."""
        reporter = self._agent.reporter
        if operator.leaks:
            reporter.graph.leaked = reporter.graph.step
        if operator.view:
            result = _call(caller, func, args, {})
            reporter.same_as(result, args[0], operator.leaks)
            if self._agent.observer is not None:
                self._agent.observer.left(operator, func, args, kwargs, result)
            return result
        timing = self._agent.timing
        began = timing.now() if timing.on else 0.0
        result = _call(caller, func, args, kwargs or {})
        if timing.on and operator.exits:
            timing.waited(operator.name, began)
        if operator.name in _EXITS and args:
            reporter.left_by(operator.name, args[0])
        if self._agent.observer is not None:
            self._agent.observer.left(operator, func, args, kwargs, result)
        return result

    if native.module is None:
        __torch_function__ = intercept


def push(mode):
    """Pushes the mode on this thread, below those of the program."""
    count = torch._C._len_torch_function_stack()
    if not count and not OLD:  # nearly always
        torch._C._push_on_torch_function_stack(mode)
        _began()
        return
    if is_on(mode):
        return
    above = _take_all()
    default = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
    if _DEFAULT_IS_LOWEST and above and default is not None and above[-1] is default:
        torch._C._push_on_torch_function_stack(above.pop())
    _put_back([mode] + above[::-1])
    _began()


def _began():
    _choose_as_without()
    if _UNASKED:
        _see_indexing()


def pop(mode):
    """Pops the mode."""
    _choose_as_ever()
    if _UNASKED:
        _unsee_indexing()
    _remove(mode)


def again(mode):
    """Pushes the mode inside a function of PyTorch's for which it was popped. Returns a function that undoes it, or
    None when it was active."""
    if is_on(mode):
        return None
    push(mode)
    return lambda: _remove(mode)


def off(mode):
    """Pops the mode for a moment. Returns a function that pushes it again, or None when it was not active."""
    if not is_on(mode):
        return None
    _remove(mode)
    return lambda: push(mode)


def is_on(mode):
    """Whether the mode is active on this thread."""
    count = torch._C._len_torch_function_stack()
    if count == 1:
        return torch._C._get_function_stack_at(0) is mode
    return any(torch._C._get_function_stack_at(i) is mode for i in range(count))


def _take_all():
    return [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]


def _put_back(modes):
    for mode in modes:
        torch._C._push_on_torch_function_stack(mode)
    if OLD:
        set_mode()


def _remove(mode):
    if not OLD and torch._C._len_torch_function_stack() == 1 and is_on(mode):
        torch._C._pop_torch_function_stack()
        return
    _put_back([other for other in _take_all()[::-1] if other is not mode])


# ---- choices ----

_asks = overrides.has_torch_function


def _is_overridden(tensors):
    """overrides.has_torch_function, which torch.nn's modules ask before they choose a faster way to compute the same:
    our mode alone must not change their choice."""
    if torch._C._len_torch_function_stack() == 1 and type(torch._C._get_function_stack_at(0)) is OperatorMode \
            and type(tensors) in (tuple, list) and all(type(tensor) in values.PLAIN for tensor in tensors):
        return False
    return _asks(tensors)


scripted.stands_for(_is_overridden, _asks)


def _choose_as_without():
    if overrides.has_torch_function is _asks:
        overrides.has_torch_function = _is_overridden


def _choose_as_ever():
    if overrides.has_torch_function is _is_overridden:
        overrides.has_torch_function = _asks


# ---- older versions ----

class _Asked(TorchFunctionMode):
    """Notes whether it is called, and computes nothing."""
    asked = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.asked = True


# Calls a function in the program's name for the native mode: a frame of PyTorch's is in between.
stand_in = (lambda function, args, kwargs: _call(sys._getframe(1), function, args, kwargs or {})) if OLD else None


def _is_indexing_seen():
    tensor = torch.empty(1, device="cpu")
    with _Asked() as mode:
        _ = tensor[0]
    return mode.asked


_UNASKED = not _is_indexing_seen()  # up to 2.1, reading a plain tensor by index does not call the mode
# The default device must be the lowest mode. Up to 2.4 it must be the highest when it is removed, like every mode.
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
