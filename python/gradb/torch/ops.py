# SPDX-License-Identifier: MIT
"""Operators as the user writes them: a TorchFunctionMode that is on only while somebody wants to know."""
import torch
from torch.overrides import TorchFunctionMode

# Calls that compute nothing that anybody would look for in a graph.
_NOISE = frozenset((
    "__get__", "__set__", "__delete__", "size", "dim", "ndimension", "stride", "numel", "nelement", "element_size",
    "data_ptr", "storage_offset", "storage", "untyped_storage", "_typed_storage", "is_contiguous", "is_pinned",
    "is_shared", "is_complex", "is_floating_point", "is_signed", "is_same_size", "is_set_to", "is_conj", "is_neg",
    "is_inference", "is_nonzero", "get_device", "__len__", "__hash__", "__repr__", "__format__", "__str__",
    "__dir__", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__contains__", "__iter__",
    "__reduce_ex__", "__deepcopy__", "__setstate__", "__array__", "numpy", "tolist", "item", "requires_grad_",
    "retain_grad", "register_hook", "register_post_accumulate_grad_hook", "backward", "detach_", "set_",
    "record_stream", "share_memory_", "pin_memory", "type", "dense_dim", "sparse_dim", "is_tensor", "is_storage",
    "_backward_hooks", "unflatten_names", "refine_names", "align_to", "has_names", "names", "manual_seed",
    "_is_view", "can_cast", "result_type", "promote_types", "get_default_dtype", "broadcast_shapes", "is_grad_enabled",
    "_assert_async", "_make_subclass", "_make_wrapper_subclass", "as_subclass", "profiler_record_function",
    "_record_function_enter", "_record_function_exit", "_record_function_enter_new", "_use_cudnn_ctc_loss",
    "_choose_qparams_per_tensor", "_nested_tensor_size"))


def _name_of(function):
    """The operator's name, or None for one that is left out."""
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name in _NOISE:
        return None
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]  # __setitem__, __add__: setitem, add
        if name in ("get", "set", "init", "new", "torch_function"):
            return None
        if name.startswith("r") and name[1:] in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
                                                 "div"):
            name = name[1:]
    return name


def tensors_in(value, found, depth=0):
    """Appends the tensors in tuples, lists and dicts to `found`, in order."""
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


class OperatorMode(TorchFunctionMode):
    """Tells the agent of each operator. `on` False: a pass-through, for when it cannot be taken off."""

    def __init__(self, agent):
        super().__init__()
        self._agent = agent
        self._names = {}  # function -> name or None; the function is held, so its identity lasts
        self.on = True

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.on or not self._agent.looking:
            return func(*args, **kwargs)
        try:
            name = self._names[func]
        except KeyError:
            name = self._names[func] = _name_of(func)
        except TypeError:  # not hashable
            name = None
        if name is None:
            return func(*args, **kwargs)
        telling = self._agent.telling
        before = telling.before_operator(args, kwargs)
        timing = self._agent.timing
        began = timing.now() if timing.on else 0.0
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            telling.operator_raised(name, error, before)
            raise
        if timing.on:
            timing.took(timing.now() - began)
        # an assignment to elements writes its first argument and returns nothing
        telling.operator_ran(name, args[0] if name == "setitem" else result, before)
        return result


def push(mode):
    """Puts the mode on this thread's stack."""
    mode.on = True
    mode.__enter__()


def pop(mode):
    """Takes the mode off when it is on top; else it passes everything through. Whether it is off."""
    mode.on = False
    from torch import overrides
    if overrides._len_torch_function_stack() and overrides._get_current_function_mode() is mode:
        mode.__exit__(None, None, None)
        return True
    return False
