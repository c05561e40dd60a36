# SPDX-License-Identifier: MIT
"""The report that `info memory` shows: the memory of all tensors that Python knows, each counted once.

    agent memory-report [end]     end: the training is stopped at the end of a step, as for a comparison of steps

MindSpore does not show what its own code keeps for the backward pass; in a step whose operators are watched, their
outputs are counted instead."""
import gc
import sys

import mindspore
from mindspore import Parameter, Tensor

from .. import _lib, holders, memory, process
from ..memory import Item
from . import commands, hooks, stack, values
from .outside import INPUT

_ONLY_OURS = 4  # references to a tensor that only gradb and the census hold


class Census:
    """What exists now. items: place in memory -> Item; ours: bytes of outputs that only gradb holds."""

    def __init__(self, agent, at_end):
        self.agent = agent
        self.items = {}
        self.ours = 0
        self._at_end = at_end
        self._made = {}     # id(tensor) -> Node

    def take(self):
        """Counts."""
        agent = self.agent
        looked = agent.looking or agent._looked
        outputs = looked.outputs if looked is not None else {}
        for number, held in outputs.items():
            self._made.update((id(tensor), agent.graph.by_id.get(number)) for tensor in held if tensor is not None)
        for parameter, node in agent.parameters.all():
            kind = memory.WEIGHTS if node.operator == "Parameter" else memory.BUFFERS
            self._add(parameter, kind, node.name, module=_module_of(node.name))
            gradient = agent.parameters.gradients.get(id(parameter))
            if isinstance(gradient, Tensor):
                self._add(gradient, memory.GRADIENTS, node.name + ".grad", module=_module_of(node.name))
        for node in list(agent.graph.by_id.values()):
            if node.operator == "State" and node.get is not None:
                self._add(node.get(), memory.OPTIMIZER, node.name, module=_module_of(node.name.split("/", 2)[-1]))
        for known, optimizer in agent.parameters.living():
            for parameter in optimizer.get_parameters():
                self._add(parameter, memory.OPTIMIZER, "optimizer/%s/%s" % (known.name, parameter.name))
        tensors = [thing for thing in gc.get_objects() if issubclass(type(thing), Tensor)]
        while tensors:
            self._other(tensors)
        return list(self.items.values())

    def _other(self, tensors):
        tensor = tensors.pop()
        node = self._made.get(id(tensor)) or self.agent.ooms.maker_of(tensor) or self._same_operator(tensor)
        if id(tensor) in self._made and sys.getrefcount(tensor) <= _ONLY_OURS - 1 and self._at_end:
            self.ours += tensor.nbytes
            return
        if isinstance(tensor, Parameter):
            self._add(tensor, memory.WEIGHTS, tensor.name)
        elif node is None:
            self._add(tensor, memory.OTHER, "tensor", holder=tensor)
        else:
            kind = memory.INPUTS if node.operator == INPUT else memory.ACTIVATIONS if node.phase == _lib.FORWARD \
                else memory.OTHER
            self._add(tensor, kind, node.name, node=node, module=_module_of(node.name), holder=tensor)

    def _same_operator(self, tensor):
        """The only node of the graph that has the operator of a tensor's backward node; None: there are several."""
        back = getattr(tensor, "_grad_node", None)
        if back is None or back.is_leaf():
            return None
        names = back.name(), back.name() + "Ext"
        found = [node for node in self.agent.graph.by_id.values()
                 if node.operator in names and node.phase == _lib.FORWARD]
        return found[0] if len(found) == 1 else None

    def _group(self, tensor):
        """See memory.Item.group."""
        node = self.agent.ooms.maker_of(tensor)
        back = getattr(tensor, "_grad_node", None)
        return node.name if node is not None else back.name() if back is not None else "tensor"

    def _add(self, tensor, kind, name, module="", node=None, holder=None):
        place, size = _place_of(tensor)
        if not size or place in self.items:
            return
        detail = "%s (%s)" % (str(tensor.dtype).lower(), ", ".join(map(str, tensor.shape)))
        self.items[place] = Item(size, kind, name, "", module, detail, holder, None,
                                 "" if kind in memory.STAY else self._group(tensor))


def _module_of(name):
    return name.rpartition("/")[0]


def _place_of(tensor):
    """(what identifies the memory of a tensor, its bytes)."""
    if not isinstance(tensor, Tensor) or getattr(tensor, "has_init", False):
        return None, 0
    try:
        address = values.address_of(tensor)
        storage = getattr(tensor, "untyped_storage", None)
        if not address and values.is_in_host_memory():
            return None, 0  # it was never computed
        if address and storage is not None:
            storage = storage()
            return storage.data_ptr(), storage.nbytes()
        return address or id(tensor), tensor.nbytes
    except (RuntimeError, TypeError, ValueError, AttributeError):
        return None, 0


def _devices():
    """What the allocator of a device says; nothing on the CPU, where it says 0."""
    stats = getattr(getattr(mindspore, "runtime", None), "memory_stats", None)
    try:
        said = stats() if stats is not None else {}
    except (RuntimeError, TypeError, ValueError):
        said = {}
    if not said.get("total_reserved_memory"):
        return []
    pool = said.get("common_mem_pool_stats") or {}
    return [{"name": mindspore.get_context("device_target"), "allocated": said.get("total_allocated_memory"),
             "reserved": said.get("total_reserved_memory"), "peak": said.get("max_allocated_memory"),
             "peak_reserved": said.get("max_reserved_memory"), "unused": said.get("total_idle_memory"),
             "segments": pool.get("block_counts")}]


def device_numbers():
    """(bytes, the most) that the allocator of the device has handed out; None on the CPU."""
    found = _devices()
    return (found[0]["allocated"], found[0]["peak"]) if found else None


def census(agent, at_end=False):
    """A Census of this moment."""
    with agent.own_moment():
        found = Census(agent, at_end)
        found.take()
    return found


def report(agent, at_end):
    """The report; at_end: compare it with those at earlier ends of steps."""
    found = census(agent, at_end)
    items, step = list(found.items.values()), agent.steps.computed()
    reply = dict(memory.report(items), step=step, source="tensors of the training process", notes=_notes(agent, found))
    if at_end and step > 0:
        first, grown = agent.growth.compare(step, items)
        if first is not None:
            frames = [frame for frame in stack.running(2)]
            reply.update(growth_from=first, growth_to=step, growth=[
                memory.growth_row(first, step, row, lambda thing: holders.of(thing, frames, _is_ours))
                for row in grown])
    reply["peak"] = agent.ooms.peak_record()
    reply["devices"] = _devices()
    reply.update(process.report())
    return reply


def _is_ours(thing):
    return str(type(thing).__module__).split(".", 1)[0] == "gradb"


def _notes(agent, found):
    notes = ["what MindSpore itself keeps for the backward pass: Python does not see it"]
    if agent.looking is not None:
        notes[0] = "what MindSpore itself keeps for the backward pass: the outputs of the step's operators are shown"
    if hooks.is_graph_mode():
        notes.append("what compiled code allocates inside")
    if found.ours:
        notes.append("outputs of the observed step that only gradb holds, until the training continues: %d bytes"
                     % found.ours)
    return notes


memory.register(commands, report)
