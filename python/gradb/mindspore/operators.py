# SPDX-License-Identifier: MIT
"""Steps whose operators are watched.

In PyNative mode MindSpore dispatches each operator of the forward pass to our mode, and the nodes of the backward pass,
which run in C++, are hooked when the forward pass has ended. Before 2.9 nothing is dispatched: there the cells are the
nodes of the forward pass.

A compiled call (a cell in graph mode, a function with @jit) is rehearsed uncompiled, with all of this: rehearsal.py.
Where it cannot be, taps.py looks into the compiled code.

The outputs of a watched step are held until its end, so that they can be read there."""
import contextlib
import os
import time

import mindspore
from mindspore import Parameter, Tensor, nn

from .. import _lib
from . import cells, hooks, rehearsal, stack, values
from .guard import guarded
from .outside import EVALUATION

MODE = getattr(mindspore, "MsDispatchMode", None)
_HELD_BYTES = 1 << 30   # of outputs; more are forgotten, the oldest first
_MAX_EXITS = 256
_HAS_IDENTITIES = hasattr(getattr(mindspore._c_expression, "BackwardNodePy", None), "_unique_id")
_NOT_OPERATORS = frozenset(("typeof", "IsShapeUnKnown", "IsDimUnKnown"))
_WRITES_ONLY = {"BatchNorm": 1, "LSTM": 3, "Empty": 0, "EmptyLike": 0, "NewEmpty": 0}  # other outputs have no value
_OVER_AXES = frozenset(("Softmax", "LogSoftmax", "LogSoftmaxExt", "ReduceMean", "MeanExt", "ReduceSum", "SumExt"))


