# SPDX-License-Identifier: MIT
"""Backward passes: run_backward of the autograd engine is wrapped, and the graph of grad_fns that it is about to walk
gets hooks. A grad_fn inherits scope and stack of the operator that made it or that it is an inner part of."""
import functools
import os
import re

import torch

from .. import native
from . import stack

KEY = "gradb"  # in grad_fn.metadata
COMPILED = os.path.join("_functorch", "_aot_autograd", "runtime_wrappers.py")
CHECKPOINT = os.path.join("utils", "checkpoint.py")
_LONG = 2.0  # seconds of a pass, above which Ctrl-C must not wait for its end
_SUFFIX = re.compile(r"Backward\d*$")
_CUSTOM = torch.autograd.function.BackwardCFunction
_REGISTER = "_register_hook"  # of torch.autograd.Function: puts a hook on any node


class Mark(native.base("Mark")):
    """Left by an operator on its grad_fn: scope, operator name, its node, and the stack."""
    __slots__ = native.slots("Mark", ("scope", "operator", "node", "stack"))

    def __init__(self, scope, operator, node, stack_):
        self.scope = scope
        self.operator = operator
        self.node = node
        self.stack = stack_


class Marks:
    """Which operator has made a grad_fn. Kept in the grad_fn's metadata, or by gradb._native."""

    def __init__(self):
        self.native = None  # the native Context

    def put(self, tensor, node):
        """Leaves a node's mark on the grad_fn of its output."""
        if self.native is not None:
            self.native.mark(tensor, node)
            return
        grad_fn = tensor.grad_fn
        if grad_fn is not None:
            grad_fn.metadata[KEY] = node.mark

    def of(self, grad_fn):
        """The mark of a grad_fn, or None."""
        found = self.native.mark_of(grad_fn) if self.native is not None else None
        return found if found is not None else grad_fn.metadata.get(KEY)


marks = Marks()  # of the agent: a process has one


def function_name(grad_fn):
    """The name of the function that made the output of an unmarked grad_fn: "MyFunction" of MyFunctionBackward."""
    if grad_fn.name() == "CompiledFunctionBackward":
        return "compiled"
    return _SUFFIX.sub("", grad_fn.name().rsplit("::", 1)[-1]) or "function"


_types = {}  # class of a grad_fn -> its type name; not for classes of C++ that several share


def _type_of(grad_fn):
    name = grad_fn.name().rsplit("::", 1)[-1]
    if type(grad_fn).__name__ == name:
        _types[type(grad_fn)] = name
    return name


def common_scope(grad_fn, scope):
    """The scope of a function that was not seen when it ran: the common part of the scopes of the operators that made
    its inputs and of the one that uses its result."""
    parts = scope.split("/") if scope else []
    for following, _ in grad_fn.next_functions:
        before = marks.of(following) if following is not None else None
        if before is not None:
            other = before.scope.split("/") if before.scope else []
            same = 0
            while same < min(len(parts), len(other)) and parts[same] == other[same]:
                same += 1
            parts = parts[:same]
    return "/".join(parts)


def is_unseen(tensor):
    """Whether a custom autograd.Function made the tensor, whose node does not exist yet."""
    grad_fn = tensor.grad_fn
    return isinstance(grad_fn, _CUSTOM) and KEY not in grad_fn.metadata


def scope_of_code(depth=1):
    """The scope of Python code that runs inside a backward pass: that of a custom function, or that of a hook."""
    frame = stack.user_frame(depth + 1)
    context = frame.f_locals.get("ctx") if frame is not None else None
    if isinstance(context, _CUSTOM):
        return "backward/" + _SUFFIX.sub("", type(context).__name__)
    return "backward/hook"


def custom_mark(grad_fn, inherited):
    """The mark of a custom function that was not seen when it ran. inherited: the mark of what uses its result, or
    None."""
    return Mark(common_scope(grad_fn, inherited.scope if inherited is not None else ""), function_name(grad_fn), None,
                inherited.stack if inherited is not None else ())


class _Fields:
    """The attributes of a PassNode, where there is no gradb._native."""
    __slots__ = ("type", "mark", "marked", "operator", "name", "variable", "incoming", "nodes", "node")

    def __init__(self):
        for name in _Fields.__slots__:
            setattr(self, name, None)


