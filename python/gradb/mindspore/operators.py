# SPDX-License-Identifier: MIT
"""Steps whose operators are watched.

In PyNative mode MindSpore dispatches each operator of the forward pass to our mode, and the nodes of the backward pass,
which run in C++, are hooked when the forward pass has ended. Needs MsDispatchMode, MindSpore 2.9.

A compiled call (a cell in graph mode, a function with @jit) is rehearsed: it runs once uncompiled, with all of this,
and whatever it has changed is restored. Then it runs compiled, as it would have without us, so that its results and
those of all later steps are the same bit for bit. What is shown of the inside of that step are the values of the
rehearsal.

The outputs of a watched step are held until its end, so that they can be read there."""
import gc
import os
import time

import mindspore
from mindspore import Parameter, Tensor, nn

from .. import _lib
from . import hooks, stack, values
from .guard import guarded

MODE = getattr(mindspore, "MsDispatchMode", None)
_HELD_BYTES = 1 << 30   # of outputs; more are forgotten, the oldest first
_NOT_OPERATORS = frozenset(("typeof", "IsShapeUnKnown", "IsDimUnKnown"))
_JIT = "MS_JIT"


class Looking:
    """Watches the operators of one step, from `begin` to `end`. rehearses: a compiled call is rehearsed now; rehearsal:
    seconds of the processor that rehearsals took; off: not 0 in moments of our own."""

    def __init__(self, agent):
        self.agent = agent
        self.outputs = {}      # node number -> tuple of tensors, None for what is not a tensor
        self._path = ""        # of the cell that runs
        self._phase = _lib.FORWARD
        self._counts = {}      # (scope, operator) -> how many ran in this step
        self._made = {}        # address -> (Node, slot)
        self._ran = []         # forward nodes in order: (operator, Node)
        self._held = 0
        self._mode = _mode_of(self)
        self._pushed = False
        self.rehearses = False
        self.rehearsal = 0.0
        self.off = 0
        self._handles = []

    # ---- the step ----

    def begin(self, called):
        """An outermost call begins. From here on operators are dispatched to us, unless calls are compiled."""
        self._path = self.agent.parameters.path_of(called) or ""
        if not self._pushed and not hooks.is_graph_mode():
            self._pushed = True
            _push(self._mode)

    def left(self):
        """An outermost call has returned."""
        self._path = ""

    def end(self):
        """Watches no longer. The outputs stay until `forget`."""
        if self._pushed:
            self._pushed = False
            _pop()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def rehearse(self, run, called):
        """Calls run(), which is compiled code in Python, uncompiled, and restores what it changed."""
        begun = time.process_time()
        before = mindspore.get_context("mode"), os.environ.get(_JIT), self._pushed
        saved = _Saved(self.agent, called)
        self.rehearses = True
        try:
            if before[0] != mindspore.PYNATIVE_MODE:
                mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
            os.environ[_JIT] = "0"
            if not before[2]:
                _push(self._mode)
            run()
        except Exception as error:
            self.agent.say("its operators are not seen in step %d, which cannot run uncompiled: %s: %s" % (
                self.agent.steps.step, type(error).__name__, str(error).strip().split("\n", 1)[0]))
        finally:
            if not before[2]:
                _pop()
            if before[1] is None:
                os.environ.pop(_JIT, None)
            else:
                os.environ[_JIT] = before[1]
            if before[0] != mindspore.PYNATIVE_MODE:
                mindspore.set_context(mode=before[0])
            saved.restore()
            self.rehearses = False
            self.rehearsal += time.process_time() - begun

    def forget(self):
        """Releases the outputs."""
        self.outputs.clear()
        self._made.clear()
        self._ran = []
        self._held = 0

    # ---- cells ----

    def run_cell(self, original, cell, args, kwargs):
        """Runs a cell: its path is the scope of what runs inside."""
        path = self.agent.parameters.path_of(cell)
        before = self._path
        if path is not None:
            self._path = path
        try:
            return original(cell, *args, **kwargs)
        finally:
            self._path = before

    # ---- operators ----

    def dispatch(self, function, args, kwargs):
        """Runs an operator for the program; see __ms_dispatch__."""
        try:
            result = function(*args) if not kwargs else function(*args, **kwargs)
            if not self.off:
                _wait(result)
        except Exception as error:
            if not self.off and not self.agent.dead:
                self._raised_now(function.name, args, error)
            raise
        if not self.off and not self.agent.dead and function.name not in _NOT_OPERATORS:
            self.off += 1
            try:
                self._ran_now(function.name, args, result)
            finally:
                self.off -= 1
        return result

    @guarded
    def _ran_now(self, operator, args, result):
        if self.agent.hooks.optimizing:
            return  # its nodes are the updates, reported when it has returned
        if self._phase == _lib.BACKWARD:
            return  # reported by the hooks of the backward nodes
        outputs = _tensors(result)
        if not any(output is not None for output in outputs):
            return
        self.agent.steps.enter(_lib.FORWARD)
        node = self._node(self._path, operator, outputs, _lib.FORWARD, self._edges(_inputs(args)))
        if node is not None:
            self._ran.append((operator, node))
            self._report(node, outputs)

    @guarded
    def _raised_now(self, operator, args, error):
        node = None
        if not self.agent.hooks.optimizing and self._phase == _lib.FORWARD:
            self.agent.steps.enter(_lib.FORWARD)
            node = self._node(self._path, operator, (None,), _lib.FORWARD, self._edges(_inputs(args)))
        self.agent.exceptions.raised(error, node)

    def _node(self, scope, operator, outputs, phase, edges, suffix=""):
        """The node of the next such operator in its scope."""
        count = self._counts[(scope, operator)] = self._counts.get((scope, operator), -1) + 1
        name = (scope + "/" if scope else "") + operator + ("_%d" % count if count else "") + suffix
        return self._named(name, operator, outputs, phase, edges)

    def _named(self, name, operator, outputs, phase, edges):
        graph = self.agent.graph
        node = graph.nodes.get(name)
        if node is None:
            kind = _lib.GRADIENT if phase == _lib.BACKWARD else _lib.AUTO
            node = graph.add(name, kind, operator, phase=phase, inputs=edges,
                             outputs=[values.shape_of(output) if output is not None else None for output in outputs],
                             stack=stack.frames(4))
            if node is not None and self.agent.words.armed:
                self.agent.library.gradb_sync(self.agent.handle)
        else:
            graph.set_inputs(node, edges)
        return node

    def _edges(self, tensors):
        found = []
        for tensor in tensors:
            if isinstance(tensor, Parameter):
                node = self.agent.parameters.node_of(tensor)
                if node is not None:
                    found.append((node, 0))
                continue
            made = self._made.get(_address(tensor))
            if made is not None:
                found.append(made)
        return found

    def _report(self, node, outputs):
        agent = self.agent
        node.step = agent.steps.step
        self.outputs[node.id] = outputs
        for slot, output in enumerate(outputs):
            if output is not None:
                address = _address(output)
                if address:
                    self._made[address] = (node, slot)
                    self._held += output.nbytes
        while self._held > _HELD_BYTES and len(self.outputs) > 1:
            self._forget_oldest()
        if agent.words.armed and agent.library.gradb_wants(agent.handle, node.id):
            structs, held = _structs(outputs)
            agent.library.gradb_did_with_slow(agent.handle, node.id, structs, len(outputs))
            del held

    def _forget_oldest(self):
        number = next(iter(self.outputs))
        for output in self.outputs.pop(number):
            if output is not None:
                self._held -= output.nbytes
                self._made.pop(_address(output), None)

    # ---- the backward pass ----

    def forward_ended(self, output):
        """Hooks the nodes of the backward pass from the output on."""
        root = getattr(values.find_tensor(output), "_grad_node", None)
        if root is None:
            return
        nodes = _walk(root)
        names = self._names_of(nodes)
        leaves = self._leaves()
        for node, edges in nodes:
            self._handles.append(node.register_hook(self._hook(node, names, edges, leaves)))

    def _names_of(self, nodes):
        """Unique id of a backward node -> its name: that of the forward operator whose gradients it computes, which is
        the one of the same name and place in the order."""
        waiting = {}
        for operator, node in self._ran:
            waiting.setdefault(operator, []).append(node)
        names = {}
        for node, _ in sorted(nodes, key=lambda item: item[0]._sequence_nr()):
            own = node.name()
            forward = waiting.get(own) or waiting.get(own + "Ext")
            if forward:
                names[node._unique_id()] = "backward/" + forward.pop(0).name
        count = {}
        for node, _ in nodes:
            if node._unique_id() not in names:
                number = count[node.name()] = count.get(node.name(), -1) + 1
                names[node._unique_id()] = "backward/%s%s" % (node.name(), "_%d" % number if number else "")
        return names

    def _leaves(self):
        """Unique id of a leaf -> the node of the gradient of its parameter."""
        found = {}
        for known, _ in self.agent.parameters.living():
            for reference, _, gradient, _ in known.updates:
                leaf = getattr(reference(), "_grad_node", None)
                if leaf is not None and gradient is not None:
                    found[leaf._unique_id()] = gradient
        return found

    def _hook(self, node, names, edges, leaves):
        name, operator = names[node._unique_id()], node.name()
        self._sources = getattr(self, "_sources", {})
        for index, (target, _) in enumerate(edges):
            if target is not None:
                self._sources.setdefault(target._unique_id(), []).append((name, index))
        own = node._unique_id()

        def hook(grad_inputs, _grad_outputs):
            if not self.agent.dead and not self.off:
                self.off += 1
                try:
                    self._went_back(own, name, operator, grad_inputs)
                finally:
                    self.off -= 1
        return hook

    @guarded
    def _went_back(self, own, name, operator, gradients):
        if not isinstance(gradients, (tuple, list)):
            gradients = (gradients,)
        outputs = tuple(gradient if isinstance(gradient, Tensor) else None for gradient in gradients)
        nodes = self.agent.graph.nodes
        edges = [(nodes[source], slot) for source, slot in self._sources.get(own, ()) if source in nodes]
        self.agent.steps.enter(_lib.BACKWARD)
        node = self._named(name, operator, outputs, _lib.BACKWARD, edges)
        if node is not None:
            self._report(node, outputs)

    def backward_begins(self):
        """The backward pass begins."""
        self._phase = _lib.BACKWARD

    def backward_ended(self):
        """It has ended."""
        self._phase = _lib.FORWARD