class Looking:
    """Watches the operators of one step, from `begin` to `end`. rehearses: a compiled call is rehearsed now; rehearsal:
    seconds of the processor that rehearsals took; off: not 0 in moments of our own; only_times: nothing is wanted but
    the times of operators, so that nothing is rehearsed."""

    def __init__(self, agent, only_times=False):
        self.agent = agent
        self.only_times = only_times
        self.outputs = {}      # node number -> tuple of tensors, None for what is not a tensor
        self._path = ""        # of the cell that runs
        self._site = None      # where the outermost such cell was called, see stack.site
        self.called_at = 0     # where the outermost call of all was made
        self._phase = _lib.FORWARD
        self._counts = {}      # (scope, operator, site) -> how many ran in this step, or in this call of an evaluation
        self._called = set()   # ids of what was called in this pass of an evaluation
        self._returned = {}    # address -> gradient that a backward pass has returned
        self._made = {}        # address -> {operator: (Node, slot)}, the latest last; views share an address
        self._parameters = None  # address -> (Node, 0), once it is needed
        self._of_gradient = {}  # unique id of a backward node -> Node of the operator whose gradients it computes
        self._sources = {}     # unique id of a backward node -> (name of one that feeds it, slot, its slots)
        self._slots = {}       # name of a Node that ran in this step -> its number of outputs
        self._reached = set()  # unique ids of the leaves that the backward passes reach
        self._passes = 0
        self._unknown = False  # a backward pass whose beginning is unknown
        self.exits = {}        # name of a Node -> (function that took its result out of the graph, "FILE:LINE")
        self.loss = None       # Node of the operator that the last backward pass begins at
        self._ran = []         # forward nodes in order: (operator, Node)
        self._held = 0
        self.cells = cells.Cells(agent)
        self._cell_of = {}     # unique id of a backward node -> path of the cell in which its operator ran
        self._mode = _mode_of(self) if MODE is not None else None
        self._pushed = False
        self._rests = False    # during a backward pass, whose operators are reported by hooks
        self._above = []       # modes of the program's that were entered since
        self._unqueued = False  # gradb has turned the queue of operators off
        self.batch = 0         # first length of the first tensor that the outermost cell was given
        self.made_forward = 0  # bytes of the outputs of forward operators
        self._steps_back = []  # (unique id of a backward node, its name), in the order of the pass
        self._went = set()     # unique ids of those that have run
        self.rehearses = False
        self.rehearsal = 0.0
        self.rehearsed = ()    # forward nodes of the rehearsal in this outermost call
        self.off = 0
        self._handles = []

    # ---- the step ----

    def begin(self, called):
        """An outermost call begins. From here on operators are dispatched to us, unless calls are compiled."""
        if self.agent.happenings.evaluates:
            if id(called) in self._called:
                self.new_pass()
            self._called.add(id(called))
        self._path = self._scope_of(called) or ""
        self.called_at = stack.site(2)
        self._site = self.called_at if self._path else None
        self.rehearsed = ()
        if not self._pushed and not hooks.is_graph_mode():
            self._pushed = True
            self._push()
            self._unqueue()

    def new_pass(self):
        """An evaluation continues with another batch, or is over: what runs from here on are the same nodes again."""
        self._counts, self._called = {}, set()
        self._made.clear()
        self.agent.outside.new_pass()

    def left(self):
        """An outermost call has returned."""
        self._path, self._site = "", None

    def end(self):
        """Watches no longer. The outputs stay until `forget`."""
        self._rests = False
        if self._pushed:
            self._pushed = False
            for _ in self._above:
                _stack().pop()
            self._pop()
            for mode in self._above:
                _stack().push(mode)
            self._above = []
        if self._unqueued:
            self._unqueued = False
            hooks.api._pynative_executor.enable_frontend_and_bprop_pipeline()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _unqueue(self):
        """MindSpore passes operators from thread to thread, so that Python can run ahead. Each operator is waited for
        now, so that this only costs time."""
        disable = getattr(hooks.api._pynative_executor, "disable_frontend_and_bprop_pipeline", None)
        if disable is not None and not self._unqueued and values.is_in_host_memory():
            self._unqueued = not disable()  # it was off: by the script

    def _push(self):
        if self._mode is not None:
            _stack().push(self._mode)

    def _pop(self):
        if self._mode is not None:
            _stack().pop()

    def entered(self, mode):
        """The program has entered a mode of its own."""
        if self._pushed:
            self._above.append(mode)

    def leave(self, leave):
        """The program leaves the mode that it entered last, which MindSpore takes to be the last one of all."""
        if self._above:
            self._above.pop()
            return leave()
        if not self._pushed:
            return leave()
        self._pop()
        try:
            return leave()
        finally:
            self._push()

    def look_into(self, called, uncompiled, compiled):
        """Looks into the call compiled(), which is uncompiled() in Python, and returns what is to be called then: its
        tapped form where this is the only one that can be run."""
        changed = rehearsal.changed_by(self.agent, called)
        why_not, taps = rehearsal.why_not(changed), self.agent.taps
        if why_not:
            return taps.instead_of(called, compiled, why_not)
        if taps.why_not(called) is None:
            counts = dict(self._counts)
            error = self._rehearse(lambda: self._in_python(called, uncompiled), changed)
            if error is None:
                return compiled
            taps.need(called, error)
            self._counts = counts
        self._rehearse(lambda: taps.rehearse(called, compiled), changed)
        return compiled

    def _rehearse(self, run, changed):
        """Calls run(), which changes those tensors. Returns what it raised, or None."""
        self.rehearses = True
        try:
            with rehearsal.restored(changed):
                run()
        except Exception as error:
            return error
        finally:
            self.rehearses = False
        return None

    def _in_python(self, called, run):
        """Calls run(), which is `called` in Python: nothing in it is compiled."""
        begun, ran, pushed = time.process_time(), len(self._ran), self._pushed
        with rehearsal.uncompiled():
            try:
                if not pushed:
                    self._push()
                self._unqueue()
                self.agent.scaler.rehearsed(called, run())
                self.rehearsed = [node for _, node in self._ran[ran:]]
            finally:
                if not pushed:
                    self._pop()
        self.rehearsal += time.process_time() - begun

    @contextlib.contextmanager
    def own_moment(self):
        """Operators in it are not the program's."""
        self.off += 1
        try:
            yield
        finally:
            self.off -= 1

    def forget(self):
        """Releases the outputs."""
        self.outputs.clear()
        self._made.clear()
        self._returned.clear()
        self._ran = []
        self._held = 0

    # ---- cells ----

    @guarded
    def _scope_of(self, called):
        is_cell = isinstance(called, nn.Cell) and not isinstance(called, hooks.KINDS)
        return self.agent.parameters.scope_of(called) if is_cell else None

    def run_cell(self, original, cell, args, kwargs):
        """Runs a cell: its path is the scope of what runs inside."""
        path = self._scope_of(cell)
        if not self.batch and self.agent.ooms.on:
            self.batch = next((tensor.shape[0] for tensor in inputs(args) if tensor.shape), 0)
        before, site = self._path, self._site
        if path is not None:
            self._path = path
            self._site = stack.site(2) if site is None else site
        try:
            result = original(cell, *args, **kwargs)
            if MODE is None and path is not None and not self.off:
                addresses = _computed(_tensors(result))
        except Exception as error:
            if MODE is None and path is not None and not self.off:
                self._raised_now(type(cell).__name__, (), error)
            raise
        finally:
            self._path, self._site = before, site
        if MODE is None and path is not None and not self.off and addresses:
            with self.own_moment():
                self._cell_ran(cell, path, (*args, *kwargs.values()), _tensors(result), addresses)
        return result

    @guarded
    def _cell_ran(self, cell, path, args, outputs, addresses):
        """The only operators are cells: before MindSpore 2.9."""
        given = [tensor for tensor in inputs(args) if not isinstance(tensor, Parameter)]
        read, made = [_key(tensor) for tensor in given], [_key(output) for output in outputs]
        self.agent.steps.enter(_lib.FORWARD)
        edges, name = self.cells.read(cell, path, read, made), self.next_name(path, type(cell).__name__)
        for node, tensor in self.cells.inputs(name, given, stack.frames(4)):
            edges.append((node, 0))
            self._report(node, (tensor,), [_address(tensor)])
        node = self._named(name, type(cell).__name__, outputs, _lib.FORWARD, edges)
        if node is not None:
            self.cells.ran(node, path, read, made)
            self._claim(path, args, outputs)
            self._report(node, outputs, addresses)

    def _claim(self, path, args, outputs):
        """Notes the backward nodes of a cell: those between its outputs and its inputs that no cell inside has."""
        known = {_identity(back) for back in map(_back_of, inputs(args)) if back is not None}
        for back in map(_back_of, outputs):
            for node, _ in _walk(back, known)[0] if back is not None else ():
                self._cell_of.setdefault(_identity(node), path)

    # ---- operators ----

    def dispatch(self, function, args, kwargs):
        """Runs an operator for the program; see __ms_dispatch__."""
        if self.off:
            return function(*args) if not kwargs else function(*args, **kwargs)
        given, outputs = self.agent.overflow.given(args) if self.agent.overflow is not None else (), ()
        timing = self.agent.timing if self.agent.timing.on else None
        try:
            began = timing.operator_begins(args) if timing else 0.0
            result = function(*args) if not kwargs else function(*args, **kwargs)
            outputs = _tensors(result)
            addresses = _computed(outputs)
            if timing:
                timing.took(began, outputs)
        except Exception as error:
            if not self.agent.dead:
                self._raised_now(function.name, args, error, outputs)
            raise
        if addresses and not self.agent.dead and function.name not in _NOT_OPERATORS:
            self.off += 1
            try:
                self._ran_now(function.name, args, given, outputs, addresses)
            finally:
                self.off -= 1
        return result

    @guarded
    def _ran_now(self, operator, args, given, outputs, addresses):
        if self.agent.hooks.optimizing:
            return  # its nodes are the updates, reported when it has returned
        if self._phase == _lib.BACKWARD:
            return  # reported by the hooks of the backward nodes
        outputs = outputs[:_WRITES_ONLY.get(operator, len(outputs))]
        if not outputs:
            return
        self.agent.steps.enter(_lib.FORWARD)
        name = self.next_name(self._path, operator)
        node = self._named(name, operator, outputs, _lib.FORWARD, self._edges(inputs(args), name),
                           _attrs(operator, args))
        if node is not None:
            self.agent.timing.ran(node.id)
            self._ran.append((operator, node))
            self.made_forward += sum(output.nbytes for output in outputs if output is not None)
            self._report(node, outputs, addresses[:len(outputs)])
            if self.agent.overflow is not None:
                self.agent.overflow.operator_ran(node, args, given, outputs)

    @guarded
    def _raised_now(self, operator, args, error, outputs=()):
        node, asked = None, sum(output.nbytes for output in outputs if output is not None)
        if self.goes_back():
            self.agent.ooms.failed(error, self.next_back() or operator, list(inputs(args)), asked=asked)
        if not self.agent.hooks.optimizing and self._phase == _lib.FORWARD:
            self.agent.steps.enter(_lib.FORWARD)
            name = self.next_name(self._path, operator)
            node = self._named(name, operator, (None,), _lib.FORWARD, self._edges(inputs(args), name))
            if node is not None:
                self.agent.graph.publish()
                self.agent.ooms.failed(error, node.name, list(inputs(args)), node, asked)
        self.agent.exceptions.raised(error, node)

    def goes_back(self):
        """Whether a backward pass runs."""
        return self._phase == _lib.BACKWARD

    def next_back(self):
        """The name of the backward node that runs: the only one that has not run though all that lead to it have. None:
        there are several."""
        done = {name for own, name in self._steps_back if own in self._went}
        ready = [name for own, name in self._steps_back if own not in self._went
                 and all(source in done for source, _, _ in self._sources.get(own, ()))]
        return ready[0] if len(ready) == 1 else None

    def next_name(self, scope, operator, site=None):
        """The name of the next such operator in its scope. site: 0 where the user's code does not call it."""
        if site is None:
            site = self._site if self._site is not None else stack.site(2)
        if self.agent.happenings.evaluates:
            scope = (EVALUATION + "/" + scope).rstrip("/")
        key = scope, operator, site
        ordinal = self._counts[key] = self._counts.get(key, -1) + 1
        return self.agent.graph.name_of(scope, operator, site, ordinal)

    def _named(self, name, operator, outputs, phase, edges, attrs=(), lines=None):
        graph = self.agent.graph
        node = graph.nodes.get(name)
        if node is None:
            kind = _lib.GRADIENT if phase == _lib.BACKWARD else _lib.AUTO
            node = graph.add(name, kind, operator, phase=phase, inputs=edges, attrs=attrs,
                             outputs=[values.shape_of(output) if output is not None else None for output in outputs],
                             stack=stack.frames(4) if lines is None else lines)
            if node is not None and self.agent.words.armed:
                self.agent.library.gradb_sync(self.agent.handle)
        else:
            graph.set_inputs(node, edges)
        return node

    def _edges(self, tensors, name):
        """What the operator whose node has that name reads."""
        found = []
        for number, tensor in enumerate(tensors):
            if isinstance(tensor, Parameter):
                node = self.agent.parameters.node_of(tensor)
                if node is not None:
                    found.append((node, 0))
                continue
            made = self.maker_of(tensor) or self._unmade(tensor, (name, number))
            if made is not None:
                found.append(made)
        return found

    def _unmade(self, tensor, place):
        """(Node, 0) of a tensor that no operator was seen to make, or None: it comes from outside, from a backward pass
        whose last operator is unknown, or from an operator that MindSpore does not report."""
        address, back = _address(tensor), getattr(tensor, "_grad_node", None)
        if not address:
            return None
        while back is not None and back.name() == "Contiguous" and back.next_functions:  # a copy
            back = back.next_functions[0][0]
            made = self._forward_of(back) if back is not None else None
            if made is not None:
                return made, 0
        if address in self._returned:
            name = self.next_name("backward", "Gradient", 0)
            node = self._named(name, "Gradient", (tensor,), _lib.BACKWARD, (), lines=())
        elif back is None or back.is_leaf():
            node = self.agent.outside.node_of(tensor, address, place)
        else:
            node = self._unseen(tensor, back)
        if node is None:
            return None
        self._report(node, (tensor,), [address])
        return node, 0

    def _forward_of(self, back):
        """The node of the operator that a node of the backward pass belongs to: where no later operator has shown which
        one that is, the last one that has read the same. None: unknown."""
        of = self._of_gradient.get(_identity(back))
        if of is not None:
            return of
        read = {self._of_gradient.get(_identity(maker)) for maker, _ in back.next_functions if maker is not None}
        read.discard(None)
        if not read:
            return None
        names = back.name(), back.name() + "Ext"
        return next((node for operator, node in reversed(self._ran)
                     if operator in names and read <= {maker for maker, _ in node.edges}), None)

    def _unseen(self, tensor, back):
        """The node of an operator that was not seen, by the node of its backward pass. What it reads is known if
        gradients go back to all of it."""
        sources = [self._forward_of(source) if source is not None else None for source, _ in back.next_functions]
        sources = [] if None in sources else sources
        scope = os.path.commonpath([self._path or "."] + [source.name.rpartition("/")[0] or "." for source in sources])
        operator = back.name() if back.name().isidentifier() else "Compiled"
        node = self._named(self.next_name(scope.strip("."), operator), operator, (tensor,), _lib.FORWARD,
                           [(source, 0) for source in sources], lines=())
        if node is not None and _identity(back) is not None:
            self._of_gradient[_identity(back)] = node
        return node

    def maker_of(self, tensor):
        """(Node, slot) that made a tensor, or None; also notes its backward node."""
        address = _address(tensor)
        makers = self._made.get(address)
        back = getattr(tensor, "_grad_node", None)
        if not makers or back is not None and back.is_leaf():
            return self._held_parameters().get(address) if address else None
        if back is None:
            return next(reversed(makers.values()))
        name = back.name()
        made = makers.get(name) or makers.get(name + "Ext")
        if made is None:
            return next(reversed(makers.values()))
        self._of_gradient[_identity(back)] = made[0]
        return made

    @guarded
    def left_by(self, name, tensor, caller):
        """The program has turned the tensor into a number or an array."""
        if stack.is_users(caller):
            with self.own_moment():
                made = self.maker_of(tensor)
            if made is not None and len(self.exits) < _MAX_EXITS:
                self.exits.setdefault(made[0].name, (name.strip("_"), stack.spot(stack.frames(3))))

    def _held_parameters(self):
        """Address -> (Node, 0) of all parameters: some operators are given a plain tensor of the same memory."""
        if self._parameters is None:
            self._parameters = {_address(parameter): (node, 0) for parameter, node in self.agent.parameters.all()}
        return self._parameters

    def _report(self, node, outputs, addresses):
        agent, size = self.agent, 0
        node.step = agent.steps.step
        self._slots[node.name] = len(outputs)
        for slot, address in enumerate(addresses):
            if outputs[slot] is not None:
                size += outputs[slot].nbytes
            if address:
                makers = self._made.setdefault(address, {})
                makers.pop(node.operator, None)
                makers[node.operator] = (node, slot)
        self.hold(node, outputs, size)
        if agent.words.armed and agent.library.gradb_wants(agent.handle, node.id):
            structs, held = _structs(node, outputs, addresses)
            agent.timing.call_waiting(agent.library.gradb_did_with_slow, agent.handle, node.id, structs, len(outputs))
            del held

    def hold(self, node, outputs, size):
        """Holds the outputs of a node until the end of the step, unless memory is short. size: bytes that are new."""
        self.outputs[node.id] = outputs
        self._held += size
        while self._held > _HELD_BYTES and len(self.outputs) > 1:
            self._forget_oldest()

    def _forget_oldest(self):
        number = next(iter(self.outputs))
        self.cells.forget(number)
        for output in self.outputs.pop(number):
            if output is not None:
                self._held -= output.nbytes
                self._made.pop(_address(output), None)

    # ---- the backward pass ----

    def forward_ended(self, output):
        """Hooks the nodes of the backward pass from the output on."""
        tensor = values.find_tensor(output)
        root = getattr(tensor, "_grad_node", None)
        if root is None:
            self._unknown = True
            return
        made = self.maker_of(tensor)
        self.loss = made[0] if made is not None else self.loss
        self._passes += 1
        nodes, leaves = _walk(root)
        self._reached |= leaves
        names = self._names_of(nodes)
        for node, edges in nodes:
            name = names[_identity(node)]
            self._steps_back.append((_identity(node), name))
            for index, (target, _) in enumerate(edges):
                if target is not None and _identity(target) is not None:
                    self._sources.setdefault(_identity(target), []).append((name, index, len(edges)))
            self._handles.append(node.register_hook(self._hook(node, name, node is root)))

    def _names_of(self, nodes):
        """Unique id of a backward node -> its name: that of the forward operator whose gradients it computes. Where no
        later operator shows which one that is, it is known if the numbers of both are equal."""
        taken = set(self._of_gradient.values())
        forward, backward = {}, {}
        for operator, node in self._ran:
            if node not in taken:
                forward.setdefault(operator, []).append(node)
        for node, _ in sorted(nodes, key=lambda item: item[0]._sequence_nr()):
            if _identity(node) not in self._of_gradient:
                backward.setdefault(node.name(), []).append(node)
        for operator, left in backward.items():
            found = forward.get(operator) or forward.get(operator + "Ext") or ()
            if len(found) == len(left):
                self._of_gradient.update((_identity(node), of) for node, of in zip(left, found))
        names = {}
        for node, _ in sorted(nodes, key=lambda item: item[0]._sequence_nr()):
            of = self._of_gradient.get(_identity(node))
            if of is not None:
                names[_identity(node)] = "backward/" + of.name
                continue
            place = self._cell_of.get(_identity(node), "")
            names[_identity(node)] = self.next_name("backward" + ("/" + place if place else ""), node.name(), 0)
        return names

    def _hook(self, node, name, begins):
        own, operator = _identity(node), node.name() + "Backward"
        of = self._of_gradient.get(own)
        attrs = [("forward", of.name)] if of is not None else []
        if begins:
            attrs.append(("begins", "backward()"))

        def hook(grad_inputs, grad_outputs):
            if not self.agent.dead and not self.off:
                self.off += 1
                try:
                    if self.agent.timing.on:
                        self.agent.timing.hook_begins(_gradients(grad_inputs))
                    self._went_back(own, name, operator, attrs, (_gradients(grad_inputs), _gradients(grad_outputs)))
                finally:
                    self.off -= 1
                    self.agent.timing.hook_ended()
        return hook

    @guarded
    def _went_back(self, own, name, operator, attrs, gradients):
        outputs, received = gradients
        self._went.add(own)
        self.agent.steps.enter(_lib.BACKWARD)
        node = self._named(name, operator, outputs, _lib.BACKWARD, self._fed_by(own), attrs)
        if node is not None:
            self.agent.timing.ran(node.id)
            self._report(node, outputs, [_address(output) if output is not None else 0 for output in outputs])
            if self.agent.overflow is not None:
                self.agent.overflow.backward_ran(node, self._of_gradient.get(own), (outputs, received))

    def _fed_by(self, own):
        nodes, found = self.agent.graph.nodes, []
        for source, slot, count in self._sources.get(own, ()):
            made = self._slots.get(source, 0)
            if made == 1 or made == count:  # compiled code gives only gradients that are wanted, without their number
                found.append((nodes[source], slot if made == count else 0))
        return found

    def optimizer_begins(self, known):
        """The gradients of its parameters come from the backward nodes that lead to them."""
        for reference, _, gradient, _ in known.updates:
            leaf = getattr(reference(), "_grad_node", None)
            edges = self._fed_by(_identity(leaf)) if leaf is not None and gradient is not None else ()
            if edges:
                self.agent.graph.set_inputs(gradient, edges)

    def followed(self):
        """Whether all backward passes of the step are known."""
        return self._passes > 0 and not self._unknown and _HAS_IDENTITIES

    def reaches(self, parameter):
        """Whether a backward pass of the step leads to the parameter, if all are known."""
        leaf = getattr(parameter, "_grad_node", None)
        return leaf is not None and _identity(leaf) in self._reached

    def backward_begins(self):
        """The backward pass begins. Without our mode it is faster."""
        self._phase = _lib.BACKWARD
        if self._pushed and not self._above and self.agent.exceptions.mode != "all" \
                and not self.agent.ooms.on:
            self._rests, self._pushed = True, False
            self._pop()
        self.agent.timing.hook_ended()

    @guarded
    def backward_ended(self, gradients):
        """It has ended, and returned the gradients."""
        self._phase = _lib.FORWARD
        if self._rests:
            self._rests, self._pushed = False, True
            self._push()
        self._returned.update((_address(gradient), gradient) for gradient in inputs((gradients,)))


