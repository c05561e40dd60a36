# SPDX-License-Identifier: MIT
"""The report that `info memory` shows: the storages of all tensors, each counted once, by what they are for.

    agent memory-report [end]     end: the training is stopped at the end of a step, as for a comparison of steps"""
import re

import torch

from .. import holders, memory, process
from ..memory import Item
from . import backward, commands, devices, stack, storages, values, variables

_MAX_GRAPH = 4000000  # grad_fns that are walked
_DEVICE_LINE = re.compile(r"process\s+(\d+)\s+uses\s+([\d.]+)\s*MB")


class Census:
    """What exists now. items: storage's key -> Item; tensors: Python's."""

    def __init__(self, agent):
        self.agent = agent
        self.items = {}
        self.unnamed = 0       # activations without a node
        self.on_device = False
        self._made = {}        # storage's key -> graph.Node, of outputs that Python knows

    def take(self):
        """Counts. Call it outside of the training's modes."""
        tensors = storages.all_tensors()
        producer = self.agent.graph.producer
        for tensor in tensors:
            origin = producer(tensor)
            if origin is not None and origin[2] is not None:
                for key, _, _ in storages.of(tensor):
                    self._made[key] = origin[2]
        self._take_modules()
        self._take_optimizers()
        self._take_inputs(tensors)
        graphs = [tensor for tensor in tensors if _grad_fn_of(tensor) is not None]
        if not storages.graphs_are_hidden():
            self._take_graphs(graphs)
        for tensor in tensors:
            self._add(tensor, memory.OTHER, self._name_of(tensor), node=self._node_of(tensor), holder=tensor)
        return list(self.items.values())

    # ---- by what they are for ----

    def _take_modules(self):
        agent = self.agent
        for path, module in agent.modules.all():
            for key, parameter in list(module._parameters.items()):
                if parameter is not None:
                    self._take_parameter(parameter, path, path + "/" + key)
            for key, buffer in list(module._buffers.items()):
                if isinstance(buffer, torch.Tensor):
                    self._add(buffer, memory.BUFFERS, path + "/" + key, module=path)

    def _take_parameter(self, parameter, module, name):
        node = self.agent.graph.holder(parameter)
        name = node.name if node is not None else name
        self._add(parameter, memory.WEIGHTS, name, module=module)
        if parameter.is_leaf and parameter.grad is not None:
            self._add(parameter.grad, memory.GRADIENTS, name + ".grad", module=module)

    def _take_optimizers(self):
        for name in self.agent.optimizers.names():
            optimizer = self.agent.optimizers.by_name(name)
            for group in optimizer.param_groups if optimizer is not None else ():
                for parameter in group["params"]:
                    node = self.agent.graph.holder(parameter)
                    own = node.name if node is not None else "parameter"
                    module = own.rpartition("/")[0]
                    self._take_parameter(parameter, module, own)
                    state = optimizer.state.get(parameter)
                    for key, value in list(state.items()) if isinstance(state, dict) else ():
                        if isinstance(value, torch.Tensor):
                            self._add(value, memory.OPTIMIZER, "optimizer/%s/%s.%s" % (name, own, key), module=module)

    def _take_inputs(self, tensors):
        for tensor in tensors:
            node = self._node_of(tensor)
            if node is not None and (node.operator == "Input" or node.scope.split("/", 1)[0] == "data"):
                self._add(tensor, memory.INPUTS, node.name, node=node, holder=tensor)

    def _take_graphs(self, tensors):
        """What the graphs of these tensors keep for their backward passes. They belong to the tensors that no other one
        was computed from."""
        inner = {following for grad_fn in _walk([tensor.grad_fn for tensor in tensors], set())
                 for following, _ in grad_fn.next_functions}
        seen = set()
        for root in tensors:
            if root.grad_fn in inner:
                continue
            self._add(root, memory.OTHER, self._name_of(root), node=self._node_of(root), holder=root)
            keeps = next((self.items[key] for key, _, _ in storages.of(root)), None)
            for grad_fn in _walk([root.grad_fn], seen):
                for tensor in storages.saved(grad_fn):
                    self._keep(grad_fn, tensor, keeps)

    def _keep(self, grad_fn, tensor, keeps):
        keeper = self._keeper(grad_fn)
        for key, _, _ in storages.of(tensor):
            item = self.items.get(key)
            if item is not None:
                if item.kind == memory.OTHER:
                    item.kind = memory.ACTIVATIONS
                continue
            made = self._known(key)
            node = made or keeper
            self.unnamed += node is None
            name = node.name if node is not None else "kept by %s" % backward.function_name(grad_fn)
            self._add(tensor, memory.ACTIVATIONS, name, node=node, root=keeps)

    # ---- one storage ----

    def _known(self, key):
        """The node that made a storage, where its operator was observed."""
        allocations = self.agent.allocations
        return self._made.get(key) or (allocations.maker_of(key) if allocations is not None else None)

    def _node_of(self, tensor):
        origin = self.agent.graph.producer(tensor)
        if origin is not None and origin[2] is not None:
            return origin[2]
        for key, _, _ in storages.of(tensor):
            node = self._known(key)
            if node is not None:
                return node
        grad_fn = _grad_fn_of(tensor)
        return self._keeper(grad_fn) if grad_fn is not None else None

    def _keeper(self, grad_fn):
        """The node that a grad_fn belongs to. Where the step was not observed, the only one of the graph with a
        grad_fn of this type, or the only one in the module of the parameters that it reads."""
        mark = backward.marks.of(grad_fn)
        if mark is not None:
            return mark.node
        found = self.agent.graph.makers.get(grad_fn.name().rsplit("::", 1)[-1], ())
        if len(found) > 1:
            modules = {self._module_of(following) for following, _ in grad_fn.next_functions}
            found = [node for node in found if node.scope in modules]
        return next(iter(found)) if len(found) == 1 else None

    def _module_of(self, grad_fn):
        """The module of the parameter that a grad_fn accumulates into, maybe through a transposition; or None."""
        for _ in range(2):
            if grad_fn is None:
                return None
            variable = getattr(grad_fn, "variable", None)
            if variable is not None:
                node = self.agent.graph.holder(variable)
                return node.name.rpartition("/")[0] if node is not None else None
            grad_fn = grad_fn.next_functions[0][0] if len(grad_fn.next_functions) == 1 else None
        return None

    def _name_of(self, tensor):
        node = self._node_of(tensor)
        if node is not None:
            return node.name
        grad_fn = _grad_fn_of(tensor)
        return "result of %s" % backward.function_name(grad_fn) if grad_fn is not None else "tensor"

    def _group(self, key, tensor):
        """See memory.Item.group."""
        allocations = self.agent.allocations
        made = allocations.maker_of(key) if allocations is not None else None
        if made is not None:
            return made.name
        grad_fn = _grad_fn_of(tensor)
        return grad_fn.name() if grad_fn is not None else "tensor"

    def _add(self, tensor, kind, name, module="", node=None, holder=None, root=None):
        for key, size, device in storages.of(tensor):
            if key in self.items:
                continue
            where = ""
            if node is not None:
                where = stack.spot(stack.shown(node.stack))
                module = module or node.scope
            self.on_device = self.on_device or device != "cpu"
            detail = storages.shape_of(tensor) + ("" if device == "cpu" else " " + key[0])
            self.items[key] = Item(size, kind, name, where, module, detail, holder, root,
                                   "" if kind in memory.STAY else self._group(key, tensor))


