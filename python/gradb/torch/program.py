# SPDX-License-Identifier: MIT
"""What ../evaluate.py asks of PyTorch: the frames of the stopped program, its tensors, and a moment in which the user's
code runs as the program would run it, unseen by the agent."""
import contextlib
import ctypes
import random
import sys
import zlib

import torch

from .. import evaluate
from . import device_stats, ops, stack, values
from .guard import of_program

_MOST = 256 << 20       # bytes of a tensor that is copied; of a larger one the statistics are shown
_CHECKED = 64 << 20     # bytes of tensors whose elements are compared, before and after the user's code
_SUMMARISED = 1 << 20   # elements of a tensor whose range is shown in a list of variables
_NUMPY = {"bool": torch.bool, "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
          "uint8": torch.uint8, "float16": torch.float16, "float32": torch.float32, "float64": torch.float64,
          "complex64": torch.complex64, "complex128": torch.complex128}


class Program:
    """See the module."""

    def __init__(self, agent):
        self.agent = agent

    def frames(self):
        """(frame, whether it is a library's), innermost first."""
        return stack.live(self.agent.thread())

    # ---- tensors ----

    @staticmethod
    def is_tensor(value):
        """Whether it is shown as a tensor is: a tensor, or a numpy array."""
        return isinstance(value, torch.Tensor) or _is_array(value)

    def values(self, value):
        """Its evaluate.Values. Raises, where it cannot be read."""
        with values.outside_training():
            tensor = values.readable(_plain(value))
            dtype, size = values.DTYPES[tensor.dtype]
            size *= tensor.numel()
            if size > _MOST:
                return evaluate.Values(dtype, tensor.shape, size, None, _statistics(tensor))
            host = device_stats.to_host(tensor)
        return evaluate.Values(dtype, host.shape, size,
                               lambda offset, count: ctypes.string_at(host.data_ptr() + offset, count))

    @staticmethod
    def about(value):
        """What the format of tensors does not say."""
        if not isinstance(value, torch.Tensor):
            return "numpy array"
        words = [] if value.device.type == "cpu" else [str(value.device)]
        kind = type(value)
        if kind is not torch.Tensor:
            words.insert(0, kind.__name__)
        if value.requires_grad:
            words.append("requires_grad" if value.is_leaf else "grad_fn " + type(value.grad_fn).__name__)
        return ", ".join(words)

    def summary(self, value):
        """A tensor in a few words; None: it is not one."""
        if isinstance(value, torch.nn.Module):
            return "module, %d parameters" % sum(parameter.numel() for parameter in value.parameters())
        if not self.is_tensor(value):
            return None
        text = "%s %s" % (str(value.dtype).replace("torch.", ""), tuple(value.shape))
        about = self.about(value)
        return text + _range_of(value) + (", " + about if about else "")

    # ---- what the code changes ----

    def _written(self, frame):
        """(name, tensor or what stands for it) of what the user's code may change."""
        for name, module in self.agent.modules.roots().items():
            for path, tensor in list(module.named_parameters()) + list(module.named_buffers()):
                yield "%s.%s" % (name, path), tensor
        for name in self.agent.optimizers.names():
            optimizer = self.agent.optimizers.by_name(name)
            for state in list(getattr(optimizer, "state", {}).values()):
                for key, tensor in list(state.items()) if isinstance(state, dict) else ():
                    yield "%s's %s" % (name, key), tensor
        for name, value in list(frame.f_locals.items()):
            yield name, value

    def versions(self, frame):
        """What changed() compares with: how often tensors were written, and for writes that PyTorch does not count
        (through `.data`) the checksums of tensors in host memory, as long as they are small."""
        found, room = {}, _CHECKED
        for name, tensor in self._written(frame):
            if isinstance(tensor, torch.Tensor) and id(tensor) not in found:
                size = tensor.numel() * tensor.element_size()
                check = _checksum(tensor) if size <= room else None
                room -= size if check is not None else 0
                found[id(tensor)] = name, tensor, values.version_of(tensor), tensor.requires_grad, check
                grad = tensor.grad if tensor.is_leaf else None
                if grad is not None:
                    found[id(grad)] = name + ".grad", grad, values.version_of(grad), False, None
        return found, self._rates()

    def _rates(self):
        return {(name, number, key): value for name in self.agent.optimizers.names()
                for number, group in enumerate(self.agent.optimizers.by_name(name).param_groups)
                for key, value in group.items() if isinstance(value, (bool, int, float))}

    def changed(self, before):
        """The names of tensors that were written since then, and of settings of optimizers."""
        tensors, rates = before
        found = [name for name, tensor, version, requires, check in tensors.values()
                 if values.version_of(tensor) != version or tensor.requires_grad != requires
                 or check is not None and _checksum(tensor) != check]
        now = self._rates()
        found += ["%s of %s[%d]" % (key, name, number) for (name, number, key), value in now.items()
                  if rates.get((name, number, key), value) != value]
        return list(dict.fromkeys(found))

    # ---- running ----

    @contextlib.contextmanager
    def moment(self, reads):
        """Modes, hooks and watches of the agent are off. reads: nothing of the program is to change: no gradients are
        recorded, and random generators are as before after it."""
        with self.agent.off_duty(), of_program(), (_as_before() if reads else contextlib.nullcontext()):
            yield


