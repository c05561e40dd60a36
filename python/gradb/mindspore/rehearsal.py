# SPDX-License-Identifier: MIT
"""Rehearsals of compiled calls: one runs once uncompiled, where its operators can be watched, and whatever it has
changed is restored. Then it runs compiled, as it would have without us, so that its results and those of all later
steps are the same bit for bit. What is shown of the inside of that step are the values of the rehearsal."""
import contextlib
import gc
import os

import mindspore
from mindspore import Parameter, Tensor, nn

from . import hooks, ranks, values


@contextlib.contextmanager
def restored(changed):
    """Afterwards the tensors have the values from before."""
    saved = [(tensor, *values.copy_of(tensor)) for tensor in changed]
    try:
        yield
    finally:
        for tensor, _struct, memory in saved:  # in place: compiled code knows the addresses
            values.write(tensor, memory)


@contextlib.contextmanager
def uncompiled():
    """Nothing that begins in it is compiled."""
    mode, jit = mindspore.get_context("mode"), os.environ.get(hooks.JIT)
    try:
        if mode != mindspore.PYNATIVE_MODE:
            mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        os.environ[hooks.JIT] = "0"
        yield
    finally:
        if jit is None:
            os.environ.pop(hooks.JIT, None)
        else:
            os.environ[hooks.JIT] = jit
        if mode != mindspore.PYNATIVE_MODE:
            mindspore.set_context(mode=mode)


def changed_by(agent, called):
    """All parameters and buffers, among them the state of optimizers, normalizations and random generators."""
    found = {}
    for cell in [called] + [optimizer for _, optimizer in agent.parameters.living()]:
        for parameter in cell.get_parameters() if isinstance(cell, nn.Cell) else ():
            found[id(parameter)] = parameter
    for thing in gc.get_objects():
        if issubclass(type(thing), Parameter):
            found[id(thing)] = thing
        elif issubclass(type(thing), nn.Cell):
            found.update((id(buffer), buffer) for buffer in getattr(thing, "_buffers", {}).values()
                         if isinstance(buffer, Tensor))
    return [tensor for tensor in found.values() if not getattr(tensor, "has_init", False)]


def why_not(changed):
    """Why a compiled call must not be rehearsed; "" when it may be."""
    if not values.is_in_host_memory():
        return "a rehearsal was only tried on the CPU"
    if ranks.rank_and_size()[1] > 1:
        return "in a job of several ranks, a rehearsal would run its collectives a second time"
    if any(not values.address_of(tensor) or not tensor.is_contiguous() for tensor in changed if tensor.size):
        return "a parameter or buffer cannot be restored in place"
    needed, free = sum(tensor.nbytes for tensor in changed), _free_memory()
    if needed > free / 2:
        return "a rehearsal needs a copy of all parameters, %d MiB, with %d MiB of memory free" % (
            needed >> 20, free >> 20)
    return ""


def _free_memory():
    """Bytes that processes can still take, as Linux estimates it; without an estimate, so many that it does not matter.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = [line.split()[1] for line in file if line.startswith("MemAvailable:")]
        return int(found[0]) << 10
    except (OSError, IndexError, ValueError):
        return 1 << 62
