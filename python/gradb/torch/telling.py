# SPDX-License-Identifier: MIT
"""Tells the debugger of nodes: operators, parameters, backward nodes, gradients; and that they have run.

New nodes are shown in batches; the values of their first run are held meanwhile, and told in order when the
debugger has said what it wants of them. So the first step is watched like every other.
"""
import math
import os
import re
import weakref
from time import perf_counter

import torch

from .. import _lib, native
from . import backward, modules, ops, reading, stack, training, values
from .graph import DATA, EVALUATION, Graph
from .guard import guarded

_BATCH = 64
_MAX_EXITS = 32
_MAX_SAID = 64  # items of a list of arguments that are looked at
_LEARNS = 3  # runs in which the inputs of a node are looked at: later ones have the same
_HELPERS = frozenset(("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm", "unscale_",
                      "update_parameters", "parameters_to_vector", "vector_to_parameters"))
# Functions that make a tensor without a value where they run in that file of torch, before 2.0: the one is made for
# each section that the profiler names, the other is given the memory that a DataLoader's worker has filled.
_SHELLS = {"zeros": os.path.join("autograd", "profiler.py"), "tensor": "_utils.py"}
_SETUP = frozenset(("zero_grad", "reset_parameters", "_reset_parameters", "reset_running_stats"))
_OWN_WORD = "__gradb_told__"
_GATHERED = "Gathered"
_FROM_OUTSIDE = frozenset(("Input", _GATHERED))  # types of nodes that run when the first operator reads them


