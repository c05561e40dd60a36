# SPDX-License-Identifier: MIT
"""Taps inside compiled code, where a step cannot be rehearsed uncompiled (rehearsal.py).

A tap is an operator that calls Python with its input in place and passes it on. Another `construct` of each cell of the
known networks, and a hook of each optimizer, put taps into a second compilation of the call. It has another phase, and
they are there only while it runs, so that steps which are not looked into run the first compilation. (Hooks of cells
would not do: MindSpore does not compile those of cells in a list.)

Forward, a cell is the node `net/fc1/Dense`, and backward `backward/net/fc1/Dense`, whose outputs are the gradients of
its inputs. Which run of a cell a tap belongs to is known by the first input of the cell: the compiler may run a cell
twice for the same input, which is one run here.

Taps are called on threads of MindSpore's runtime, while the thread that trains waits in C++. Nothing there may ask
MindSpore for a value, because it would wait for the compiled code that runs: values.fix()."""
import re
import threading
import time
import types
import weakref

import mindspore
import numpy
from mindspore import Tensor, nn, ops

from .. import _lib
from . import cells, hooks, stack, values
from .guard import guarded

_MOST = 8           # inputs or outputs of a cell that are tapped
_OURS = "gradb"     # key of our hook among those of an optimizer
SUFFIX = ".gradb_taps"  # in the phase of our compilation
_FLOATS = tuple(values.FLOATS)
# Operators that draw random numbers: a second compilation takes some of those of the first.
_RANDOM = re.compile(r"Dropout|Rand|Normal(?!iz)|Uniform|Multinomial|Bernoulli|Gamma$|Poisson|Exponential|Geometric"
                     r"|Cauchy|Shuffle|Sampler")
_OPERATOR = re.compile(r"= (?:PrimFunc_)?(\w+)\(")


class _Compiled(BaseException):
    """Ends a call that is compiled now, before it runs; not an Exception, for which MindSpore would clean up."""

    def __init__(self, phase):
        super().__init__()
        self.phase = phase