class _Saved:
    """The values of all parameters and buffers, among them the state of optimizers, normalizations and random
    generators."""

    def __init__(self, agent, called):
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
        self._values = [(parameter, *values.copy_of(parameter)) for parameter in found.values()
                        if not getattr(parameter, "has_init", False)]

    def restore(self):
        """Restores all of them in place: compiled code knows their addresses."""
        for parameter, struct, memory in self._values:
            values.write(parameter, struct, memory)


def _mode_of(looking):
    """An instance of MsDispatchMode, whose class is made here because MindSpore may not have it."""
    class OperatorMode(MODE):
        def __ms_dispatch__(self, func, args, kwargs=None):
            return looking.dispatch(func, args, kwargs)
    return OperatorMode()


def _stack():
    from mindspore import _c_expression
    return _c_expression._DispatchGuardStack


def _push(mode):
    _stack().push(mode)


def _pop():
    _stack().pop()


def _walk(root):
    """(backward node, its next_functions) of all nodes from `root` on that are not leaves, each once."""
    found, seen, waiting = [], set(), [root]
    while waiting:
        node = waiting.pop()
        if node is None or node._unique_id() in seen or node.is_leaf():
            continue
        seen.add(node._unique_id())
        edges = node.next_functions
        found.append((node, edges))
        waiting.extend(edge[0] for edge in edges)
    return found


def _inputs(args):
    """The tensors among an operator's arguments; a Primitive's are in a tuple."""
    for arg in args:
        if isinstance(arg, Tensor):
            yield arg
        elif isinstance(arg, (tuple, list)):
            yield from _inputs(arg)


def _tensors(result):
    """The outputs of an operator: a tensor or None per slot."""
    if isinstance(result, Tensor):
        return (result,)
    if isinstance(result, (tuple, list)):
        return tuple(item if isinstance(item, Tensor) else None for item in result)
    return ()


def _wait(result):
    """Waits for an operator, so that its errors are raised where it is called."""
    for output in _tensors(result):
        if output is not None:
            values.address_of(output)


def _address(tensor):
    try:
        return values.address_of(tensor)
    except (RuntimeError, AttributeError):
        return 0


def _structs(outputs):
    """The array for gradb_did_with, and what keeps it alive."""
    array, held = (_lib.Tensor * len(outputs))(), []
    for slot, output in enumerate(outputs):
        try:
            if output is not None:
                struct, memory = values.describe(output)
                array[slot] = struct
                held.append((struct, memory))
        except (values.NoValue, RuntimeError):
            pass
    return array, held