def _grad_fn_of(tensor):
    try:
        return tensor.grad_fn
    except RuntimeError:  # a view that was modified in place, though it may not be
        return None


def _walk(roots, seen):
    """The grad_fns from the roots on that are not in `seen`, which grows."""
    waiting = list(roots)
    while waiting and len(seen) < _MAX_GRAPH:
        grad_fn = waiting.pop()
        if grad_fn is not None and grad_fn not in seen:
            seen.add(grad_fn)
            yield grad_fn
            waiting.extend(following for following, _ in grad_fn.next_functions)


# ---- allocators ----

def _devices():
    """What the allocators of the devices say."""
    device = devices.used()
    return device.memory() if device is not None else []


def _device_processes():
    """Other processes on the devices, where a library for it is installed."""
    found = []
    device = devices.used() or devices.named("cuda")
    for index in device.indices():
        found += [{"pid": int(pid), "name": "", "device": device.name_of(index), "bytes": int(float(size) * (1 << 20))}
                  for pid, size in _DEVICE_LINE.findall(device.processes(index))]
    return found


def device_numbers():
    """(bytes, the most) that the allocators of the devices have handed out; None on the CPU."""
    device = devices.used()
    return device.allocated() if device is not None else None


# ---- the report ----

def census(agent):
    """A Census of this moment. Moments of ours only."""
    with agent.own_moment(), values.outside_training():
        found = Census(agent)
        found.take()
    return found


def report(agent, at_end):
    """The report; at_end: compare it with those at earlier ends of steps."""
    found = census(agent)
    items, step = list(found.items.values()), agent.steps.computed()
    reply = dict(memory.report(items), step=step, source="tensors of the training process", notes=_notes(agent, found))
    if at_end and step > 0:
        first, grown = agent.growth.compare(step, items)
        if first is not None:
            frames = list(stack.user_frames(2))
            reply.update(growth_from=first, growth_to=step, growth=[
                memory.growth_row(first, step, row, lambda thing: holders.of(thing, frames, _is_ours))
                for row in grown])
    reply["peak"] = agent.allocations.peak_record() if agent.allocations is not None else {
        "note": "operators are not observed; `catch oom` observes them from the next step on"}
    reply["devices"] = _devices()
    reply.update(process.report())
    reply["processes"] = reply.get("processes", []) + _device_processes()
    return reply


def _is_ours(thing):
    return str(type(thing).__module__).split(".", 1)[0] == "gradb"


def _notes(agent, found):
    notes = []
    if storages.graphs_are_hidden():
        notes.append("what autograd keeps: hooks of saved tensors are used, which this version of PyTorch would run")
    if found.unnamed:
        notes.append("the nodes of %d activations: their step was not observed; `catch oom` observes the next ones"
                     % found.unnamed)
    if agent.regions.compiles:
        notes.append("what compiled code allocates inside")
    return notes


memory.register(commands, report)