class PassNode(native.base("PassNode", _Fields)):
    """One grad_fn of a pass, as its hook finds it; with gradb._native it is the hook.

    type: of the grad_fn; mark: its own (then `marked`) or inherited; operator: name of the forward operator;
    name: of its graph node, after the forward node; None where that is unknown;
    variable: the leaf that it accumulates into;
    incoming: (PassNode, slot) of its inputs, without gradb._native made when asked for;
    nodes: all of the pass, by grad_fn; node: the graph.Node, once it has run."""
    __slots__ = ()

    def describe(self, grad_fn, inherited, nodes):
        """Fills in the attributes. inherited: the mark of the node before it, or None."""
        self.type = _types.get(type(grad_fn)) or _type_of(grad_fn)
        self.nodes = nodes
        if self.type == "AccumulateGrad":
            self.variable = grad_fn.variable
        mark = marks.of(grad_fn) if self.variable is None else None
        self.marked = mark is not None
        if mark is None:
            mark = custom_mark(grad_fn, inherited) if isinstance(grad_fn, _CUSTOM) else inherited
        self.mark = mark
        self.operator = mark.operator if mark is not None else self.type

    @property
    def scope(self):
        """The scope of its node."""
        scope = self.mark.scope if self.mark is not None else ""
        return "backward/" + scope if scope else "backward"

    def inputs(self):
        """The nodes that it reads, as graph.Node.edges."""
        if self.incoming is None:
            _link(self.nodes)
        return [(step.node, slot) for step, slot in self.incoming if step.node is not None]

    def name_it(self, known):
        """Names it after its forward node: `backward/fc1/linear_1` belongs to `fc1/linear_1`. An inner part of the
        operator, or the grad_fn of another of its outputs, gets its type as a further level. known: name -> how many of
        the pass have it."""
        node = self.mark.node if self.mark is not None else None
        if node is None or self.variable is not None:
            return
        name = node.backward
        if name is None:
            name = node.backward = "backward/" + node.name
        if not self.marked or name in known:
            name += "/" + self.type
        count = known[name] = known.get(name, 0) + 1
        self.name = name if count == 1 else "%s_%d" % (name, count - 1)


def _incoming(own):
    if own.incoming is None:
        _link(own.nodes)
    return own.incoming


def _link(nodes):
    """Fills in `incoming` of all nodes."""
    for own in nodes.values():
        own.incoming = []
    for grad_fn, own in nodes.items():
        for slot, (following, _) in enumerate(grad_fn.next_functions):
            if following in nodes:
                nodes[following].incoming.append((own, slot))


def _roots(tensors):
    """The grad_fns that a pass begins at. Instead of tensors it may be given torch.autograd.graph.GradientEdges."""
    given = (tensors,) if isinstance(tensors, torch.Tensor) else tensors
    found = [root.grad_fn if isinstance(root, torch.Tensor) else getattr(root, "node", None) for root in given]
    return [grad_fn for grad_fn in found if grad_fn is not None]


class _Hooks(dict):
    """The hooks of a node. PyTorch uses an OrderedDict, which takes longer to make."""
    __slots__ = ("__weakref__",)


def _remove(handles):
    for handle in handles:
        handle.remove()


class _Always:
    """The base of _Engine without gradb._native, where passes that nobody watches take a shorter path."""

    def run_backward(self, *args, **kwargs):
        """Like PyTorch's engine."""
        return self.run(*args, **kwargs)


class _Engine(native.base("Engine", _Always)):
    """Replaces torch.autograd.Variable._execution_engine."""

    def __init__(self, engine, backward):
        self._engine = engine
        self.backward = backward

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def run(self, tensors, *args, **kwargs):
        """run_backward for any pass."""
        backward = self.backward
        if backward.is_of_another_thread():
            return self._engine.run_backward(tensors, *args, **kwargs)
        try:
            finish = backward.begin(tensors, args, kwargs)
        except BaseException:
            backward.gave_up()
            raise
        try:
            return self._engine.run_backward(tensors, *args, **kwargs)
        except Exception as error:
            backward.raised(error)
            raise
        finally:
            finish()


