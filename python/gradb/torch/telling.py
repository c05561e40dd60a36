# SPDX-License-Identifier: MIT
"""Tells the debugger of nodes: operators, parameters, backward nodes, gradients; and that they have run.

New nodes are shown in batches; the values of their first run are held meanwhile, and told in order when the
debugger has said what it wants of them. So the first step is watched like every other.
"""
import torch

from .. import _lib
from . import backward, modules, ops, stack, values
from .graph import Graph
from .guard import guarded

_BATCH = 64


class Telling:
    """Between the hooks and libgradb."""

    def __init__(self, agent):
        self.agent = agent
        self.graph = Graph(agent.library, agent.handle)
        self._parameters = []  # (parameter, name), in order
        self._pending = []     # (node, tensors): new nodes that ran, in order

    # ---- parameters ----

    @guarded
    def add_module(self, module, name):
        """Parameters and buffers of a root module become nodes."""
        for path, parameter in module.named_parameters():
            self.add_parameter(parameter, name + "/" + path.replace(".", "/"))
        for path, buffer in module.named_buffers():
            node = self.graph.add(name + "/" + path.replace(".", "/"), _lib.PARAMETER, operator="Buffer",
                                  outputs=(values.shape_of(buffer),))
            if node is not None:
                self.graph.produced(buffer, node.id, 0, lasting=True)
                self.agent.live.lasts(node.id, lambda buffer=buffer: buffer)
        self.agent.library.gradb_publish(self.agent.handle)

    def add_parameter(self, parameter, name):
        """The node of a parameter, made when it has none."""
        known = self.graph.producer(parameter)
        if known is not None:
            return self.graph.by_id[known[0]]
        node = self.graph.add(name, _lib.WEIGHT if parameter.requires_grad else _lib.PARAMETER,
                              operator="Parameter", outputs=(values.shape_of(parameter),))
        if node is not None:
            self.graph.produced(parameter, node.id, 0, lasting=True)
            self.agent.live.lasts(node.id, lambda: parameter)
            self._parameters.append((parameter, name))
        return node

    def _add_gradient(self, parameter, name, inputs=()):
        """The node of a parameter's gradient: made when a backward pass gets there, so that it has its place
        in the order of execution."""
        gradient = self.graph.add(name + ".grad", _lib.GRADIENT, operator="Gradient", phase=_lib.BACKWARD,
                                  outputs=(values.shape_of(parameter),), inputs=inputs)
        if gradient is not None:
            self.agent.live.lasts(gradient.id, lambda: parameter.grad)
        return gradient

    # ---- operators ----

    def before_operator(self, args, kwargs):
        """The tensors among the arguments and who made them: asked before the operator may overwrite them."""
        found = []
        ops.tensors_in(args, found)
        ops.tensors_in(kwargs, found)
        return found, [self.graph.producer(tensor) for tensor in found]

    @guarded
    def operator_ran(self, name, result, before):
        """An operator has made `result`."""
        agent = self.agent
        outputs = []
        ops.tensors_in(result, outputs)
        if not outputs:
            return
        agent.looking = False
        try:
            if not agent.steps.operator_begins(outputs):
                return
            node = self._operator_node(name, before, outputs)
            if node is not None:
                self.ran(node, outputs)
        finally:
            agent.look_again()

    def _operator_node(self, name, before, outputs):
        scope = self.agent.modules.path()
        full = self.graph.next_name(scope, name)
        node = self.graph.nodes.get(full)
        if node is None:
            node = self.graph.add(full, _kind(outputs), operator=name, phase=self.agent.steps.phase,
                                  inputs=self._inputs(before), stack=stack.frames(3),
                                  outputs=[values.shape_of(tensor) for tensor in outputs])
            if node is None:
                return None
        mark = backward.Mark(scope, name, node.id, node.stack)
        for slot, tensor in enumerate(outputs):
            self.graph.produced(tensor, node.id, slot)
            if tensor.requires_grad:
                backward.mark(tensor, mark)
        return node

    def _inputs(self, before):
        inputs = [made or self._foreign(tensor) for tensor, made in zip(*before)]
        return [made for made in inputs if made]

    def _foreign(self, tensor):
        """The node of a tensor that came from outside: data, targets, constants."""
        if isinstance(tensor, torch.nn.Parameter):
            node = self.add_parameter(tensor, self.graph.next_name("", "parameter"))
        else:
            name = self.graph.next_name("input", modules.variable_of(tensor) or "tensor")
            node = self.graph.add(name, _lib.PARAMETER, operator="Input", outputs=(values.shape_of(tensor),))
            if node is not None:
                self.graph.produced(tensor, node.id, 0)
                self.agent.live.ran(node.id, self.agent.steps.step, (tensor,))
        return (node.id, 0) if node is not None else None

    @guarded
    def operator_raised(self, name, error, before):
        """An operator raised into the user's code: the run stops there, while all is still to be seen."""
        agent = self.agent
        if getattr(error, "__gradb_told__", False):
            return
        agent.looking = False
        try:
            if not agent.steps.operator_begins():
                return
            full = self.graph.next_name(agent.modules.path(), name)
            self.graph.add(full, _lib.OTHER, operator=name, phase=agent.steps.phase,
                           inputs=self._inputs(before), stack=stack.frames(3))
            self.flush()
            error.__gradb_told__ = True
            agent.library.gradb_stop(agent.handle, _lib.text("%s raised %s: %s" % (
                full, type(error).__name__, str(error).split("\n", 1)[0])))
        finally:
            agent.looking = not agent.dead

    # ---- backward ----

    @guarded
    def backward_ran(self, own, grad_inputs):
        """The hook of a grad_fn (backward.Step): its results are grad_inputs."""
        agent = self.agent
        looking, agent.looking = agent.looking, False
        agent.timing.hook_begins()
        try:
            if own.variable is not None:
                self._gradient_ran(own)
            else:
                self._backward_node_ran(own, grad_inputs)
        finally:
            agent.timing.hook_ended()
            agent.looking = looking and not agent.dead

    def _backward_node_ran(self, own, grad_inputs):
        scope = "backward/" + own.mark.scope if own.mark and own.mark.scope else "backward"
        name = self.graph.next_name(scope, own.mark.operator if own.mark else own.type)
        tensors = [tensor if isinstance(tensor, torch.Tensor) else None for tensor in grad_inputs]
        node = self.graph.nodes.get(name)
        if node is None:
            attrs = [("forward", self.graph.by_id[own.mark.node].name)] if own.mark else []
            node = self.graph.add(name, _lib.GRADIENT, operator=own.type, phase=_lib.BACKWARD, attrs=attrs,
                                  inputs=own.inputs(), stack=own.mark.stack if own.mark else (),
                                  outputs=[tensor is not None and values.shape_of(tensor) for tensor in tensors])
        own.node = node
        if node is not None and tensors:
            self.ran(node, tensors)

    def _gradient_ran(self, own):
        made = self.graph.producer(own.variable)
        if made is None or own.variable.grad is None:
            return
        node = self._add_gradient(own.variable, self.graph.by_id[made[0]].name, own.inputs())
        if node is not None:
            self.ran(node, (own.variable.grad,))

    def backward_ended(self):
        """Parameters that the pass did not reach have a gradient's node, too: one without a value."""
        if self.agent.looking:
            for parameter, name in self._parameters:
                if parameter.requires_grad:
                    self._add_gradient(parameter, name)
        self.flush()

    # ---- telling ----

    def ran(self, node, tensors):
        """A node has run with these outputs (a tensor or None per slot)."""
        self.agent.live.ran(node.id, self.agent.steps.step, tensors)
        if self.agent.timing.on:
            self.agent.timing.ran(node.id)
        if self.graph.grown or self._pending:
            self._pending.append((node, tensors))
            # a node that the debugger does not know yet is only wanted when each one is: somebody steps
            if len(self._pending) >= _BATCH or self.agent.library.gradb_wants(self.agent.handle, node.id):
                self.flush()
            return
        self._tell(node, tensors)

    def flush(self):
        """Shows new nodes to the debugger, then tells of those that ran."""
        if self.graph.grown:
            self.graph.grown = False
            self.agent.timing.apart(self.agent.library.gradb_sync, self.agent.handle)
        pending, self._pending = self._pending, []
        for node, tensors in pending:
            self._tell(node, tensors)

    def _tell(self, node, tensors):
        library, handle = self.agent.library, self.agent.handle
        wants = library.gradb_wants(handle, node.id)
        if wants & _lib.WANT_VALUE:
            array = (_lib.Tensor * len(tensors))(*[values.told(tensor) for tensor in tensors])
            self.agent.timing.apart(library.gradb_did_with_slow, handle, node.id, array, len(tensors))
        elif wants:
            self.agent.timing.apart(library.gradb_did_slow, handle, node.id)


def _kind(outputs):
    return _lib.ACTIVATION if any(tensor.is_floating_point() for tensor in outputs) else _lib.OTHER