def _mode_of(looking):
    """An instance of MsDispatchMode, whose class is made here because MindSpore may not have it."""
    class OperatorMode(MODE):
        def __ms_dispatch__(self, func, args, kwargs=None):
            return looking.dispatch(func, args, kwargs)
    return OperatorMode()


def _stack():
    from mindspore import _c_expression
    return _c_expression._DispatchGuardStack


def _identity(back):
    """What is the same for all objects of one backward node. MindSpore 2.8 has none for leaves: None."""
    if _HAS_IDENTITIES:
        return back._unique_id()
    return None if back.is_leaf() else back._sequence_nr()


def _back_of(tensor):
    """The backward node of a tensor's operator, or None."""
    return getattr(tensor, "_grad_node", None)


def _walk(root, known=()):
    """(backward node, its next_functions) of all nodes from `root` on that are not leaves, each once, and the unique
    ids of the leaves. known: unique ids of nodes that are not wanted."""
    found, leaves, seen, waiting = [], set(), set(known), [root]
    while waiting:
        node = waiting.pop()
        if node is None or _identity(node) in seen:
            continue
        if node.is_leaf():
            leaves.add(_identity(node))
            continue
        seen.add(_identity(node))
        edges = node.next_functions
        found.append((node, edges))
        waiting.extend(edge[0] for edge in edges)
    return found, leaves