class Taps:
    """The taps of one agent. They are made once for each cell, because compiled code keeps them. step: the last one
    with a tapped call."""

    def __init__(self, agent):
        self.agent = agent
        self._cells = weakref.WeakKeyDictionary()  # cell -> _OfCell
        self._optimizers = {}    # id(optimizer) -> (weak reference, hook)
        self._needed = weakref.WeakKeyDictionary()  # what is called -> why it must be tapped
        self._impossible = weakref.WeakKeyDictionary()  # the same -> why it cannot be
        self._lock = threading.RLock()  # of a tap: when one is stopped, others wait
        self._checked = set()    # phases whose code draws no random numbers
        self._stack = ()         # of the call
        self._entered = False    # the compiled code runs
        self._said = False
        self.step = 0
        self._forget()

    # ---- which calls ----

    def need(self, called, error):
        """The call cannot be rehearsed uncompiled, because that raised the error."""
        self._needed[_key(called)] = "it cannot run uncompiled (%s)" % _first_line(error)

    def why_not(self, called):
        """Why a call is not rehearsed uncompiled; None: it is."""
        return self._needed.get(_key(called))

    def rehearse(self, called, compiled):
        """Calls compiled() with taps, as a rehearsal: the caller restores what it changes."""
        if self._is_possible(called, compiled):
            self._run(called, compiled, "a compiled rehearsal", self.why_not(called))

    def instead_of(self, called, compiled, why):
        """What to call instead of compiled(), which cannot be rehearsed: itself with taps, if that is possible."""
        if not values.is_in_host_memory():
            self.agent.say_once("the inside of compiled steps is not seen: %s, and so were taps" % why)
            return compiled
        return (lambda: self._tapped(called, compiled, why)) if self._is_possible(called, compiled) else compiled

    def _is_possible(self, called, compiled):
        why = self._impossible.get(_key(called)) or self._why_impossible(called, compiled)
        if why:
            self._impossible[_key(called)] = why
            self.agent.say_once("the inside of a compiled step is not seen: no taps, because " + why)
        return not why

    def _why_impossible(self, called, compiled):
        """Compiles the code as it is without us, and looks at what it computes."""
        if not hasattr(called, "phase" if isinstance(called, nn.Cell) else "_cell_cache_key_extend"):
            return "MindSpore has changed"
        compile_ = called.compile

        def stop(*args, **kwargs):
            result = compile_(*args, **kwargs)
            raise _Compiled(called.current_phase if isinstance(called, nn.Cell) else result)
        called.__dict__["compile"] = stop
        try:
            compiled()
        except _Compiled as done:
            phase = done.phase
        except Exception:  # the script's, which the call will meet
            return "it cannot be compiled"
        finally:
            del called.__dict__["compile"]
        if phase in self._checked:
            return ""
        operators = _operators_of(called, phase)
        drawing = next((operator for operator in operators if _RANDOM.search(operator)), "" if all(operators) else "it")
        if drawing:
            return "%s %s random numbers: another compilation would take some of them" % (
                drawing, "may draw" if drawing == "it" else "draws")
        self._checked.add(phase)
        return ""

    def _tapped(self, called, compiled, why):
        try:
            return self._run(called, compiled, "the compiled code", why)
        except Exception:
            if self._entered:
                raise
        return compiled()

    # ---- a tapped call ----

    def _run(self, called, compiled, place, why):
        steps = self.agent.steps
        self._stack, self._entered = stack.frames(3), False
        self.step = self.agent.steps.step
        self._forget()
        tapped = self._insert(called)
        compile_ = called.compile

        def timed(*args, **kwargs):
            begun = time.perf_counter()
            result = compile_(*args, **kwargs)
            self._entered = True
            self._say(place, why, time.perf_counter() - begun)
            values.fix(self._lasting())
            return result
        name = "phase" if isinstance(called, nn.Cell) else "_cell_cache_key_extend"
        before = getattr(called, name)
        setattr(called, name, before + SUFFIX)
        called.__dict__["compile"] = timed
        try:
            result = compiled()
            hooks.api._pynative_executor.sync()  # without the interpreter's lock, which the taps need
            return result
        except Exception as error:
            if not self._entered:
                self._impossible[_key(called)] = "they cannot be compiled (%s)" % _first_line(error)
                self._is_possible(called, compiled)
            raise
        finally:
            del called.__dict__["compile"]
            setattr(called, name, before)
            for table, key in tapped:
                table.pop(key, None)
            values.fix(None)
            self._settle()
            self._forget()
            steps.report_updates()

    def _forget(self):
        self._flow = cells.Cells(self.agent)
        self._runs = {}   # _OfCell -> {what identifies its first input: _Run}
        self._read = {}   # (_OfCell, the same) -> {number of an input: (its digest, its value if no cell made it)}
        self._back = {}   # digest of a gradient -> (Node, number of the input)

    def _say(self, place, why, seconds):
        if not self._said:
            self._said = True
            self.agent.say("step %d is compiled: its cells are watched by taps in %s (%.2f s to compile it), because %s"
                           % (self.agent.steps.step, place, seconds, why))

        if self.agent.overflow is not None:
            self.agent.say_once("taps do not look for overflows: `watch TO on all` finds cells whose values are not "
                                "finite")

    def _lasting(self):
        tensors = [node.get() for node in self.agent.graph.by_id.values() if node.get is not None]
        return [tensor for tensor in tensors if isinstance(tensor, Tensor)]

    def _insert(self, called):
        """Prepares all cells and optimizers. Returns what is to be removed: (dictionary, key)."""
        added = []
        for cell, path in self.agent.parameters.cells():
            if cell is called or "construct" in vars(cell):
                continue  # the script's arguments belong to its own construct
            of_cell = self._cells.get(cell)
            if of_cell is None:
                of_cell = self._cells[cell] = _OfCell(self, cell, path)
            ours = {"_gradb_before": of_cell.before, "_gradb_after": of_cell.after, "_gradb_construct": cell.construct,
                    "construct": types.MethodType(_construct, cell)}
            vars(cell).update(ours)
            added += [(vars(cell), key) for key in ours]
        for _, optimizer in self.agent.parameters.living():
            found = self._optimizers.get(id(optimizer))
            if found is None or found[0]() is not optimizer:
                found = self._optimizers[id(optimizer)] = (weakref.ref(optimizer), _before_optimizer(self, optimizer))
            optimizer._forward_pre_hook[_OURS] = found[1]
            added.append((optimizer._forward_pre_hook, _OURS))
        return added

    def _settle(self):
        """The compiled code has ended: the gradients can be tensors of MindSpore again."""
        gradients = self.agent.parameters.gradients
        for key, gradient in gradients.items():
            if isinstance(gradient, numpy.ndarray):
                gradients[key] = Tensor(gradient)

    # ---- what taps call ----

    def ran(self, method, place, number, value, first=None):
        """Calls a method of ours at a tap, with a copy of the value. Nothing may be raised into compiled code."""
        with self._lock:
            looking = self.agent.looking
            if not looking or looking.off or self.agent.dead:
                return
            try:
                with looking.own_moment():
                    method(place, number, numpy.array(value), first)
            except Exception as error:
                self.agent.fault(error)

    @guarded
    def read(self, of_cell, number, value, first):
        """A cell is about to read its input of that number. first: its first input."""
        key = _digest(value)
        self._read.setdefault((of_cell, _identity(first)), {})[number] = key, None if self._flow.has(key) else value

    @guarded
    def made(self, of_cell, slot, value, first):
        """A cell has computed its output of that slot."""
        path, own = of_cell.path, _identity(first)
        runs = self._runs.setdefault(of_cell, {})
        if own not in runs:
            looking = self.agent.looking
            runs[own] = _Run(looking.next_name(path, of_cell.kind, looking.called_at),
                             self._read.pop((of_cell, own), {}))
        run = runs[own]
        if slot in run.made:
            return  # the compiler runs it a second time
        run.made.add(slot)
        self.agent.steps.enter(_lib.FORWARD)
        made = [None] * slot + [_digest(value)]
        edges = self._flow.read(of_cell.cell(), path, run.read, made)
        for node, given in self._flow.inputs(run.name, run.given, self._frames(path)) if run.node is None else ():
            edges.append((node, 0))
            self._report(node, 0, given)
        run.node = self._node(run.name, of_cell, _lib.FORWARD, edges, slot, value)
        if run.node is not None:
            self._flow.ran(run.node, path, run.read, made)
            self._report(run.node, slot, value)

    @guarded
    def went_back(self, of_cell, number, value, first):
        """The gradient of a cell's input of that number is computed."""
        runs = self._runs.get(of_cell, {})
        run = runs.get(_identity(first)) or (next(iter(runs.values())) if len(runs) == 1 else None)
        if run is None or run.node is None or number in run.went_back:
            return
        run.went_back.add(number)
        self.agent.steps.enter(_lib.BACKWARD)
        same = self._back.get(_digest(value))  # of a cell inside
        edges = [same] if same else self._fed_by(run.node)
        node = self._node("backward/" + run.node.name, of_cell, _lib.BACKWARD, edges, number, value)
        if node is not None:
            if _digest(value) is not None:
                self._back[_digest(value)] = (node, number)
            for parameter, _ in self.agent.parameters.inputs_of(of_cell.cell()):
                self._feed(parameter, edges)
            self._report(node, number, value)

    def _fed_by(self, node):
        """The gradients that a cell's backward pass reads: those of the inputs of the cells that read its output."""
        nodes = self.agent.graph.nodes
        found = [(nodes.get("backward/" + reader.name), number) for reader, number in self._flow.readers(node)]
        return [(back, number) for back, number in found if back is not None]

    def _feed(self, parameter, edges):
        gradient = self.agent.graph.nodes.get(parameter.name + ".grad")
        if gradient is not None and edges:
            self.agent.graph.set_inputs(gradient, edges)

    @guarded
    def updates(self, optimizer, number, value, _first):
        """An optimizer is about to use the gradient of its parameter of that number."""
        agent, optimizer = self.agent, optimizer()
        known = agent.parameters.known(optimizer) if optimizer is not None else None
        if known is not None:
            agent.steps.enter(_lib.BACKWARD)
            agent.parameters.gradients[id(optimizer.parameters[number])] = value
            agent.report([node for reference, _, node, _ in known.updates
                          if node is not None and reference() is optimizer.parameters[number]])

    def _node(self, name, of_cell, phase, edges, slot, value):
        agent = self.agent
        node = agent.graph.nodes.get(name)
        if node is not None:
            agent.graph.set_inputs(node, edges)
            return node
        is_back = phase == _lib.BACKWARD
        node = agent.graph.add(
            name, _lib.GRADIENT if is_back else _lib.AUTO, of_cell.kind + ("Backward" if is_back else ""), phase=phase,
            inputs=edges, outputs=[None] * slot + [values.shape_of(value)],
            attrs=[("forward", name.partition("/")[2])] if is_back else (),
            stack=self._frames("" if is_back else of_cell.path))
        if node is not None and agent.words.armed:
            agent.library.gradb_sync(agent.handle)
        return node

    def _frames(self, path):
        return (cells.lines_of(self.agent.parameters, path) if path else ()) + self._stack

    def _report(self, node, slot, value):
        """The outputs of a node become known one by one."""
        agent, looking = self.agent, self.agent.looking
        outputs = list(looking.outputs.get(node.id, ())) if node.step == agent.steps.step else []
        outputs += [None] * (slot + 1 - len(outputs))
        outputs[slot] = value
        node.step = agent.steps.step
        looking.hold(node, tuple(outputs), value.nbytes)
        if agent.words.armed and agent.library.gradb_wants(agent.handle, node.id):
            structs = (_lib.Tensor * len(outputs))()
            for index, output in enumerate(outputs):
                if output is not None:
                    structs[index] = values.describe(output)[0]
            agent.timing.call_waiting(agent.library.gradb_did_with_slow, agent.handle, node.id, structs, len(outputs))