class Backward(native.base("Backward")):
    """Hooks the passes, nested ones (double backward) included."""

    def __init__(self, agent):
        self._agent = agent
        self._original = None
        self._engine = None
        self._registrar = None
        self.depth = 0
        self.took = 0.0  # seconds of the last pass
        self.nodes = None  # grad_fn -> PassNode, of the innermost pass that is watched; has get()

    def install(self):
        """Wraps the engine."""
        variable = torch.autograd.Variable
        self._original = variable._execution_engine
        self._engine = _Engine(self._original, self)
        if self._agent.native is not None:
            self._engine.use(self._agent.native, self._original.run_backward, _LONG)
        variable._execution_engine = self._engine
        function = torch.autograd.Function
        if native.module is not None and _REGISTER not in vars(function):  # it is inherited
            self._registrar = native.module.registrar(function._register_hook, _Hooks)
            function._register_hook = self._registrar

    def remove(self):
        """Removes the wrapper. One that was itself wrapped stays and only passes calls on."""
        variable = torch.autograd.Variable
        if self._engine is not None and variable._execution_engine is self._engine:
            variable._execution_engine = self._original
        self._engine = marks.native = None
        if self._registrar is not None and vars(torch.autograd.Function).get(_REGISTER) is self._registrar:
            delattr(torch.autograd.Function, _REGISTER)
        self._registrar = None

    def running(self):
        """The PassNode that runs; None: unknown."""
        if self.nodes is None:
            return None
        current = getattr(torch._C, "_current_autograd_node", None)
        if current is not None:  # before 2.1 PyTorch does not say it
            return self.nodes.get(current())
        ready = [own for grad_fn, own in self.nodes.items() if own.node is None and own.variable is None
                 and all(before.node is not None for before, _ in _incoming(own))]
        return ready[0] if len(ready) == 1 else None

    def is_of_another_thread(self):
        """Whether the next pass is not the training's. A pass inside one of the training's may run on a device's
        thread, which was not made by Python."""
        return not self._agent.is_training_thread() and not self._agent.runs_aside()

    def begin(self, tensors, args, kwargs):
        """Called before a pass with run_backward's arguments: hooks its nodes when somebody watches. Returns a function
        that ends it."""
        agent = self._agent
        into_leaves = kwargs.get("accumulate_grad", True)
        accumulates = agent.steps.is_training_pass(args, into_leaves)
        handles, nodes, learn, undo = [], {}, None, ()
        looks = agent.steps.backward_begins(tensors, args[0] if args else None, accumulates)
        try:
            if looks:
                nodes, learn, undo = self._look(tensors, handles, accumulates and not self.depth)
            elif self.took > _LONG and agent.connected():
                self._heed_in(tensors, handles)
        except BaseException:  # an interrupt: the pass does not begin
            _remove(handles)
            raise
        self.depth += 1
        agent.in_backward = True
        outer, agent.into_leaves = agent.into_leaves, into_leaves
        around, self.nodes = self.nodes, nodes
        began = agent.timing.now()

        def finish():
            self.took = agent.timing.now() - began
            agent.into_leaves = outer
            self.nodes = around
            self.ended(accumulates, handles, nodes, learn, undo)
        return finish

    def gave_up(self):
        """The pass did not begin."""
        self._agent.steps.passes_are(self.depth)

    def _look(self, tensors, handles, is_of_loss):
        """Hooks the nodes of the pass. Returns the nodes, a function to call when they have run, or None, and functions
        that undo what else was done."""
        agent = self._agent
        try:
            with agent.own_moment():
                roots = _roots(tensors)
                nodes, learn = self._hook_all(roots, handles)
            if is_of_loss and roots:
                agent.reporter.backward_begins(nodes.get(roots[0]))
            return nodes, learn, agent.modes_for_backward()
        except Exception as error:
            agent.fault(error)
            return {}, None, ()

    def ended(self, accumulates=True, handles=(), nodes=None, learn=None, undo=()):
        """A pass has ended. See _look."""
        agent = self._agent
        self.depth -= 1
        agent.in_backward = self.depth > 0
        agent.lines.catch_up()
        if agent.overflow is not None and not self.depth:
            agent.overflow.pass_ended()
        _remove(handles)
        if learn is not None and not agent.dead:
            try:
                learn()
            except Exception as error:
                agent.fault(error)
        for function in undo:
            function()
        agent.steps.backward_ended(accumulates)
        if nodes is not None:
            nodes.clear()  # each node refers to all others; may raise an interrupt

    def _heed_in(self, tensors, handles):
        """Passes take long and nobody watches: makes Ctrl-C work at each of their operators all the same."""
        agent, library = self._agent, self._agent.library

        def heed(*_):
            if not agent.dead and agent.words.armed:
                agent.timing.call_waiting(library.gradb_heed, agent.handle)
        if not hasattr(library, "gradb_heed"):
            return
        seen = set()
        waiting = _roots(tensors)
        while waiting:
            grad_fn = waiting.pop()
            if grad_fn is not None and grad_fn not in seen:
                seen.add(grad_fn)
                handles.append(grad_fn.register_hook(heed))
                waiting.extend(following for following, _ in grad_fn.next_functions)

    def raised(self, error):
        """The pass has raised: stops the run, once."""
        if self._agent.watching_now and isinstance(error, Exception):
            self._agent.reporter.failures.backward_raised(error)

    def _hook_all(self, roots, handles):
        """(the nodes of a pass, by grad_fn; a function to call when they have run, or None)"""
        agent, nodes, learn = self._agent, {}, None
        if agent.native is not None:
            known = native.module.hook_known(agent.native, roots)
            if isinstance(known, native.module.Pass):
                handles.append(known)
                return known, None
            native.module.hook_all(agent.native, roots, nodes, handles, {})
            if known is not None:
                learn = functools.partial(native.module.learn_pass, agent.native, known, roots, nodes)
        else:
            self._hook_each(roots, handles, nodes)
        if agent.overflow is not None:
            agent.overflow.pass_begins(nodes)
        return nodes, learn

    def _hook_each(self, roots, handles, nodes):
        reporter, known = self._agent.reporter, {}
        waiting = [(grad_fn, None) for grad_fn in roots]
        while waiting:
            grad_fn, inherited = waiting.pop()
            if grad_fn in nodes:
                continue
            own = nodes[grad_fn] = PassNode()
            own.describe(grad_fn, inherited, nodes)
            own.name_it(known)
            handles.append(grad_fn.register_hook(functools.partial(reporter.backward_ran, own)))
            for following, _ in grad_fn.next_functions:
                if following is not None and following not in nodes:
                    waiting.append((following, own.mark))


# The parts of this module that the native Context needs, in its order.
NATIVE_PARTS = (PassNode, _CUSTOM, _types, _type_of, custom_mark)