def _attrs(operator, args):
    """The arguments that explain a value, as `why` reads them: the axes that an operator works over, a factor, whether
    a normalization is in training."""
    if operator == "Muls":
        return (("value", "%r" % args[1]),) if len(args) > 1 and isinstance(args[1], (int, float)) else ()
    if operator not in _OVER_AXES and operator != "BatchNorm":
        return ()
    if len(args) == 3 and isinstance(args[2], tuple):
        args = args[2]  # of a Primitive
    if operator == "BatchNorm":
        return (("training", "%r" % args[5]),) if len(args) > 5 and isinstance(args[5], bool) else ()
    given = args[1] if len(args) > 1 else None
    axes = given if isinstance(given, (tuple, list)) else (given,)
    if not axes or not all(isinstance(axis, int) and not isinstance(axis, bool) for axis in axes):
        return ()
    return (("dim", ",".join("%d" % axis for axis in axes)),)


def inputs(args):
    """The tensors among an operator's arguments; a Primitive's are in a tuple."""
    for arg in args:
        if isinstance(arg, Tensor):
            yield arg
        elif isinstance(arg, (tuple, list)):
            yield from inputs(arg)


def _tensors(result):
    """The outputs of an operator: a tensor or None per slot."""
    if isinstance(result, Tensor):
        return (result,)
    if isinstance(result, (tuple, list)):
        return tuple(item if isinstance(item, Tensor) else None for item in result)
    return ()