class Telling(native.base("Telling")):
    """Between the hooks and libgradb."""

    def __init__(self, agent):
        self.agent = agent
        self.graph = Graph(agent.library, agent.handle)
        self._parameters = []  # (weak reference to a parameter, name), in order
        self._pending = []     # (node, tensors): new nodes that ran, in order
        self._whole = False    # this step is looked at from its beginning
        self.followed = 0      # the last step that was; 0: none yet
        self._inputs_of = {}   # variable -> nodes of tensors from outside
        self._told_opaque = False
        self.raised = None     # training.Raised: the last operator that raised
        self.loss = None       # name of the operator that the last step's first pass began at
        self._loss_step = 0    # the step of that pass
        self.exits = {}        # name of an operator -> (function that took its result out of the graph, "FILE:LINE")
        reading.begin()

    # ---- steps ----

    def begin_step(self, step, looks):
        """A step begins; looks: its operators are told of from the beginning."""
        self.graph.begin_step(step)
        self._whole = looks
        if looks:
            self.followed = step
            self.exits = {}

    def end_step(self):
        """The step's last node has run."""
        if self._whole and self.graph.ran:
            text = self.graph.changes()
            if text is not None:
                self.agent.library.gradb_event(self.agent.handle, b"graph-changed", _lib.text(text), 0)

    # ---- parameters ----

    @guarded
    def add_module(self, module, known):
        """The parameters and buffers of one module (not of those below it) become nodes."""
        for key, parameter, place in modules.parameters_of(module):
            self.add_parameter(parameter, known.path + "/" + key, modules.Held(known, parameter, *place))
        for key, buffer in module._buffers.items():
            if isinstance(buffer, torch.Tensor) and self.graph.holder(buffer) is None:
                self._add_lasting(buffer, known.path + "/" + key, _lib.PARAMETER, "Buffer",
                                  held=modules.Held(known, buffer, "_buffers", key))

    def add_parameter(self, parameter, name, held=None):
        """The node of a parameter, made when it has none. held: its modules.Held. None when it cannot be."""
        known = self.graph.holder(parameter)
        if known is not None:
            return known
        is_weight = parameter.requires_grad or parameter.is_floating_point()
        attrs = () if parameter.requires_grad else (("frozen", "requires_grad was False when it was first seen"),)
        kind = _lib.WEIGHT if is_weight else _lib.PARAMETER
        node = self._add_lasting(parameter, name, kind, "Parameter", attrs, held)
        if node is not None:
            self._parameters.append((weakref.ref(parameter), node.name))
        return node

    def _add_lasting(self, tensor, name, kind, operator, attrs=(), held=None):
        """A node whose value is one tensor for good, or what `held` returns; that of a dead tensor of the same name
        goes over to it."""
        node = self.graph.add(name, kind, operator=operator, outputs=(values.shape_of(tensor),),
                              attrs=(*attrs, *values.notes((tensor,))))
        if node is not None:
            self.graph.produced(tensor, node, 0, lasting=True)
            self.agent.live.lasts(node.id, held or weakref.ref(tensor))
            node.gradient = None
        return node

    def _gradient_of(self, parameter, weight, own):
        """The node of a leaf's gradient: made when a backward pass gets there (own: its backward.PassNode), so that it
        has its place in the order of execution."""
        node = self._add_gradient(parameter, weight.name, own, "Gradient" if weight.operator == "Parameter"
                                  else "InputGradient")
        if self.graph.holder(parameter) is weight:
            weight.gradient = node
        return node

    def _add_gradient(self, parameter, name, own=None, operator="Gradient"):
        known = self.graph.nodes.get(name + ".grad")
        if known is not None and self.agent.live.leaf(known.id) is parameter:
            return known
        node = self.graph.add(name + ".grad", _lib.GRADIENT, operator=operator, phase=_lib.BACKWARD,
                              outputs=(values.shape_of(parameter),), inputs=own.inputs() if own is not None else (),
                              attrs=values.notes((parameter.grad,), self.agent.scaler.scale_of(parameter)))
        if node is not None:
            self.agent.live.gradient(node.id, self._held(name, parameter) or weakref.ref(parameter))
            self.agent.library.gradb_lasts(self.agent.handle, node.id)
        return node

    def name_now(self, parameter):
        """What the program reaches a parameter by now; None when it is not known, or another one has its name."""
        node = self.graph.holder(parameter)
        if node is not None and self.agent.live.lasting(node.id) is parameter:
            return node.name
        return self.agent.modules.reach(parameter)[0]

    def _held(self, name, parameter):
        """What is called for the value of the node of that name, where that is the parameter now."""
        weight = self.graph.nodes.get(name)
        held = self.agent.live.getter(weight.id) if weight is not None else None
        return held if held is not None and held() is parameter else None

    # ---- operators ----

    @guarded
    def before_write(self):
        """An operator is about to write in place: what is held of the values before is told first."""
        if self._pending:
            self.flush()

    @guarded
    def same_as(self, result, tensor, bare=False):
        """`result` is another look at `tensor` (x.T, x.data), and no operator's output. bare: one that no gradient
        comes back from."""
        origin = self.graph.producer(tensor)
        if origin is not None and isinstance(result, torch.Tensor) and result is not tensor:
            self.graph.produced(result, origin[2], origin[3])
            if bare and tensor.requires_grad:
                self.graph.bare[id(result)] = weakref.ref(result)

    @guarded
    def left_by(self, name, tensor):
        """A function has made an array or a number of the tensor, and the program computes on with that."""
        origin = self.graph.producer(tensor) if isinstance(tensor, torch.Tensor) else None
        if origin is not None and origin[2] is not None and len(self.exits) < _MAX_EXITS:
            self.exits.setdefault(origin[2].name, (name.strip("_"), stack.spot(stack.shown(stack.frames(3)))))

    def operator_ran(self, operator, args, kwargs, result, writes):
        """An operator has made `result`, or written it."""
        try:  # as `guarded` does, at less cost
            if writes or not operator.usual or type(result) is not torch.Tensor \
                    or not self._known_ran(operator.name, args, kwargs, result):
                with ops.apart():
                    self._operator_ran(operator, args, kwargs, result, writes)
        except Exception as error:
            self.agent.fault(error)

    def _known_ran(self, name, args, kwargs, tensor):
        """What nearly all operators are: part of a module's forward pass, and known for long. False, and nothing is
        done: this one is not."""
        agent, graph, steps, local = self.agent, self.graph, self.agent.steps, self.agent.modules.local
        if (not steps.forward or steps.running or agent.in_backward or agent.detail is not None
                or agent.overflow is not None or agent.scaler.stepping is not None or not getattr(local, "path", "")):
            return False
        node = graph.known_of(local.path, name, local.site)
        if node is None:
            return False
        with ops.apart():
            self._learn(node, args, kwargs, (tensor,))
        if tensor.requires_grad:
            backward.mark(tensor, node)
        self._ran(node, (tensor,), (graph.produced(tensor, node, 0),))
        return True

    def _operator_ran(self, operator, args, kwargs, result, writes):
        if isinstance(result, torch.Tensor):
            if not writes and isinstance(result, torch.nn.Parameter) and args and result is args[0]:
                return  # to() and such where there is nothing to do, as all of a model in model.to(device)
            outputs = (result,)
        else:
            outputs = []
            ops.tensors_in(result, outputs)
            if not outputs:
                return
        agent = self.agent
        if not agent.steps.operator_begins(outputs):
            return
        if operator.empty or (operator.name in _SHELLS and stack.runs_in(_SHELLS[operator.name], 2)):
            for tensor in outputs:
                self.graph.produced(tensor, None, 0)
            return
        name = operator.name
        scope = agent.modules.path()
        if writes or agent.in_backward or not scope:
            if writes and ((operator.counts and _is_counter(result)) or self._is_setup(scope, result)):
                return
            if agent.in_backward:
                self._ran_in_backward(scope, name, args, kwargs, outputs, writes)
                return
            if not scope:
                scope = self._outer_scope()
                if scope in _HELPERS and name == "detach":
                    self.same_as(result, args[0])
                    return
        self._ran_as(self.graph.next_of(scope, name, agent.modules.site()), args, kwargs, outputs, writes)

    def _is_setup(self, scope, result):
        """Whether an operator that writes only makes a module, or sets gradients back."""
        if isinstance(result, torch.nn.Parameter) and self.graph.holder(result) is None:
            return True
        return not scope and stack.library_function(_SETUP, 3) is not None

    def _outer_scope(self):
        """The scope of what runs outside all modules."""
        loads = self.agent.events.loader.loads
        helper = None if loads else stack.library_function(_HELPERS, 3)
        if helper is not None:
            return helper
        scope = DATA if loads else ""
        return scope if torch.is_grad_enabled() else (EVALUATION + "/" + scope).rstrip("/")

    def _ran_as(self, node, args, kwargs, outputs, writes):
        graph = self.graph
        self._learn(node, args, kwargs, outputs)
        note = graph.wrote if writes else graph.produced
        if len(outputs) == 1:  # nearly always
            records = (note(outputs[0], node, 0),)
        else:
            records = tuple(note(tensor, node, slot) for slot, tensor in enumerate(outputs))
        if node.id == 0:  # nobody has asked for its result yet
            return
        for tensor in outputs:
            if tensor.requires_grad:
                backward.mark(tensor, node)
        if self.agent.detail is not None:
            self._tell_detail(node)
        self._ran(node, outputs, records)
        if self.agent.overflow is not None:
            self.agent.overflow.operator_ran(node, outputs)

    def _tell_detail(self, parent):
        """What ran inside a node, before the node itself: its last call has its result."""
        for name, given, result in self.agent.detail.take():
            outputs, found = [], []
            ops.tensors_in(result, outputs)
            ops.tensors_in(given, found)
            node = self.graph.next_of(parent.name, name)
            origins = [self.graph.producer(tensor) for tensor in found] if outputs else ()
            inputs = [(origin[2], origin[3]) for origin in origins if origin is not None and origin[2] is not None]
            if outputs and node.id == 0:
                self.graph.settle(node, parent.kind, phase=parent.phase, stack=parent.stack, inputs=inputs,
                                  outputs=[values.shape_of(tensor) for tensor in outputs])
            elif node.id:
                self.graph.set_inputs(node, inputs)
            if outputs and node.id:
                records = [self.graph.produced(tensor, node, slot) for slot, tensor in enumerate(outputs)]
                self._ran(node, outputs, records)

    def _learn(self, node, args, kwargs, outputs):
        """Tells of a node that is new, and of edges that are."""
        found = []
        ops.tensors_in(args, found)
        if kwargs:
            ops.tensors_in(kwargs, found)
        if node.id == 0 and not found:  # a factory: a node when its result is used
            if not node.stack:
                node.stack, node.phase, node.kind = stack.frames(3), self.agent.steps.phase, _kind(outputs)
                node.said = _said(node.operator, args, kwargs)
            return
        inputs, node.foreign = self._inputs(node, found, outputs)
        node.learnt = node.runs >= _LEARNS and not node.foreign
        node.runs += 1
        if node.id == 0:
            attrs = _said(node.operator, args, kwargs) + _cut(found, node, self.graph)
            self._settle(node, outputs, inputs, stack.frames(3), attrs)
        else:
            self.graph.set_inputs(node, inputs)

    def reads(self, node, args, kwargs, outputs):
        """gradb._native has found that a node may read others than before."""
        with ops.apart():
            self._learn(node, args, kwargs, outputs)

    def joins(self, own, node):
        """The same for the node of a backward.PassNode. Everything that the passes of a step add to a gradient is an
        input of it."""
        inputs = own.inputs()
        if own.variable is not None and node.step == self.agent.steps.step:
            inputs = [*node.edges, *(edge for edge in inputs if edge not in node.edges)]
        self.graph.set_inputs(node, inputs)

    def _settle(self, node, outputs, inputs, frames, attrs=()):
        node.mark = backward.Mark(node.scope, node.operator, node, frames)
        self.graph.novel = self.graph.step
        kind = _lib.OTHER if node.scope in _HELPERS else _kind(outputs)  # norms of gradients, averages of weights
        return self.graph.settle(node, kind, phase=self.agent.steps.phase, inputs=inputs, stack=frames,
                                 outputs=[values.shape_of(tensor) for tensor in outputs],
                                 attrs=[*attrs, *values.notes(outputs)])

    def _inputs(self, node, tensors, outputs):
        """The edges to those tensors, and the nodes of those of them that come from outside, by position."""
        inputs, foreign = [], {}  # see graph.Node.edges
        for position, tensor in enumerate(tensors):
            origin = self.graph.producer(tensor)
            if tensor.requires_grad and backward.is_unseen(tensor):
                made, slot = self._unseen(tensor), 0
                foreign[position] = made
            elif origin is None or (origin[2] is None and not any(tensor is output for output in outputs)):
                # nobody has filled it that was seen: its memory is a DataLoader worker's, or an array's
                made, slot = self._foreign(tensor, node.foreign.get(position) if node.foreign else None), 0
            else:
                made, slot = origin[2], origin[3]
                if made is not None and made.id == 0:
                    self._settle_latent(made, tensor, origin[1])
            if made is None or made.id == 0:
                inputs.append(None)
                continue
            if made.operator in _FROM_OUTSIDE:
                foreign[position] = made
                self._input_ran(made, tensor)
            inputs.append((made, slot))
        return inputs, foreign

    def _settle_latent(self, node, tensor, version):
        """The result of a factory is used: it becomes a node. Where it was written to since, what it made is gone."""
        if self._settle(node, (tensor,), (), node.stack, node.said) and values.version_of(tensor) == version:
            self._ran(node, (tensor,), [(weakref.ref(tensor), version)])

    # ---- tensors from outside ----

    def _foreign(self, tensor, known):
        """The node of a tensor that came from outside: data, targets, constants; the result of a function that
        could not be seen. `known`: the one that stood at this place before."""
        if isinstance(tensor, torch.nn.Parameter):
            self.agent.modules.adopt()
            return self.graph.holder(tensor) or self._new_parameter(tensor)
        if tensor.grad_fn is not None:
            return self._unseen(tensor)
        part = self._part(tensor)
        if part is not None:
            return part
        if known is not None and known.step != self.agent.steps.step:
            return known
        return self._input_node(tensor)

    def _part(self, tensor):
        """The node of the sharded parameter or gradient that it is, or is the local part of, as a clip reads it."""
        part = getattr(tensor, "_local_tensor", tensor)
        for reference, name in self._parameters:
            parameter = reference()
            if type(parameter) in values.PLAIN or parameter is None:
                continue
            if getattr(parameter.grad, "_local_tensor", None) is part:
                return self.graph.nodes.get(name + ".grad")
            if getattr(parameter, "_local_tensor", None) is part:
                return self.graph.nodes.get(name)
        return None

    def _new_parameter(self, tensor):
        """The node of a parameter that was not there when modules were named. As a sharded module has it while it
        runs, it is none of `weights`: its memory is given back within the step, and what is trained is the part."""
        place = self.agent.modules.place_of(tensor)
        known = self.graph.nodes.get(place)
        held = self.agent.live.lasting(known.id) if known is not None else None
        if held is not None and type(held) not in values.PLAIN:
            return self.graph.add(place + ".gathered", _lib.OTHER, operator=_GATHERED, phase=_lib.FORWARD,
                                  outputs=(values.shape_of(tensor),), attrs=values.notes((tensor,)))
        reached, now = self.agent.modules.reach(tensor)
        if reached is not None:
            return self.take_place(tensor, reached, now)
        if place is None or held is not None:
            place = self._unused(place or modules.variable_of(tensor) or "parameter")
        return self.add_parameter(tensor, place)

    def take_place(self, parameter, name, held):
        """The node of a parameter that the program reaches by that name now; another one that had it has none."""
        for reference, given in self._parameters:
            before = reference() if given == name else None
            if before is not None and before is not parameter:
                self.graph.forget(before)
        return self.add_parameter(parameter, name, held)

    def _unused(self, name):
        base, count = name, 0
        while name in self.graph.nodes:
            count += 1
            name = "%s_%d" % (base, count)
        return name

    def _input_node(self, tensor):
        name = modules.variable_of(tensor) or "tensor"
        nodes = self._inputs_of.setdefault(name, [])
        for node in nodes:
            if node.step != self.agent.steps.step:
                return node
        node = self.graph.add(self._unused("input/" + name), _lib.PARAMETER, operator="Input",
                              outputs=(values.shape_of(tensor),), attrs=values.notes((tensor,)))
        if node is not None:
            nodes.append(node)
        return node

    def _input_ran(self, node, tensor):
        """A tensor from outside is there: told of once a step."""
        if node.step != self.agent.steps.step:
            self._ran(node, (tensor,), [self.graph.produced(tensor, node, 0)])

    def _unseen(self, tensor):
        """The node of a function that is no operator of torch's own: a custom autograd.Function, an extension."""
        mark = tensor.grad_fn.metadata.get(backward.KEY)
        if mark is not None:
            return mark.node
        node = self.graph.next_of(backward.common_scope(tensor.grad_fn, self.agent.modules.path()),
                                  backward.function_name(tensor.grad_fn), self.agent.modules.site())
        before = [following.metadata.get(backward.KEY) for following, _ in tensor.grad_fn.next_functions
                  if following is not None]
        inputs = [(mark.node, 0) for mark in before if mark is not None and mark.node is not None]
        if node.id:
            self.graph.set_inputs(node, inputs)
        else:
            self._settle(node, (tensor,), inputs, stack.frames(5))
        if node.id:
            backward.mark(tensor, node)
            self._ran(node, (tensor,), [self.graph.produced(tensor, node, 0)])
        return node

    @guarded
    def operator_raised(self, operator, args, kwargs, error):
        """An operator raised into the user's code: the run stops there, while all is still to be seen."""
        agent = self.agent
        if getattr(error, _OWN_WORD, False) or not agent.connected() or agent.exceptions.mode == "off":
            return
        if type(error).__module__ == "torch.utils.checkpoint":  # how a recomputation ends early
            return
        with agent.unseen():
            if not agent.steps.operator_begins():
                return
            node = self.graph.next_of(agent.modules.path() or self._outer_scope(), operator.name, agent.modules.site())
            found = []
            ops.tensors_in(args, found)
            ops.tensors_in(kwargs or {}, found)
            inputs, _ = self._inputs(node, found, ())
            if node.id == 0:
                self._settle(node, (), inputs, stack.frames(3))
            else:
                self.graph.set_inputs(node, inputs)
            agent.live.ran_as(node.id, agent.steps.step, ())  # what it made before is not of this step
            self.raised = training.Raised(node, agent.steps.step, _told(error), operator.name, args, kwargs or {},
                                          self.graph.producer)
            self.flush()
            self._stop(error, "%s raised %s%s" % (node.name, _told(error), _elsewhere(node, stack.frames(3))), node)

    def knows(self, error):
        """Whether the run has stopped at this exception."""
        return getattr(error, _OWN_WORD, False)

    def died(self, error, node, where, args, kwargs):
        """The program is about to end by an exception; see exceptions.py. args, kwargs: what the operator `node`
        had."""
        if node is not None:
            step = self.agent.steps.step
            self.agent.live.ran_as(node.id, step, ())
            self.raised = training.Raised(node, step, _told(error), node.operator, args, kwargs, self.graph.producer)
        self.flush()
        self._stop(error, "the program ends by %s%s" % (_told(error), where), node)

    def _stop(self, error, text, node=None):
        try:
            setattr(error, _OWN_WORD, True)
        except AttributeError:  # it has no room for a word of ours: told again by the next one that sees it
            pass
        raised = getattr(self.agent.library, "gradb_raised", None)
        if raised is not None:
            self.agent.timing.apart(raised, self.agent.handle, node.id if node is not None else 0, _lib.text(text))
        else:
            self.agent.timing.apart(self.agent.library.gradb_stop, self.agent.handle, _lib.text(text))

    # ---- modules whose inside cannot be seen ----

    def run_opaque(self, call, module, args, kwargs):
        """Runs a scripted or compiled module: one node, with its arguments as inputs."""
        name = "script" if isinstance(module, torch.jit.ScriptModule) else "compiled"
        agent = self.agent
        with agent.hidden():
            result = call(module, *args, **kwargs)
        self._tell_opaque(name)
        self.operator_ran(ops.named(name), args, kwargs, result, False)
        return result

    @guarded
    def _tell_opaque(self, name):
        if not self._told_opaque and self.agent.connected():
            self._told_opaque = True
            self.agent.library.gradb_event(self.agent.handle, b"unseen", _lib.text(
                "%s is %s: of its inside only inputs, outputs and gradients can be seen%s" % (
                    self.agent.modules.path() or "a module", "TorchScript" if name == "script" else "compiled",
                    "" if name == "script" else "; TORCH_COMPILE_DISABLE=1 runs it operator by operator")), 0)

    # ---- backward ----

    def _ran_in_backward(self, scope, name, args, kwargs, outputs, writes):
        """An operator that runs inside a backward pass: one that is computed once more (checkpointing) is the
        forward one; one of a custom function or a hook has a name of its own."""
        if self.agent.regions.watches() and stack.runs_in(backward.COMPILED, 2):
            return  # inside a compiled function's
        if stack.runs_in(backward.CHECKPOINT, 2):
            node = self.graph.again_of(scope, name)
            if node is None or node.id == 0:
                return
            records = [self.graph.produced(tensor, node, slot) for slot, tensor in enumerate(outputs)]
            for tensor in outputs:
                if tensor.requires_grad:
                    backward.mark(tensor, node)
            self.agent.live.ran_as(node.id, self.agent.steps.step, records)
            if self.agent.overflow is not None:
                self.agent.overflow.again(outputs)
            return
        self._ran_as(self.graph.next_of(backward.scope_of_code(2), name, stack.site(2)), args, kwargs, outputs, writes)

    def backward_ran(self, own, grad_inputs, grad_outputs):
        """The hook of a grad_fn (backward.PassNode): of grad_outputs it has made grad_inputs."""
        agent = self.agent
        if agent.dead:
            return
        timing = agent.timing
        if timing.on:
            timing.hook_begins()
        looking, agent.looking = agent.looking, False
        try:
            with ops.apart():
                if own.variable is not None:
                    self._gradient_ran(own)
                else:
                    self._backward_node_ran(own, grad_inputs)
                if agent.overflow is not None and own.node is not None:
                    agent.overflow.backward_ran(own, grad_inputs, grad_outputs)
        except Exception as error:  # as `guarded` does, at less cost
            agent.fault(error)
        finally:
            if timing.on:
                timing.hook_ended()
            agent.looking = looking and not agent.dead

    def _backward_node_ran(self, own, grad_inputs):
        graph = self.graph
        if own.name is not None:
            node = graph.next_pass_of(own.name, own)
        else:
            node = graph.next_of(own.scope, own.operator)
        if node.id == 0:
            mark = own.mark
            attrs = [("forward", mark.node.name)] if mark is not None and mark.node is not None else []
            attrs += values.notes(grad_inputs, self.agent.live.scale)
            inputs = own.inputs()
            if self.agent.into_leaves and not own.incoming:  # autograd.grad() inside of a loss is another
                attrs.append(("begins", "backward()"))
            graph.settle(node, _lib.GRADIENT, type=own.type, phase=_lib.BACKWARD, attrs=attrs, inputs=inputs,
                         stack=_stack_of(own, self.agent.regions.watches()),
                         outputs=[tensor is not None and values.shape_of(tensor) for tensor in grad_inputs])
            node.mark = backward.Mark(own.scope, own.operator, node, node.stack)
        if node.id == 0:
            return
        own.node = node
        self.joins(own, node)
        if self.agent.detail is not None:
            self._tell_detail(node)
        records = []
        for slot, tensor in enumerate(grad_inputs):
            if tensor is None:
                records.append(None)
                continue
            records.append(graph.produced(tensor, node, slot))
            if tensor.requires_grad:
                backward.mark(tensor, node)
        if records:
            self._ran(node, grad_inputs, records)

    def _gradient_ran(self, own):
        gradient = own.variable.grad
        weight = self.graph.holder(own.variable)
        if weight is None:
            origin = self.graph.producer(own.variable)
            weight = origin[2] if origin is not None else None
        if weight is None or gradient is None:
            return
        if weight.operator == _GATHERED:  # goes to the parts, and is gone
            node = self.graph.add(weight.name + ".grad", _lib.OTHER, operator="Gradient", phase=_lib.BACKWARD,
                                  outputs=(values.shape_of(gradient),), inputs=own.inputs())
        else:
            node = self._gradient_of(own.variable, weight, own)
        if node is not None:
            own.node = node
            self.joins(own, node)
            self._ran(node, (gradient,), [self.graph.produced(gradient, node, 0)])

    @guarded
    def backward_raised(self, error):
        """A backward pass raised into the user's code."""
        if (not getattr(error, _OWN_WORD, False) and self.agent.connected()
                and self.agent.exceptions.mode != "off"):
            with self.agent.unseen():
                self.flush()
                place = stack.raised_at(error.__traceback__)[0] or stack.shown(stack.frames(2))
                self._stop(error, "backward raised %s%s" % (self._overwritten(error) or _told(error),
                                                            stack.words(place)))

    def _overwritten(self, error):
        """Of a pass that misses a value: which operator of the step wrote to it; None unless it can be but one."""
        found = _MISSED.search(str(error))
        if found is None:
            return None
        made = found.group(2).lower()
        ran = [node for node in self.graph.by_id.values() if node.step == self.agent.steps.step and node.stack]
        makers = {node.id for node in ran if node.operator.replace("_", "") == made}
        writers = [node for node in ran if node.operator.endswith("_") and node.phase == _lib.FORWARD
                   and (node.id in makers or any(edge is not None and edge[0].id in makers for edge in node.edges))]
        if len(writers) != 1:
            return None
        place = stack.shown(writers[0].stack)
        where = " (%s)" % stack.spot(place) if place is not None else ""
        return "%s: %s%s wrote in place to what the gradient needs: %s of %s" % (
            type(error).__name__, writers[0].name, where, found.group(1), found.group(2))

    def backward_begins(self, own):
        """A pass into the parameters is looked at; own: the backward.PassNode of what it begins at."""
        step = self.agent.steps.step
        if self._loss_step != step:
            self._loss_step = step
            self.loss = own.mark.node.name if own.mark is not None and own.mark.node is not None else None

    def loss_is_over(self):
        """Another optimizer than the main one has stepped: the pass was of a loss of its own."""
        self._loss_step = 0

    def backward_ended(self):
        """Parameters that the pass did not reach have a gradient's node, too: one without a value. Not those that no
        optimizer holds: averaged weights and target networks look as if they were trained."""
        if self.agent.looking:
            missed = [(reference(), name) for reference, name in self._parameters
                      if name + ".grad" not in self.graph.nodes]
            missed = [(parameter, name) for parameter, name in missed
                      if parameter is not None and parameter.requires_grad]
            held = self.agent.optimizers.owners() if missed else {}
            for parameter, name in missed:
                if not held or id(parameter) in held:
                    self._add_gradient(parameter, name)
        self.flush()

    # ---- telling ----

    def ran(self, node, tensors):
        """A node has run with these outputs (a tensor or None per slot)."""
        self._ran(node, tensors, None)

    def _ran(self, node, tensors, records):
        agent, graph = self.agent, self.graph
        if agent.native is not None:
            native.module.ran(agent.native, node, tensors, records)
            return
        node.step = step = agent.steps.step
        if records is None:
            agent.live.ran(node.id, step, tensors)
        else:
            agent.live.ran_as(node.id, step, records)
        if not node.aside:
            graph.ran.append(node.id)
        if agent.timing.on:
            agent.timing.ran(node.id)
        if graph.grown or self._pending:
            self._hold(node, tensors)
        elif agent.words.armed:
            self._tell(node, tensors)

    def _hold(self, node, tensors):
        """There are nodes that the debugger does not know yet: this one is told of when it does."""
        self._pending.append((node, tensors))
        if len(self._pending) >= _BATCH or self._is_wanted_now(node, tensors):
            self.flush()

    def _is_wanted_now(self, node, tensors):
        """Whether the debugger is to be told of it before the program goes on. Of a node that it does not know yet
        only when somebody waits for such a one, or steps, or looks for what is not finite."""
        wants = self.agent.library.gradb_wants(self.agent.handle, node.id)
        if wants & _lib.WANT_IF_NOT_FINITE and not wants & _lib.WANT_RUN:
            with self.agent.unseen():
                return node.operator == _GATHERED or any(
                    values.may_be_infinite(tensor) for tensor in tensors if tensor is not None)
        return wants != 0 or node.operator == _GATHERED  # whose memory is soon given back

    def flush(self):
        """Shows new nodes to the debugger, then tells of those that ran."""
        if self.graph.grown:
            self.graph.grown = False
            self.agent.timing.apart(self.agent.library.gradb_sync, self.agent.handle)
        pending, self._pending = self._pending, []
        for node, tensors in pending:
            self._tell(node, tensors)

    def _tell(self, node, tensors):
        agent = self.agent
        changes = agent.words.changes
        if node.asked != changes:
            node.wants = agent.library.gradb_wants(agent.handle, node.id)
            node.asked = changes
        if not node.wants:
            return
        if node.wants & _lib.WANT_VALUE:
            places = node.places
            if places is None or places.count != len(tensors) or agent.scaler.scaling:
                places = agent.source.places(node, tensors)
            else:
                places.fill(tensors)
            began = perf_counter()
            agent.library.gradb_did_with_slow(agent.handle, node.id, places.address, places.count)
        else:
            began = perf_counter()
            agent.library.gradb_did_slow(agent.handle, node.id)
        agent.timing.away += perf_counter() - began


