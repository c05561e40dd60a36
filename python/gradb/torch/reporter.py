# SPDX-License-Identifier: MIT
"""Reports nodes to the debugger (operators, backward nodes, tensors from outside) and that they have run.

New nodes are published in batches. The outputs of their first run are held meanwhile, and reported in order when the
debugger has said what it wants of them; so the first step is watched like every other."""
import os
from time import perf_counter

import torch

from .. import _lib, native
from . import backward, functions, libtorch, loader, node_attributes, nodes, ops, stack, values, variables
from .failures import Failures
from .graph import DATA, EVALUATION, Graph
from .guard import apart, guarded
from .parameters import GATHERED, Parameters
from .swapping import Ref

_BATCH = 64
_MOST_HELD = 16 << 20  # bytes of values that wait: the program may have dropped them, and need the memory
_MAX_EXITS = 32
_MAX_SCOPES = 4096
_LEARNS = 3  # runs in which the inputs of a node are recorded; later ones have the same inputs
_HELPERS = frozenset(("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm", "unscale_",
                      "update_parameters", "parameters_to_vector", "vector_to_parameters"))
# Functions that, before 2.0, make a tensor without a value where they run in that file of PyTorch: one makes it for
# each section that the profiler names, the other gets the memory that a DataLoader worker has filled.
_SHELLS = {"zeros": os.path.join("autograd", "profiler.py"), "tensor": "_utils.py"}
_SETUP = frozenset(("zero_grad", "reset_parameters", "_reset_parameters", "reset_running_stats"))
_RESERVED = frozenset(("backward", "compiled", "input", "optimizer", DATA, EVALUATION))  # scopes of other things
_LOADER = loader.Loader.install.__code__.co_filename
_FROM_OUTSIDE = frozenset(("Input", GATHERED))  # types of nodes that count as run when the first operator reads them