@contextlib.contextmanager
def _as_before():
    states = _random_states()
    enabled = torch.is_grad_enabled()
    try:
        torch.set_grad_enabled(False)
        yield
    finally:
        torch.set_grad_enabled(enabled)
        for restore, state in states:
            restore(state)


def _random_states():
    """(function that restores it, state) of the generators that programs share."""
    states = [(random.setstate, random.getstate()), (torch.set_rng_state, torch.get_rng_state())]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states.append((numpy.random.set_state, numpy.random.get_state()))
    if torch.cuda.is_available() and torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
        states += [(lambda state, device=device: torch.cuda.set_rng_state(state, device),
                    torch.cuda.get_rng_state(device)) for device in range(torch.cuda.device_count())]
    return states


def _is_array(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.name in _NUMPY


def _plain(value):
    """A tensor with the values of an array."""
    if isinstance(value, torch.Tensor):
        return value
    numpy = sys.modules["numpy"]
    array = numpy.ascontiguousarray(value)
    tensor = torch.empty(array.shape, dtype=_NUMPY[array.dtype.name], device="cpu")
    if array.nbytes:
        ctypes.memmove(tensor.data_ptr(), array.ctypes.data, array.nbytes)
    return tensor.reshape(numpy.shape(value))


def _statistics(tensor):
    names = ("count", "nan", "pos_inf", "neg_inf", "zero", "min", "max", "mean", "std")
    record = device_stats.compute(tensor)
    return {name: record[name] for name in names}


def _checksum(tensor):
    """Of the bytes of a plain tensor in host memory; None for others."""
    if type(tensor) not in values.PLAIN or tensor.device.type != "cpu" or tensor.layout != torch.strided \
            or not tensor.is_contiguous():
        return None
    size = tensor.numel() * tensor.element_size()
    return zlib.crc32((ctypes.c_char * size).from_address(tensor.data_ptr())) if size else 0


def _range_of(value):
    """ in A to B"""
    try:
        tensor = values.readable(_plain(value))
        if not 0 < tensor.numel() <= _SUMMARISED or tensor.is_complex():
            return ""
        if tensor.numel() == 1:
            return " %.6g" % tensor.item() if tensor.dtype.is_floating_point else " %s" % tensor.item()
        least, most = tensor.min().item(), tensor.max().item()
        return " from %.6g to %.6g" % (least, most)
    except (values.NoValue, RuntimeError, TypeError):  # it cannot be read now
        return ""