def _kind(outputs):
    return _lib.ACTIVATION if any(tensor.is_floating_point() for tensor in outputs) else _lib.OTHER


def _said(operator, args, kwargs):
    """The arguments that explain a value: how a loss is reduced, what a fill fills with, over which axis."""
    reduction = kwargs.get("reduction") if kwargs else None
    found = [("reduction", reduction)] if isinstance(reduction, str) else []
    fill = _infinity(args) or _infinity(list(kwargs.values()) if kwargs else ())
    if fill:
        found.append(("fill", "%g" % fill))
    axes = _axes_said(operator, args, kwargs)
    if axes:
        found.append(("dim", ",".join("%d" % axis for axis in axes)))
    name, position, key, form = _SAID.get(operator, (None, 0, None, None))
    if name is not None:
        value = kwargs[key] if kwargs and key in kwargs else args[position] if len(args) > position else None
        if value is not None:
            found.append((name, form(value)))
    return found


def _axes_said(operator, args, kwargs):
    """The axes that an operator was told to go over, or to exchange."""
    if operator in _OVER_AXES:
        given = kwargs["dim"] if kwargs and "dim" in kwargs else args[1] if len(args) > 1 else None
    elif operator in _EXCHANGES:
        given = kwargs["dims"] if kwargs and "dims" in kwargs else \
            tuple(kwargs.values()) if kwargs else args[1] if len(args) == 2 else args[1:]
    else:
        return ()
    axes = given if isinstance(given, (tuple, list)) else (given,)
    return axes if all(isinstance(axis, int) and not isinstance(axis, bool) for axis in axes) else ()