class Reporter(native.base("Reporter")):
    """Between the hooks and libgradb.

    followed: the last step that was watched from its beginning; 0: none yet.
    loss: name of the operator that the last step's first pass began at.
    exits: name of an operator -> (function that took its result out of the graph, "FILE:LINE")."""

    def __init__(self, agent):
        self.agent = agent
        self.graph = Graph(agent.library, agent.handle)
        self.parameters = Parameters(agent, self.graph)
        self.failures = Failures(agent, self)
        self._pending = []     # (node, tensors) of nodes that have run and wait to be reported, in order
        self._held = 0         # bytes of those tensors
        self._whole = False    # this step is watched from its beginning
        self.followed = 0
        self._input_nodes = {}  # name -> nodes of tensors from outside
        self._told_opaque = False
        self.loss = None
        self._loss_step = 0    # the step of that pass
        self.exits = {}
        self.scopes = {}       # (site, id of the code that calls, whether gradients are on) -> (that code, outer scope)
        libtorch.begin()
        nodes.begin()
        functions.begin()

    # ---- steps ----

    def begin_step(self, step, looks):
        """A step begins; looks: it is watched from the beginning."""
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

    # ---- operators ----

    @guarded
    def before_write(self):
        """An operator is about to write in place: reports the values that are held before they change."""
        if self._pending:
            self.flush()

    @guarded
    def same_as(self, result, tensor, bare=False):
        """`result` is a view of `tensor` (x.T, x.data), and not the output of an operator. bare: no gradient comes back
        through it."""
        origin = self.graph.producer(tensor)
        if origin is not None and isinstance(result, torch.Tensor) and result is not tensor:
            self.graph.produced(result, origin[2], origin[3])
            if bare and tensor.requires_grad:
                self.graph.bare[id(result)] = Ref(result)

    @guarded
    def left_by(self, name, tensor):
        """A function has turned the tensor into an array or a number, with which the program continues."""
        origin = self.graph.producer(tensor) if isinstance(tensor, torch.Tensor) else None
        if origin is not None and origin[2] is not None and len(self.exits) < _MAX_EXITS:
            self.exits.setdefault(origin[2].name, (name.strip("_"), stack.spot(stack.shown(stack.frames(3)))))

    def operator_ran(self, operator, args, kwargs, result, writes):
        """An operator has returned `result`, or written it."""
        try:  # like `guarded`, at less cost
            if writes or not operator.usual or type(result) is not torch.Tensor \
                    or not self._known_ran(operator.name, args, kwargs, result):
                with apart():
                    self._operator_ran(operator, args, kwargs, result, writes)
        except Exception as error:
            self.agent.fault(error)

    def _known_ran(self, name, args, kwargs, tensor):
        """The short path of nearly all operators: part of a module's forward pass, and known. False: not this one, and
        nothing was done."""
        agent, graph, steps, local = self.agent, self.graph, self.agent.steps, self.agent.modules.local
        if (not steps.forward or steps.running or agent.in_backward or agent.detail is not None
                or agent.overflow is not None or agent.allocations is not None or agent.scaler.stepping is not None
                or not getattr(local, "path", "")):
            return False
        node = graph.known_of(local.path, name, local.site)
        if node is None:
            return False
        with apart():
            self._learn(node, args, kwargs, (tensor,))
        if tensor.requires_grad:
            backward.marks.put(tensor, node)
        self._ran(node, (tensor,), (graph.produced(tensor, node, 0),))
        return True

    def _operator_ran(self, operator, args, kwargs, result, writes):
        if isinstance(result, torch.Tensor):
            if not writes and isinstance(result, torch.nn.Parameter) and args and result is args[0]:
                return  # to() and the like with nothing to do, as for all of a model in model.to(device)
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
                scope = self.outer_scope()
                if scope in _HELPERS and name == "detach":
                    self.same_as(result, args[0])
                    return
        self._ran_as(self.graph.next_of(scope, name, agent.modules.site()), args, kwargs, outputs, writes)

    def _is_setup(self, scope, result):
        """Whether an operator that writes only sets up a module, or zeroes gradients."""
        if isinstance(result, torch.nn.Parameter) and self.graph.holder(result) is None:
            return True
        return not scope and stack.library_function(_SETUP, 3) is not None

    def outer_scope(self):
        """The scope of what runs outside all modules."""
        scope, lasts = self._find_outer_scope()
        if lasts and self.agent.native is not None:
            code = stack.caller(2)
            if len(self.scopes) >= _MAX_SCOPES:
                self.scopes.clear()
            self.scopes[(stack.site(2), id(code), torch.is_grad_enabled())] = code, scope
        return scope

    def _find_outer_scope(self):
        """(the scope, whether it is always the same at this place)"""
        loads = self.agent.events.loader.loads
        helper = None if loads else stack.library_function(_HELPERS, 4)
        if helper is not None:
            return helper, False
        scope = "" if torch.is_grad_enabled() else EVALUATION + "/"
        if loads:
            return (scope + DATA + "/" + stack.function(1, _LOADER)).rstrip("/"), False
        name = stack.function()
        first = name.split("/", 1)[0]
        if not scope and (first in _RESERVED or first in self.agent.modules.roots()):
            name = first + "_" + name[len(first):]
        return (scope + name).rstrip("/"), True

    def _ran_as(self, node, args, kwargs, outputs, writes):
        graph = self.graph
        self._learn(node, args, kwargs, outputs)
        note = graph.wrote if writes else graph.produced
        if len(outputs) == 1:  # nearly always
            records = (note(outputs[0], node, 0),)
        else:
            records = tuple(note(tensor, node, slot) for slot, tensor in enumerate(outputs))
        if self.agent.allocations is not None:
            self.agent.allocations.belongs(node)
        if node.id == 0:  # nobody has used its result yet
            return
        for tensor in outputs:
            if tensor.requires_grad:
                backward.marks.put(tensor, node)
        if self.agent.detail is not None:
            self._tell_detail(node)
        self._ran(node, outputs, records)
        if self.agent.overflow is not None:
            self.agent.overflow.operator_ran(node, outputs)

    def _tell_detail(self, parent):
        """Reports what ran inside a node, before the node itself, whose result the last call has."""
        for name, given, result in self.agent.detail.take():
            outputs, found = [], []
            ops.tensors_in(result, outputs)
            ops.tensors_in(given, found)
            node = self.graph.next_of(parent.name, name)
            node.batch = parent.batch
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
        """Adds a node that is new, and updates its edges."""
        found = []
        ops.tensors_in(args, found)
        if kwargs:
            ops.tensors_in(kwargs, found)
        if node.id == 0 and not found:  # a factory becomes a node when its result is used
            if not node.stack:
                node.stack = stack.frames(3, self.agent.thread())
                node.phase, node.kind = self.agent.steps.phase, _kind(outputs)
                node.said = node_attributes.of_call(node.operator, args, kwargs)
            return
        inputs, node.foreign = self.inputs_of(node, found, outputs)
        node.learnt = node.runs >= _LEARNS and all(made.outside for made in node.foreign.values())
        node.runs += 1
        if node.id == 0:
            attrs = node_attributes.of_call(node.operator, args, kwargs)
            attrs += node_attributes.lost_gradient(found, node, self.graph)
            self.settle(node, outputs, inputs, stack.frames(3, self.agent.thread()), attrs)
        else:
            self.graph.set_inputs(node, inputs)

    def reads(self, node, args, kwargs, outputs):
        """gradb._native has found that the inputs of a node may have changed."""
        with apart():
            self._learn(node, args, kwargs, outputs)

    def joins(self, own, node):
        """The same for the node of a backward.PassNode. Everything that the passes of a step add to a gradient is an
        input of it."""
        inputs = own.inputs()
        if own.variable is not None and node.step == self.agent.steps.step:
            inputs = [*node.edges, *(edge for edge in inputs if edge not in node.edges)]
        self.graph.set_inputs(node, inputs)

    def settle(self, node, outputs, inputs, frames, attrs=()):
        node.mark = backward.Mark(node.scope, node.operator, node, frames)
        self.graph.novel = self.graph.step
        if not node.batch and not node.aside and self.agent.steps.is_outside():
            node.batch = None
        kind = _lib.OTHER if node.scope in _HELPERS else _kind(outputs)  # norms of gradients, averaged weights
        return self.graph.settle(node, kind, phase=self.agent.steps.phase, inputs=inputs, stack=frames,
                                 outputs=[values.shape_of(tensor) for tensor in outputs],
                                 attrs=[*attrs, *values.notes(outputs)])

    def inputs_of(self, node, tensors, outputs):
        """(the edges to those tensors; position -> node, for those from outside)."""
        inputs, foreign = [], {}  # see graph.Node.edges
        for position, tensor in enumerate(tensors):
            origin = self.graph.producer(tensor)
            if tensor.requires_grad and backward.is_unseen(tensor):
                made, slot = self._unseen(tensor), 0
                foreign[position] = made
            elif origin is None or (origin[2] is None and not any(tensor is output for output in outputs)):
                # something unseen has filled it: a DataLoader worker, or an array
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
        """The result of a factory is used: the factory becomes a node. It has no value if the result was written since.
        """
        if self.settle(node, (tensor,), (), node.stack, node.said) and values.version_of(tensor) == version:
            with self.agent.timing.apart():
                self._ran(node, (tensor,), [(Ref(tensor), version)])

    # ---- tensors from outside ----

    def _foreign(self, tensor, known):
        """The node of a tensor from outside: data, targets, constants; the result of a function that was not seen.
        known: the node that was at this place before."""
        if isinstance(tensor, torch.nn.Parameter):
            self.agent.modules.adopt()
            return self.graph.holder(tensor) or self.parameters.new_node(tensor)
        if tensor.grad_fn is not None:
            return self._unseen(tensor)
        part = self.parameters.part_of(tensor)
        if part is not None:
            return part
        if known is not None and known.step != self.agent.steps.step:
            return known
        return self._input_node(tensor)

    def _input_node(self, tensor):
        name = "input/" + (variables.name_of(tensor) or "tensor")
        evaluates = self.agent.happenings.evaluates
        if evaluates:
            name = EVALUATION + "/" + name
        nodes = self._input_nodes.setdefault(name, [])
        for node in nodes:
            if node.step != self.agent.steps.step:
                return node
        node = self.graph.add(self.parameters.unused_name(name), _lib.PARAMETER, operator="Input",
                              outputs=(values.shape_of(tensor),), attrs=values.notes((tensor,)))
        if node is not None:
            node.aside = evaluates
            node.outside = True
            nodes.append(node)
        return node

    def new_pass(self):
        """An evaluation continues with another batch."""
        self.graph.new_pass()
        for name, nodes in self._input_nodes.items():
            if name.startswith(EVALUATION + "/"):
                for node in nodes:
                    node.step = 0

    def _input_ran(self, node, tensor):
        """A tensor from outside is used: reported once per step."""
        if node.step != self.agent.steps.step:
            with self.agent.timing.apart():
                self._ran(node, (tensor,), [self.graph.produced(tensor, node, 0)])

    def _unseen(self, tensor):
        """The node of a function that is not an operator of PyTorch's: a custom autograd.Function, an extension."""
        mark = backward.marks.of(tensor.grad_fn)
        if mark is not None:
            return mark.node
        node = self.graph.next_of(backward.common_scope(tensor.grad_fn, self.agent.modules.path()),
                                  backward.function_name(tensor.grad_fn), self.agent.modules.site())
        before = [backward.marks.of(following) for following, _ in tensor.grad_fn.next_functions
                  if following is not None]
        inputs = [(mark.node, 0) for mark in before if mark is not None and mark.node is not None]
        if node.id:
            self.graph.set_inputs(node, inputs)
        else:
            self.settle(node, (tensor,), inputs, stack.frames(5))
        if node.id:
            backward.marks.put(tensor, node)
            self._ran(node, (tensor,), [self.graph.produced(tensor, node, 0)])
        return node

    def operator_raised(self, operator, args, kwargs, error):
        """An operator has raised: see Failures."""
        self.failures.operator_raised(operator, args, kwargs, error)

    # ---- modules whose inside cannot be seen ----

    def run_opaque(self, call, module, args, kwargs):
        """Runs a scripted or compiled module as one node, whose inputs are its arguments."""
        name = "script" if isinstance(module, torch.jit.ScriptModule) else "compiled"
        agent = self.agent
        with agent.hidden_moment():
            result = call(module, *args, **kwargs)
        self._tell_opaque(name)
        self.operator_ran(ops.named(name), args, kwargs, result, False)
        return result

    @guarded
    def _tell_opaque(self, name):
        if not self._told_opaque and self.agent.connected():
            self._told_opaque = True
            self.agent.library.gradb_event(self.agent.handle, b"unseen", _lib.text(
                "%s is %s: only its inputs, outputs and gradients can be seen%s" % (
                    self.agent.modules.path() or "a module", "TorchScript" if name == "script" else "compiled",
                    "" if name == "script" else "; TORCH_COMPILE_DISABLE=1 runs it operator by operator")), 0)

    # ---- backward ----

    def _ran_in_backward(self, scope, name, args, kwargs, outputs, writes):
        """An operator runs inside a backward pass. If it is recomputed (checkpointing), it is the forward node; if it
        belongs to a custom function or a hook, it has a scope of its own."""
        if self.agent.regions.watches() and stack.runs_in(backward.COMPILED, 2):
            return  # inside a compiled function
        if stack.runs_in(backward.CHECKPOINT, 2):
            node = self.graph.again_of(scope, name)
            if node is None or node.id == 0:
                return
            records = [self.graph.produced(tensor, node, slot) for slot, tensor in enumerate(outputs)]
            for tensor in outputs:
                if tensor.requires_grad:
                    backward.marks.put(tensor, node)
            self.agent.live.ran_as(node.id, self.agent.steps.step, records)
            if self.agent.overflow is not None:
                self.agent.overflow.again(outputs)
            return
        self._ran_as(self.graph.next_of(backward.scope_of_code(2), name, stack.site(2)), args, kwargs, outputs, writes)

    def backward_ran(self, own, grad_inputs, grad_outputs):
        """The hook of a grad_fn (backward.PassNode), which has made grad_inputs of grad_outputs."""
        agent = self.agent
        if agent.dead:
            return
        timing = agent.timing
        if timing.on and (agent.native is None or timing.waits):
            timing.hook_begins(own)
        watching, agent.watching_now = agent.watching_now, False
        try:
            with apart():
                if own.variable is not None:
                    self._gradient_ran(own)
                else:
                    self._backward_node_ran(own, grad_inputs)
                if agent.overflow is not None and own.node is not None:
                    agent.overflow.backward_ran(own, grad_inputs, grad_outputs)
        except Exception as error:  # like `guarded`, at less cost
            agent.fault(error)
        finally:
            if timing.on:
                timing.hook_ended()
            agent.watching_now = watching and not agent.dead

    def _stack_of(self, own):
        """The source lines of a backward node: those of its operator. The operators of a compiled function were not
        seen: it gets the lines of the running backward pass."""
        found = own.mark.stack if own.mark is not None else ()
        return found or (stack.frames(3, self.agent.thread()) if self.agent.regions.watches() else ())

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
            if own.marked and mark.node is not None:
                graph.makers.setdefault(own.type, set()).add(mark.node)
            inputs = own.inputs()
            if self.agent.into_leaves and not own.incoming:  # autograd.grad() inside a loss does not count
                attrs.append(("begins", "backward()"))
            graph.settle(node, _lib.GRADIENT, type=own.type, phase=_lib.BACKWARD, attrs=attrs, inputs=inputs,
                         stack=self._stack_of(own),
                         outputs=[tensor is not None and values.shape_of(tensor) for tensor in grad_inputs])
            node.mark = backward.Mark(own.scope, own.operator, node, node.stack)
        if node.id == 0:
            return
        own.node = node
        if self.agent.allocations is not None:
            self.agent.allocations.belongs(node)
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
                backward.marks.put(tensor, node)
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
        if weight.operator == GATHERED:  # it goes to the parts, and is released
            node = self.graph.add(weight.name + ".grad", _lib.OTHER, operator="Gradient", phase=_lib.BACKWARD,
                                  outputs=(values.shape_of(gradient),), inputs=own.inputs())
        else:
            node = self.parameters.gradient_of(own.variable, weight, own)
        if node is not None:
            own.node = node
            self.joins(own, node)
            self._ran(node, (gradient,), [self.graph.produced(gradient, node, 0)])

    def backward_begins(self, own):
        """A pass into the parameters is watched; own: the backward.PassNode that it begins at."""
        step = self.agent.steps.step
        if self._loss_step != step:
            self._loss_step = step
            self.loss = own.mark.node.name if own.mark is not None and own.mark.node is not None else None

    def loss_is_over(self):
        """Another optimizer than the main one has stepped: the pass belonged to its own loss."""
        self._loss_step = 0

    def backward_ended(self):
        """A backward pass has ended: adds the gradients that it did not reach, and reports what is held."""
        if self.agent.watching_now:
            self.parameters.add_missed_gradients()
        self.flush()

    # ---- reporting ----

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
        """Holds a run until the debugger knows the new nodes."""
        self._pending.append((node, tensors))
        self._held += sum(map(_size_of, tensors))
        if len(self._pending) >= _BATCH or self._held > _MOST_HELD or self._is_wanted_now(node, tensors):
            self.flush()

    def _is_wanted_now(self, node, tensors):
        """Whether the debugger must learn of it before the program continues. For a node that it does not know yet only
        when somebody waits for a new node, steps, or looks for values that are not finite."""
        wants = self.agent.library.gradb_wants(self.agent.handle, node.id)
        if wants & _lib.WANT_IF_NOT_FINITE and not wants & _lib.WANT_RUN:
            with self.agent.own_moment():
                return node.operator == GATHERED or any(
                    values.may_be_infinite(tensor) for tensor in tensors if tensor is not None)
        return wants != 0 or node.operator == GATHERED  # whose memory is soon released

    def flush(self):
        """Publishes new nodes, then reports those that ran."""
        if self.graph.grown:
            self.graph.grown = False
            self.agent.timing.call_waiting(self.agent.library.gradb_sync, self.agent.handle)
        pending, self._pending, self._held = self._pending, [], 0
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


def _size_of(tensor):
    try:
        return tensor.numel() * tensor.element_size() if tensor is not None else 0
    except RuntimeError:  # its shape is not fixed
        return 0


def _kind(outputs):
    return _lib.ACTIVATION if any(tensor.is_floating_point() for tensor in outputs) else _lib.OTHER


def _is_counter(tensor):
    """Whether an operator that adds in place is a counter, as BatchNorm's count of batches."""
    return isinstance(tensor, torch.Tensor) and tensor.dim() == 0 and not tensor.is_floating_point() \
        and not tensor.is_complex()
