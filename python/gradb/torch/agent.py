# SPDX-License-Identifier: MIT
"""The agent: one per training process. Owns libgradb's handle and all hooks, and decides what is on.

While nobody asks, what runs is the wrapper of modules, the hook of optimizers, and one read of the word
`armed`. Operators and backward nodes are looked at in the first step under a debugger, which shows the graph,
and whenever the debugger wants to hear of nodes.
"""
import ctypes
import functools
import os
import sys
import threading
import traceback

import torch

from .. import _lib
from . import backward, modules, ops, optim, stack, values
from .graph import Graph

_BATCH = 64  # new nodes whose values wait for the debugger's word


def guarded(method):
    """Nothing of ours may break the training: a fault is told once and disarms the agent."""
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if self.dead:
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            self.fault(error)
            return None
    return call


class Agent:
    """See the module. `looking`: operators are to be told of now."""

    def __init__(self, library, program=None):
        self.library = library
        self.dead = False
        self.looking = False
        self.pid = os.getpid()
        self.step = 1
        self.live = values.Live()
        self._source = self._make_source()
        options = _lib.Options()
        options.framework = b"pytorch"
        options.framework_version = _lib.text(torch.__version__)
        options.device = _lib.text(_device_name())
        options.program = _lib.text(program or " ".join(sys.argv))
        options.rank = _number("RANK", 0)
        options.world_size = _number("WORLD_SIZE", 1)
        options.source = ctypes.pointer(self._source)
        self.handle = library.gradb_open(ctypes.byref(options))
        if not self.handle:
            raise RuntimeError("gradb_open refused")
        self._armed = ctypes.c_int.from_address(self.handle)
        self.graph = Graph(library, self.handle, self.live)
        self._parameters = []   # (parameter, name) in order
        self._pending = []      # (node, tensors) of new nodes, in order
        self._recorded = False  # a whole step was looked at on this connection
        self._wants_record = False
        self._begun = False     # step_begin was called
        self._phase = _lib.NO_PHASE
        self._main_optimizer = None
        self._thread = threading.get_ident()
        self._mode = ops.OperatorMode(self)
        self._mode_on = False
        self.modules = modules.Modules(self.add_module)
        self._backward = backward.Backward(self)
        self._optimizers = optim.Optimizers(self)

    # ---- life ----

    def install(self):
        """Puts the cheap hooks on."""
        self.modules.install()
        self._backward.install()
        self._optimizers.install()
        os.register_at_fork(after_in_child=self._forked)

    def wait(self, seconds):
        """Stands before the first step until the debugger lets go; see gradb_wait."""
        self.library.gradb_publish(self.handle)
        self.library.gradb_wait(self.handle, seconds)
        self._begin_step()

    def connected(self):
        """Whether a debugger is there."""
        return not self.dead and bool(self.library.gradb_is_connected(self.handle))

    def close(self, why=""):
        """Takes the hooks off and says goodbye."""
        self._look(False)
        self.dead = True
        self._optimizers.remove()
        self._backward.remove()
        self.modules.remove()
        handle, self.handle = self.handle, None
        if handle and os.getpid() == self.pid:
            self.library.gradb_close(handle, _lib.text(why))

    def fault(self, error):
        """A fault of our own: one line, and the training goes on without us."""
        if self.dead:
            return
        self.dead = True
        self.looking = False
        place = traceback.extract_tb(error.__traceback__)
        where = "%s:%d" % (os.path.basename(place[-1].filename), place[-1].lineno) if place else "?"
        message = "gradb: a fault of the agent, which is off from now on: %s: %s (%s)" % (
            type(error).__name__, error, where)
        print(message, file=sys.stderr)
        if self.handle:
            self.library.gradb_log(self.handle, _lib.text(message))
        if os.environ.get("GRADB_AGENT_TRACE"):
            traceback.print_exception(type(error), error, error.__traceback__)

    def _forked(self):
        self.dead = True
        self.looking = False
        self.handle = None

    # ---- what is on ----

    def _begin_step(self):
        self._begun = True
        self.graph.begin_step()
        self.library.gradb_step_begin(self.handle, self.step)
        connected = self.library.gradb_is_connected(self.handle)
        if not connected:
            self._recorded = False
        self._wants_record = connected and not self._recorded
        self._look(connected and (self._wants_record or self._armed.value != 0))

    def _look(self, on):
        if on and not self._mode_on:
            self._mode_on = True
            ops.push(self._mode)
        elif not on and self._mode_on:
            self._mode_on = not ops.pop(self._mode)
        elif on:
            self._mode.on = True
        self.looking = on

    def module_entered(self):
        """From the wrapper of modules: looks when the debugger began to want it in mid-step."""
        if self._armed.value and not self.looking and self._begun and not self.dead:
            if threading.get_ident() == self._thread:
                self._look(True)

    def _enter(self, phase):
        if phase != self._phase:
            self.flush()
            self._phase = phase
            self.library.gradb_enter(self.handle, phase)

    # ---- parameters ----

    @guarded
    def add_module(self, module, name):
        """Parameters and buffers of a root module become nodes, and so do the gradients."""
        for path, parameter in module.named_parameters():
            self._add_parameter(parameter, name + "/" + path.replace(".", "/"))
        for path, buffer in module.named_buffers():
            node = self.graph.add(name + "/" + path.replace(".", "/"), _lib.PARAMETER, operator="Buffer",
                                  outputs=(_shape_of(buffer),))
            if node is not None:
                self.graph.produced(buffer, node.id, 0, lasting=True)
                self.live.lasts(node.id, _holder(buffer))
        self.library.gradb_publish(self.handle)

    @guarded
    def discover(self, optimizer):
        """Finds the modules that the optimizer trains in the variables of the user's frames."""
        wanted = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        for frame in stack.user_frames():
            for names in (frame.f_locals, frame.f_globals):
                for name, module in list(names.items()):
                    if (isinstance(module, torch.nn.Module) and name != "self"
                            and any(id(parameter) in wanted for parameter in module.parameters())
                            and self.modules.name_of(module) is None):
                        self.modules.add_root(module, name)

    def use_optimizer(self, optimizer):
        """The steps of this optimizer are the training's."""
        self._main_optimizer = optimizer

    def _add_parameter(self, parameter, name):
        known = self.graph.producer(parameter)
        if known is not None:
            return self.graph.by_id[known[0]]
        node = self.graph.add(name, _lib.WEIGHT if parameter.requires_grad else _lib.PARAMETER,
                              operator="Parameter", outputs=(_shape_of(parameter),))
        if node is None:
            return None
        self.graph.produced(parameter, node.id, 0, lasting=True)
        self.live.lasts(node.id, _holder(parameter))
        self._parameters.append((parameter, name))
        return node

    def _add_gradient(self, parameter, name, inputs=()):
        """The node of a parameter's gradient: made when a backward pass gets there, so that it has its place
        in the order of execution."""
        gradient = self.graph.add(name + ".grad", _lib.GRADIENT, operator="Gradient", phase=_lib.BACKWARD,
                                  outputs=(_shape_of(parameter),), inputs=inputs)
        if gradient is not None:
            self.live.lasts(gradient.id, _grad_holder(parameter))
        return gradient

    # ---- operators ----

    def before_operator(self, args, kwargs):
        """What must be known of the arguments before the operator may overwrite them."""
        found = []
        ops.tensors_in(args, found)
        ops.tensors_in(kwargs, found)
        return found, [self.graph.producer(tensor) for tensor in found]

    @guarded
    def operator_ran(self, name, args, kwargs, result, before):
        """An operator has made `result`."""
        outputs = []
        ops.tensors_in(result, outputs)
        if not outputs or not self._begun:
            return
        self.looking = False
        try:
            if self._phase not in (_lib.FORWARD, _lib.BACKWARD):
                self._enter(_lib.FORWARD)
            scope = self.modules.path()
            node = self._operator_node(scope, name, before, outputs)
            if node is not None:
                self._ran(node, outputs)
        finally:
            self.looking = not self.dead

    def _operator_node(self, scope, name, before, outputs):
        full = self.graph.next_name(scope, name)
        node = self.graph.nodes.get(full)
        if node is None:
            trace = stack.frames(3)
            inputs = [made or self._foreign(tensor) for tensor, made in zip(*before)]
            node = self.graph.add(full, _lib.AUTO, operator=name, phase=self._phase or _lib.FORWARD,
                                  inputs=[made for made in inputs if made], stack=trace,
                                  outputs=[_shape_of(tensor) for tensor in outputs])
            if node is None:
                return None
        mark = backward.Mark(scope, name, node.id, node.stack)
        for slot, tensor in enumerate(outputs):
            self.graph.produced(tensor, node.id, slot)
            if tensor.requires_grad:
                backward.mark(tensor, mark)
        return node

    def _foreign(self, tensor):
        """The node of a tensor that came from outside: data, targets, constants."""
        if isinstance(tensor, torch.nn.Parameter):
            node = self._add_parameter(tensor, self.graph.next_name("", "parameter"))
        else:
            name = self.graph.next_name("input", modules.variable_of(tensor) or "tensor")
            node = self.graph.add(name, _lib.PARAMETER, operator="Input", outputs=(_shape_of(tensor),))
            if node is not None:
                self.graph.produced(tensor, node.id, 0)
                self.live.ran(node.id, self.step, (tensor,))
        return (node.id, 0) if node is not None else None

    @guarded
    def operator_raised(self, name, args, kwargs, error, before):
        """An operator raised into the user's code: the run stops there while all is still to be seen."""
        if not self._begun or getattr(error, "__gradb_told__", False):
            return
        self.looking = False
        try:
            scope = self.modules.path()
            full = self.graph.next_name(scope, name)
            inputs = [made or self._foreign(tensor) for tensor, made in zip(*before)]
            self.graph.add(full, _lib.AUTO, operator=name, phase=self._phase or _lib.FORWARD,
                           inputs=[made for made in inputs if made], stack=stack.frames(3))
            self.flush()
            error.__gradb_told__ = True
            self.library.gradb_stop(self.handle, _lib.text("%s: %s raised %s: %s" % (
                full, name, type(error).__name__, str(error).split("\n")[0])))
        finally:
            self.looking = not self.dead

    # ---- telling ----

    def _ran(self, node, tensors):
        """A node has run with these outputs (a tensor or None per slot)."""
        self.live.ran(node.id, self.step, tensors)
        if self.graph.grown or self._pending:
            self._pending.append((node, tensors))
            if len(self._pending) >= _BATCH or self._armed.value and self._single():
                self.flush()
            return
        self._tell(node, tensors)

    def _single(self):
        """Whether each new node is to be told at once: somebody steps from node to node."""
        return False

    def flush(self):
        """Shows new nodes to the debugger, then tells of those that ran."""
        if self.graph.grown:
            self.graph.grown = False
            self.library.gradb_sync(self.handle)
        pending, self._pending = self._pending, []
        for node, tensors in pending:
            self._tell(node, tensors)

    def _tell(self, node, tensors):
        wants = self.library.gradb_wants(self.handle, node.id)
        if wants & _lib.WANT_VALUE:
            array = (_lib.Tensor * len(tensors))(*[_describe(tensor) for tensor in tensors])
            self.library.gradb_did_with_slow(self.handle, node.id, array, len(tensors))
        elif wants:
            self.library.gradb_did_slow(self.handle, node.id)

    # ---- backward ----

    @guarded
    def backward_begins(self, tensors):
        """Whether the hooks of a backward pass are wanted."""
        if not self._begun:
            return False
        self._enter(_lib.BACKWARD)
        if self._armed.value and not self.looking:
            self._look(True)
        return self.looking

    @guarded
    def backward_ended(self):
        """The pass is over. Parameters that it did not reach have a gradient's node, too: one without value."""
        if self.looking:
            for parameter, name in self._parameters:
                if parameter.requires_grad:
                    self._add_gradient(parameter, name)
        self.flush()

    @guarded
    def backward_ran(self, own, grad_inputs, grad_outputs):
        """The hook of a grad_fn: its results are grad_inputs."""
        looking, self.looking = self.looking, False
        try:
            if own.variable is not None:
                self._gradient_ran(own)
            else:
                self._backward_node_ran(own, grad_inputs)
        finally:
            self.looking = looking and not self.dead

    def _backward_node_ran(self, own, grad_inputs):
        scope = "backward/" + own.mark.scope if own.mark and own.mark.scope else "backward"
        operator = own.mark.operator if own.mark else own.type
        name = self.graph.next_name(scope, operator)
        tensors = [tensor if isinstance(tensor, torch.Tensor) else None for tensor in grad_inputs]
        node = self.graph.nodes.get(name)
        if node is None:
            attrs = []
            if own.mark:
                attrs.append(("forward", self.graph.by_id[own.mark.node].name))
            node = self.graph.add(name, _lib.GRADIENT, operator=own.type, phase=_lib.BACKWARD, attrs=attrs,
                                  inputs=[(step.node.id, slot) for step, slot in own.incoming if step.node],
                                  outputs=[tensor is not None and _shape_of(tensor) for tensor in tensors],
                                  stack=own.mark.stack if own.mark else ())
        own.node = node
        if node is not None and tensors:
            self._ran(node, tensors)

    def _gradient_ran(self, own):
        made = self.graph.producer(own.variable)
        if made is None or own.variable.grad is None:
            return
        node = self._add_gradient(own.variable, self.graph.by_id[made[0]].name,
                                  [(step.node.id, slot) for step, slot in own.incoming if step.node])
        if node:
            self._ran(node, (own.variable.grad,))

    # ---- optimizers and steps ----

    @guarded
    def optimizer_begins(self, optimizer):
        """Before Optimizer.step."""
        if self._main_optimizer is None:
            self._main_optimizer = optimizer
        if self._begun:
            self._enter(_lib.OPTIMIZER)

    @guarded
    def optimizer_ended(self, optimizer):
        """After Optimizer.step: of the main one it ends the training's step."""
        if not self._begun or optimizer is not self._main_optimizer:
            return
        self.looking = False
        self.flush()
        if self._wants_record:
            self._recorded = True
        self.library.gradb_step_end(self.handle)
        self._phase = _lib.NO_PHASE
        self.step += 1
        self._begin_step()

    # ---- the source ----

    def _make_source(self):
        source = _lib.Source()
        self._held = []
        source.locate = _lib.LOCATE(self._locate)
        source.release = _lib.RELEASE(self._release)
        source.stats = _lib.STATS()
        source.keep = _lib.KEEP()
        source.command = _lib.COMMAND()
        return source

    def _locate(self, _ctx, number, slot, previous, ret, step, why):
        try:
            if previous:
                raise values.NoValue("its value of the step before was not kept")
            tensor, when = self.live.find(number, slot)
            tensor = tensor.detach()
            if tensor.device.type != "cpu":
                values.check(tensor)
                tensor = tensor.cpu()
            ret[0] = values.describe(tensor)
            step[0] = when
            self._held.append(tensor)
            return _lib.OK
        except values.NoValue as error:
            _lib.say_why(why, str(error))
            return error.answer
        except Exception as error:
            _lib.say_why(why, "%s: %s" % (type(error).__name__, error))
            return _lib.FAILED

    def _release(self, _ctx):
        self._held.clear()


def _describe(tensor):
    try:
        return values.describe(tensor) if tensor is not None else _lib.Tensor(_lib.FLOAT32, 0, None, None, None)
    except values.NoValue:
        return _lib.Tensor(_lib.FLOAT32, 0, None, None, None)


def _shape_of(tensor):
    try:
        return values.describe(tensor, data=False)
    except values.NoValue:
        return None


def _holder(tensor):
    return lambda: tensor


def _grad_holder(parameter):
    return lambda: parameter.grad


def _number(name, default):
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else default


def _device_name():
    if torch.cuda.is_available() and "LOCAL_RANK" in os.environ:
        return "cuda:" + os.environ["LOCAL_RANK"]
    return "cuda" if torch.cuda.is_available() else "cpu"