def _padding(value):
    sizes = value if isinstance(value, (tuple, list)) else (value,)
    return "0" if all(size == 0 for size in sizes) else "some"


_OVER_AXES = frozenset(("softmax", "log_softmax", "mean", "sum", "std", "var", "amax", "amin", "max", "min",
                        "logsumexp"))
_EXCHANGES = frozenset(("transpose", "swapaxes", "swapdims", "permute"))
# operator -> (attribute, position and keyword of the argument, how it is written)
_SAID = {"batch_norm": ("training", 5, "training", str), "instance_norm": ("training", 5, "use_input_stats", str),
         "group_norm": ("groups", 1, "num_groups", str),
         "layer_norm": ("rank", 1, "normalized_shape", lambda shape: "%d" % len(shape)),
         "conv1d": ("padding", 4, "padding", _padding), "conv2d": ("padding", 4, "padding", _padding),
         "conv3d": ("padding", 4, "padding", _padding)}


def _infinity(given, depth=0):
    """The first infinite number among arguments: the program's own intention. Else 0."""
    for value in given if len(given) <= _MAX_SAID else ():
        if isinstance(value, float) and math.isinf(value):
            return value
        if isinstance(value, (list, tuple)) and depth < 2:
            found = _infinity(value, depth + 1)
            if found:
                return found
    return 0


