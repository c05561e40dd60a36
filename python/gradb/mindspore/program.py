# SPDX-License-Identifier: MIT
"""What ../evaluate.py asks of MindSpore: the frames of the stopped program, its tensors, and a moment in which the
user's code runs as the program would run it, unseen by the agent."""
import contextlib
import ctypes
import random
import sys

import mindspore
from mindspore import nn
from mindspore.common.api import _pynative_executor

from .. import _lib, evaluate
from ..commands import CommandError, node_of
from . import stack, values

_SUMMARISED = 1 << 20  # elements of a tensor whose range is shown in a list of variables


class Program:
    """See the module."""
    cannot = {  # of what ../changes.py asks for: why it is not there
        "requires_grad": "MindSpore decides what is trained when the optimizer and the gradient function are made: "
                         "change the script, or `set lr = 0`",
        "zero-grad": "MindSpore's gradients are results of each step, and none is kept: there is nothing to remove",
        "skip-update": "the MindSpore agent cannot skip an update: `set lr = 0` for one step keeps the parameters, "
                       "though not the optimizer's moments",
    }

    def __init__(self, agent):
        self.agent = agent

    @staticmethod
    def frames():
        """(frame, whether it is a library's), innermost first."""
        return stack.live()

    @staticmethod
    def own_frames(frames):
        """The same for frames, innermost first."""
        return stack.of_frames(frames)

    # ---- tensors ----

    @staticmethod
    def is_tensor(value):
        """Whether it is shown as a tensor is: a tensor, or a numpy array."""
        return isinstance(value, mindspore.Tensor) or _is_array(value)

    @staticmethod
    def values(value, most):
        """Its evaluate.Values, of at most `most` bytes. Raises, where it cannot be read."""
        if not isinstance(value, mindspore.Tensor):
            value = sys.modules["numpy"].ascontiguousarray(value).reshape(value.shape)
        struct, held = values.describe(value)
        shape = [struct.shape[i] for i in range(struct.rank)]
        size = values.DTYPES[value.dtype][1] if isinstance(value, mindspore.Tensor) else value.itemsize
        for length in shape:
            size *= length
        if size > most:
            raise values.NoValue("it has %d bytes, at most %d are shown: print a part of it" % (size, most))
        data = ctypes.string_at(struct.data, size) if size else b""  # a copy: MindSpore may write it at any time
        del held
        return evaluate.Values(struct.dtype, shape, size, lambda offset, count: data[offset:offset + count])

    @staticmethod
    def about(value):
        """What the format of tensors does not say."""
        if isinstance(value, mindspore.Parameter):
            return "Parameter" + (", requires_grad" if value.requires_grad else "")
        return "" if isinstance(value, mindspore.Tensor) else "numpy array"

    def summary(self, value):
        """A tensor in a few words; None: it is not one."""
        if isinstance(value, nn.Cell):
            return "cell, %d parameters" % sum(parameter.size for parameter in value.get_parameters())
        if not self.is_tensor(value):
            return None
        about = self.about(value)
        return "%s %s" % (str(value.dtype).lower(), tuple(value.shape)) + _range_of(value) + (
            ", " + about if about else "")

    # ---- what the code changes ----

    def versions(self, _frame, sums=True):
        """What changed() compares with: MindSpore does not count writes, so with `sums` small tensors are compared by
        value."""
        found = []
        for parameter, node in self.agent.parameters.all():
            if parameter.nbytes <= _SUMMARISED:
                try:
                    data = _bytes_of(parameter) if sums else None
                    found.append((node.name, parameter, parameter.requires_grad, data))
                except (values.NoValue, RuntimeError):
                    pass
        return found

    @staticmethod
    def changed(before):
        """The names of parameters that were written since then."""
        found = []
        for name, parameter, requires, data in before:
            try:
                if parameter.requires_grad != requires or data is not None and _bytes_of(parameter) != data:
                    found.append(name)
            except (values.NoValue, RuntimeError):
                pass
        return found

    # ---- what ../changes.py asks for ----

    def settable(self, name):
        """The parameter of a node whose elements can be set. CommandError."""
        node, _ = node_of(self.agent, name)
        found = node.get() if node.get is not None and node.kind in (_lib.WEIGHT, _lib.PARAMETER) else None
        if not isinstance(found, mindspore.Parameter):
            raise CommandError("%s is computed in each step: parameters and the state of optimizers can be set" % (
                node.name))
        return found

    @staticmethod
    def part(parameter, index):
        """The elements that an index selects. CommandError."""
        return _Part(parameter, index)

    @staticmethod
    def count(part):
        """How many elements it has."""
        return part.elements().size

    @staticmethod
    def size(part):
        """The bytes that are kept of it."""
        return part.array.nbytes

    @staticmethod
    def keep(part):
        """(a copy of all of the parameter, its bytes)"""
        return part.array.copy(), part.array.nbytes

    @staticmethod
    def describe(part):
        """The elements in a few words."""
        elements = part.elements()
        if elements.size == 1:
            return "%.9g" % elements.item() if elements.dtype.kind == "f" else str(elements.item())
        return "%d elements of mean %.6g" % (elements.size, elements.astype("float64").mean())

    @staticmethod
    def limits(part):
        """("float", "int" or "bool", the least and the greatest number, name) of its type. CommandError."""
        numpy, kind = sys.modules["numpy"], part.array.dtype
        if kind.kind not in "fiub":
            raise CommandError("elements of type %s cannot be set" % kind.name)
        if kind.kind == "b":
            return "bool", 0, 1, kind.name
        info = numpy.finfo(kind) if kind.kind == "f" else numpy.iinfo(kind)
        return "float" if kind.kind == "f" else "int", info.min, info.max, kind.name

    @staticmethod
    def fill(part, value):
        """Sets all elements."""
        part.array[part.index] = value
        part.write(part.array)

    @staticmethod
    def put_back(part, old):
        """Sets them to what keep() copied, bit by bit."""
        part.write(old)

    # ---- running ----

    @contextlib.contextmanager
    def moment(self, reads):
        """Hooks and watches of the agent are off. reads: random generators are as before after it."""
        if values.is_fixed():
            raise CommandError("not inside compiled code: first `step` to the end of the step")
        agent = self.agent
        dead, agent.dead = agent.dead, True
        states = _random_states() if reads else []
        try:
            with agent.own_moment():
                yield
        finally:
            agent.dead = dead
            if reads:
                _wait()  # operators that still run may draw
            for restore, state in states:
                restore(state)