def _computed(outputs):
    """Waits for an operator, so that its errors are raised where it is called. Returns the address of each output, 0
    where there is none; an empty list when no output is a tensor."""
    addresses = [values.address_of(output) if output is not None else 0 for output in outputs]
    return addresses if any(output is not None for output in outputs) else []


def _gradients(given):
    """What a hook of the backward pass is given: a tensor or None per slot."""
    return _tensors(given) or (None,)


def _address(tensor):
    try:
        return values.address_of(tensor)
    except (RuntimeError, AttributeError):
        return 0


def _key(tensor):
    """What identifies the value of a tensor that is held; None: nothing is."""
    return _address(tensor) or id(tensor) if tensor is not None else None


def _structs(node, outputs, addresses):
    """The array for gradb_did_with, and what keeps it alive. The node keeps the array: the shapes of an operator's
    outputs rarely change."""
    shapes = [(output.dtype, output.shape, output.is_contiguous()) if output is not None else None
              for output in outputs]
    if node.shapes != shapes:
        node.shapes, node.structs = shapes, (_lib.Tensor * len(outputs))()
    array, held = node.structs, []
    for slot, output in enumerate(outputs):
        if array[slot].data and addresses[slot] and shapes[slot][2]:
            array[slot].data = addresses[slot]
            continue
        try:
            if output is not None:
                struct, memory = values.describe(output, addresses[slot])
                array[slot] = struct
                held.append((struct, memory))
        except (values.NoValue, RuntimeError):
            array[slot] = _lib.Tensor()
    return array, held