def _cut(given, node, graph):
    """That no gradient comes back through it because the program has switched gradients off, though it was given
    what needs one, or because it was given x.data. An evaluation does as it should."""
    if node.aside:
        return []
    if torch.is_grad_enabled():
        return [("grad", "data")] if any(graph.is_bare(tensor) for tensor in given) else []
    return [("grad", "off")] if any(tensor.requires_grad for tensor in given) else []


def _is_counter(tensor):
    """Whether an operator that adds in place counts up, as BatchNorm counts its batches."""
    return isinstance(tensor, torch.Tensor) and tensor.dim() == 0 and not tensor.is_floating_point() \
        and not tensor.is_complex()


def _elsewhere(node, frames):
    """Where a node runs now, when that is another line than the one it is known by; "" when it is not."""
    known, now = stack.shown(node.stack), stack.shown(frames)
    return stack.words(now) if known is not None and now != known else ""


def _stack_of(own, compiles):
    """The source lines of a backward node: those of the operator that it belongs to. No operator of a compiled
    function was seen: it has the lines of the backward pass, which runs. compiles: there may be such functions."""
    found = own.mark.stack if own.mark is not None else ()
    return found or (stack.frames(3) if compiles else ())


# What PyTorch says of a value that an operator has written to though the backward pass needs it.
_MISSED = re.compile(r"inplace operation: .*which is (output \d+) of (\w+?)(?:Backward\d*)?, is at version")
_CALLS = re.compile(r"^(?:Exception raised from |frame #0:|C\+\+ CapturedTraceback)", re.MULTILINE)
_TOLD = 800  # bytes of what an exception says; libgradb hands on some more, for the place behind it
_PREFACE = "one of the variables needed for gradient computation has been modified by an inplace operation: "


def _told(error):
    """What it says, its lines joined; cut where it is very long, and before what lists calls in PyTorch's own code."""
    said = _CALLS.split(str(error), maxsplit=1)[0].replace(_PREFACE, "written in place, though the gradient needs it: ")
    text = " ".join(said.split())
    whole = _lib.text(text)
    text = text if len(whole) <= _TOLD else whole[:_TOLD].decode("utf-8", "ignore") + "..."
    return "%s: %s" % (type(error).__name__, text)
