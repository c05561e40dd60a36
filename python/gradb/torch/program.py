# SPDX-License-Identifier: MIT
"""What ../evaluate.py asks of PyTorch: the frames of the stopped program, its tensors, and a moment in which the user's
code runs as the program would run it, unseen by the agent."""
import contextlib
import ctypes
import functools
import random
import sys
import zlib

import torch

from .. import evaluate
from . import commands, device_stats, devices, stack, values
from .guard import apart, of_program

_CHECKED = 64 << 20     # bytes of tensors whose elements are compared, before and after the user's code
_SUMMARISED = 1 << 20   # elements of a tensor whose range is shown in a list of variables
_NUMPY = {"bool": torch.bool, "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
          "uint8": torch.uint8, "float16": torch.float16, "float32": torch.float32, "float64": torch.float64,
          "complex64": torch.complex64, "complex128": torch.complex128}


class Program:
    """See the module."""
    cannot = {}  # of what ../changes.py asks for: why it is not there

    def __init__(self, agent):
        self.agent = agent

    def frames(self):
        """(frame, whether it is a library's), innermost first."""
        return stack.live(self.agent.thread())

    @staticmethod
    def own_frames(frames):
        """The same for frames, innermost first."""
        return stack.of_frames(frames)

    # ---- tensors ----

    @staticmethod
    def is_tensor(value):
        """Whether it is shown as a tensor is: a tensor, or a numpy array."""
        return isinstance(value, torch.Tensor) or _is_array(value)

    def values(self, value, most):
        """Its evaluate.Values, with elements up to `most` bytes. Raises, where it cannot be read."""
        with values.outside_training():
            tensor = values.readable(_plain(value))
            dtype, size = values.DTYPES[tensor.dtype]
            size *= tensor.numel()
            if size > most:
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

    def versions(self, frame, sums=True):
        """What changed() compares with: how often tensors were written, and with `sums`, for writes that PyTorch does
        not count (through `.data`), the checksums of tensors, as long as they are small."""
        found, room = {}, _CHECKED if sums else -1
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

    # ---- what ../changes.py asks for ----

    def settable(self, name):
        """The tensor of a node whose elements can be set. CommandError."""
        agent = self.agent
        node, _ = commands.node_of(agent, name)
        if not agent.live.is_lasting(node.id):
            raise commands.CommandError("%s is computed in each step: set parameters, buffers, gradients or the state "
                                        "of optimizers, or use `call` on the variable" % node.name)
        try:
            tensor, _ = agent.live.find(node.id, 0)
            values.readable(tensor)
        except values.NoValue as error:
            raise commands.CommandError("%s cannot be set: %s" % (node.name, error)) from None
        if type(tensor) not in values.PLAIN:
            raise commands.CommandError("%s is a %s, of which gradb sets no elements" % (
                node.name, type(tensor).__name__))
        return tensor

    @staticmethod
    def part(tensor, index):
        """The elements that an index selects, as a view that autograd does not notice. CommandError."""
        data = tensor.data
        try:
            part = data[index] if index else data
        except IndexError as error:
            raise commands.CommandError("%s: the shape is %s" % (error, tuple(tensor.shape))) from None
        if part.numel() == 0:
            raise commands.CommandError("the slice selects no element of %s" % (tuple(tensor.shape),))
        return part

    @staticmethod
    def count(part):
        """How many elements it has."""
        return part.numel()

    @staticmethod
    def size(part):
        """Its bytes."""
        return part.numel() * part.element_size()

    def keep(self, part):
        """(a copy of the elements in host memory, its bytes)"""
        return part.to("cpu", copy=True), self.size(part)

    @staticmethod
    def describe(part):
        """The elements in a few words."""
        if part.numel() == 1:
            return "%.9g" % part.item() if part.is_floating_point() else str(part.item())
        mean = " of mean %.6g" % part.double().mean().item() if not part.is_complex() else ""
        return "%d elements%s" % (part.numel(), mean)

    @staticmethod
    def limits(part):
        """("float", "int" or "bool", the least and the greatest number, name) of its type. CommandError."""
        name = str(part.dtype).replace("torch.", "")
        if part.dtype == torch.bool:
            return "bool", 0, 1, name
        if part.is_complex():
            raise commands.CommandError("elements of type %s cannot be set" % name)
        if part.is_floating_point():
            info = torch.finfo(part.dtype)
            return "float", info.min, info.max, name
        info = torch.iinfo(part.dtype)
        return "int", info.min, info.max, name

    @staticmethod
    def fill(part, value):
        """Sets all elements."""
        part.fill_(value)

    @staticmethod
    def put_back(part, old):
        """Sets them to what keep() copied, bit by bit."""
        part.copy_(old)

    def set_requires_grad(self, name, on):
        """(whether it was on, function that takes it back, note). The function's argument: whether the training has not
        run since."""
        node, _ = commands.node_of(self.agent, name)
        tensor = self.agent.live.lasting(node.id)
        if not isinstance(tensor, torch.nn.Parameter) or self.agent.live.leaf(node.id) is not None:
            raise commands.CommandError("%s is not a parameter" % node.name)
        old, grad = tensor.requires_grad, tensor.grad
        if on and not (tensor.is_floating_point() or tensor.is_complex()):
            raise commands.CommandError("%s holds %s, which has no gradients" % (node.name, tensor.dtype))
        tensor.requires_grad_(on)
        if not on:
            tensor.grad = None  # with which the optimizer would still update it

        def back(at_once):
            tensor.requires_grad_(old)
            if at_once and tensor.grad is None:
                tensor.grad = grad
        return old, back, "" if on else "; its gradient is removed, so that the optimizer leaves it as it is"

    def _optimizer(self, name):
        """(name, optimizer); "": the main one. CommandError."""
        names = self.agent.optimizers.names()
        main = self.agent.steps.main()
        if not name and main is not None:
            return self.agent.optimizers.name_of(main), main
        if not names:
            raise commands.CommandError("the training has no optimizer yet")
        if name and name not in names:
            raise commands.CommandError("no optimizer '%s': the optimizers are %s" % (name, ", ".join(names)))
        name = name or names[0]
        return name, self.agent.optimizers.by_name(name)

    def zero_grad(self, name):
        """(name, how many gradients were removed, function that takes it back)"""
        name, optimizer = self._optimizer(name)
        held = [(parameter, parameter.grad) for group in optimizer.param_groups for parameter in group["params"]
                if parameter.grad is not None]
        for parameter, _ in held:
            parameter.grad = None

        def back():
            for parameter, grad in held:
                parameter.grad = grad
        return name, len(held), back

    def skip_update(self, name):
        """(name, function that takes it back): in its next step the optimizer finds no gradients, and so does nothing:
        neither to parameters nor to its state. Hooks, schedulers and the count of steps see a step as any other."""
        name, optimizer = self._optimizer(name)
        own = vars(optimizer).get("step")
        if getattr(own, "__gradb_skips__", False):
            raise commands.CommandError("the next step of %s updates nothing already" % name)
        original = optimizer.step

        def back():
            if vars(optimizer).get("step") is not step:
                raise commands.CommandError("the step of %s that updates nothing is over" % name)
            if own is None:
                del optimizer.step
            else:
                optimizer.step = own

        @functools.wraps(original)
        def step(*args, **kwargs):
            back()
            return _without_gradients(optimizer, original, args, kwargs)
        step.__gradb_skips__ = True
        optimizer.step = step
        return name, back

    # ---- running ----

    @contextlib.contextmanager
    def moment(self, reads):
        """Modes, hooks and watches of the agent are off. reads: nothing of the program is to change: no gradients are
        recorded, and random generators are as before after it."""
        with self.agent.off_duty(), of_program(), (_as_before() if reads else contextlib.nullcontext()):
            yield


def _without_gradients(optimizer, step, args, kwargs):
    """Calls the step while the parameters have no gradients, also those that a closure computes."""
    held = {}

    def remove():
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    held[parameter], parameter.grad = parameter.grad, None

    def closed(closure):
        def call():
            result = closure()
            remove()
            return result
        return call
    remove()
    if args and callable(args[0]):
        args = (closed(args[0]), *args[1:])
    elif callable(kwargs.get("closure")):
        kwargs = dict(kwargs, closure=closed(kwargs["closure"]))
    try:
        return step(*args, **kwargs)
    finally:
        for parameter, grad in held.items():
            parameter.grad = grad


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
    device = devices.used()
    return states + (device.random_states() if device is not None else [])


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
    """Of the bytes of a plain tensor, whose elements are copied from a device; None for others."""
    if type(tensor) not in values.PLAIN or tensor.layout != torch.strided or not tensor.is_contiguous():
        return None
    if devices.of(tensor) is not None:
        with apart(), values.outside_training():
            tensor = device_stats.to_host(tensor.detach())
    elif not tensor.is_cpu:
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