class _Run:
    """One run of a cell in a step."""

    def __init__(self, name, read):
        self.name = name
        read = [read.get(index, (None, None)) for index in range(max(read) + 1)] if read else []
        self.read, self.given = [key for key, _ in read], [value for _, value in read]
        self.node = None
        self.made = set()       # slots of its outputs
        self.went_back = set()  # numbers of its inputs whose gradients were computed


class _OfCell:
    """The taps of one cell. before, after: for _construct."""

    def __init__(self, taps, cell, path):
        self.cell = weakref.ref(cell)
        self.path = path
        self.kind = type(cell).__name__
        self.before = _before(tuple(
            _tap_with(_caller(taps, taps.read, self, number),
                      _gradient_through(_tap_with(_caller(taps, taps.went_back, self, number), None)))
            for number in range(_MOST)))
        self.after = _after(*(tuple(_tap_with(_caller(taps, taps.made, self, slot, scalar), _gradient_passed)
                                    for slot in range(_MOST)) for scalar in (False, True)))


def _caller(taps, method, of_cell, number, is_scalar=False):
    """What a tap calls with a value and the first input of the cell. Returns the value, for the code after it."""
    def call(value, first):
        taps.ran(method, of_cell, number, value.reshape(()) if is_scalar else value, first)
        return value
    return call