def _wait():
    try:
        _pynative_executor.sync()
    except RuntimeError:  # of the user's code, which has met it or does not look at the result
        pass


def _random_states():
    """(function that restores it, state) of the generators that programs share."""
    states = [(random.setstate, random.getstate())]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states.append((numpy.random.set_state, numpy.random.get_state()))
    if hasattr(mindspore, "get_rng_state"):
        states.append((mindspore.set_rng_state, mindspore.get_rng_state()))
    seeds = getattr(sys.modules.get("mindspore.common.seed"), "_KERNEL_SEED", None)
    if isinstance(seeds, dict):  # from which operators with a seed of their own count
        states.append((lambda state: (seeds.clear(), seeds.update(state)), dict(seeds)))
    return states


def _is_array(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "biufc"


def _bytes_of(tensor):
    struct, held = values.describe(tensor)
    data = ctypes.string_at(struct.data, tensor.nbytes) if tensor.nbytes else b""
    del held
    return data


def _range_of(value):
    """ from A to B"""
    try:
        array = value.asnumpy() if isinstance(value, mindspore.Tensor) else value
        if not 0 < array.size <= _SUMMARISED or array.dtype.kind not in "iuf":
            return ""
        if array.size == 1:
            return " %.6g" % array.reshape(-1)[0]
        return " from %.6g to %.6g" % (array.min(), array.max())
    except (RuntimeError, TypeError, ValueError):  # it cannot be read now
        return ""


class _Part:
    """Elements of a parameter: MindSpore has no views, so all of it is read, and written back."""

    def __init__(self, parameter, index):
        self.parameter, self.index = parameter, index or Ellipsis
        if parameter.dtype == mindspore.bfloat16:
            raise CommandError("elements of type bfloat16 cannot be set")
        self.array = parameter.asnumpy().copy()
        try:
            count = self.elements().size
        except IndexError as error:
            raise CommandError("%s: the shape is %s" % (error, tuple(self.array.shape))) from None
        if count == 0:
            raise CommandError("the slice selects no element of %s" % (tuple(self.array.shape),))

    def elements(self):
        """Its elements in the copy, also of a single one an array."""
        return sys.modules["numpy"].atleast_1d(self.array[self.index])

    def write(self, array):
        """Makes the array the parameter's value, in its memory: in PyNative mode, optimizers do not follow set_data."""
        struct, held = values.describe(self.parameter)
        if held is not self.parameter:
            raise CommandError("the memory of %s cannot be written" % self.parameter.name)
        ctypes.memmove(struct.data, array.ctypes.data, array.nbytes)