def _first_of(*items):
    return items[0]


def _tap_with(call, gradient):
    return ops.Custom(call, _first_of, _first_of, func_type="pyfunc", bprop=gradient)


# ---- compiled by MindSpore, which reads the source of these functions ----

def _gradient_passed(value, first, out, dout):
    """The gradients of a tap's arguments."""
    return (dout, ops.zeros_like(first))


def _gradient_through(tap):
    def gradient(value, first, out, dout):
        return (tap(dout, first), ops.zeros_like(first))
    return gradient


def _through(taps, items, first):
    done = ()
    number = 0
    for item in items:
        if number < _MOST and isinstance(item, Tensor) and item.dtype in _FLOATS and len(item.shape) > 0:
            item = taps[number](item, first)
        done = done + (item,)
        number = number + 1
    return done


def _construct(self, *inputs):
    """Instead of a cell's own."""
    return self._gradb_after(inputs, self._gradb_construct(*self._gradb_before(inputs)))


def _before(taps):
    def before(inputs):
        if len(inputs) > 0 and isinstance(inputs[0], Tensor):
            return _through(taps, inputs, ops.stop_gradient(inputs[0]))
        return inputs
    return before


def _after(taps, scalars):
    def after(inputs, output):
        first = inputs
        if len(inputs) > 0 and isinstance(inputs[0], Tensor):
            first = ops.stop_gradient(inputs[0])
        elif isinstance(output, Tensor):
            first = ops.stop_gradient(output)
        if isinstance(first, Tensor) and isinstance(output, Tensor):
            if len(output.shape) == 0 and output.dtype in _FLOATS:
                return ops.reshape(scalars[0](ops.reshape(output, (1,)), first), ())
            return _through(taps, (output,), first)[0]
        if isinstance(first, Tensor) and isinstance(output, tuple):
            return _through(taps, output, first)
        return output
    return after


def _before_optimizer(taps, optimizer):
    reference = weakref.ref(optimizer)

    def caller(number):
        def call(value):
            taps.ran(taps.updates, reference, number, value)
            return value
        return _tap_plain(call)
    tapped = tuple(caller(number) for number in range(len(optimizer.parameters)))

    def before(cell, inputs):
        done = ()
        number = 0
        for gradient in inputs[0]:
            if isinstance(gradient, Tensor):
                gradient = tapped[number](gradient)
            done = done + (gradient,)
            number = number + 1
        return (done,)
    return before


def _tap_plain(call):
    return ops.Custom(call, _first_of, _first_of, func_type="pyfunc")


# ---- small things ----

def _operators_of(called, phase):
    """The types of the operators of compiled code."""
    executor = (hooks.api._cell_graph_executor if isinstance(called, nn.Cell) else called)._graph_executor
    show = getattr(mindspore._c_expression, "dump_func_graph", None)
    if show is not None:
        return _OPERATOR.findall(str(show(executor.get_func_graph(phase))))
    from mindspore.train import anf_ir_pb2  # 2.7
    model = anf_ir_pb2.ModelProto()
    model.ParseFromString(executor.get_func_graph_proto(phase, "anf_ir", False))
    return [node.op_type for node in model.graph.node]  # "": a branch


def _digest(value):
    """What is equal for equal values; None for zeros, which are equal to others by chance."""
    value = numpy.asarray(value)
    return hash(value.tobytes()) if value.any() else None


def _identity(value):
    value = numpy.asarray(value)
    return hash((value.shape, value.tobytes()))


def _key(called):
    """What stays the same in all calls of the same code."""
    function = called if isinstance(called, nn.Cell) else called.fn
    return getattr(function, "__func__", function)


def _first_line(error):
    return "%s: %s" % (type(error).__name__, str(error).strip().split("\n", 1)[0])
