# SPDX-License-Identifier: MIT
"""The compiled graphs: nodes below `compiled/`, made from MindSpore's own IR once per compilation.

They carry no values. Each call that is compiled has a scope of its own: `compiled/NETWORK/...` for a cell,
`compiled/FUNCTION/...` for @jit. A compiled operator and the one that a rehearsal has watched name each other as
counterparts, where what they read leaves no doubt."""
import weakref

from mindspore import Parameter, nn

from .. import _lib
from . import hooks, taps
from . import operators as watching
from .guard import guarded
from .outside import INPUT

_SCOPE = "compiled/"
_MOST_OPERATORS = 20000  # of one graph
_MOST_CALLS = 64
_MOST_ROUNDS = 24        # of matching
_CALL = "Call"           # of another graph, in a loop or a branch: what is inside is not known
_LOST = "?"              # read from an operator that the message lacks
_COUNTERPART = "counterpart"
_NONE = "none that is certain"
_UNKNOWN = "unknown until the operators are watched (`agent operators on`)"
_BACKWARD = "Gradients/"
_PASSED_ON = frozenset(("Load", "Depend"))  # their first input is their output
_NOT_SHOWN = _PASSED_ON | {"UpdateState", "TupleGetItem", "MakeTuple"}


class Operator:
    """One operator of a graph. inputs: (Operator or Node, slot); unknown: names of the inputs of the graph that it
    reads and of which no node is known; types: MindSpore's TypeProto of each output, None: unknown."""

    def __init__(self, operator, ir_name, inputs, types):
        self.operator = operator
        self.ir_name = ir_name
        self.inputs = [(source, slot) for source, slot in inputs if not isinstance(source, str)]
        self.unknown = {source for source, _ in inputs if isinstance(source, str)}
        self.types = types
        self.phase = ""
        self.node = None
        self.counterpart = None  # Node

    @property
    def shape(self):
        """(type, lengths) of its first output, None: unknown."""
        return _shape_of(self.types[0]) if self.types and self.types[0] is not None else None


class Call:
    """What is compiled. key: a weak reference to it, and the kind of its phase; shown: the phase whose graph its nodes
    are; matched: their counterparts were looked for."""

    def __init__(self, name, key):
        self.name = name
        self.key = key
        self.shown = None
        self.matched = False
        self.operators = []


class Compiled:
    """Learns of compilations, and shows their graphs at the end of the step."""

    def __init__(self, agent):
        self.agent = agent
        self._calls = {}    # phase -> Call, None: it cannot be shown
        self._waiting = {}  # phase -> (what was called, nodes of its rehearsal)
        self._can = hasattr(agent.library, "gradb_set_attr")

    @guarded
    def ran(self, called, phase):
        """A compiled call has returned. phase: of a function; a cell knows its own."""
        if isinstance(called, nn.Cell):
            phase = getattr(called, "current_phase", "")
        agent = self.agent
        rehearsed = agent.looking.rehearsed if agent.looking else ()
        if not phase or taps.SUFFIX in phase or phase in self._calls and not (rehearsed and self._calls[phase]
                                                      and not self._calls[phase].matched):
            return
        if self._can and agent.connected() and (rehearsed or phase not in self._waiting):
            self._waiting[phase] = called, rehearsed

    def tell(self):
        """The step ends: shows what was compiled in it, and what has found its counterpart."""
        waiting, self._waiting = self._waiting, {}
        for phase, (called, rehearsed) in waiting.items():
            try:
                if phase not in self._calls:
                    self._calls[phase] = self._show(phase, called)
                call = self._calls[phase]
                if call is not None and call.shown == phase and rehearsed and not call.matched:
                    call.matched = True
                    for operator in call.operators:
                        if operator.phase == "forward":
                            self.agent.graph.set_attr(operator.node, _COUNTERPART, _NONE)
                    self._name_pairs(_matched(call.operators, rehearsed))
            except Exception as error:  # it is only a picture
                self._calls[phase] = None
                self.agent.say_once("a compiled graph cannot be shown: %s: %s" % (
                    type(error).__name__, str(error).strip().split("\n", 1)[0]))

    # ---- one graph ----

    def _show(self, phase, called):
        """The call whose nodes are those of the graph now; None: they cannot be shown."""
        graph = _graph_of(phase, called)
        if len(graph.node) > _MOST_OPERATORS:
            self.agent.say_once("a compiled graph of %d operators is not shown: more than %d" % (
                len(graph.node), _MOST_OPERATORS))
            return None
        call = self._call_of(called, phase)
        if call is None:
            return None
        operators = _read(graph, self._parameters())
        self._set_phases(operators, isinstance(called, hooks.KINDS))
        gone = {operator.node.name: operator.node for operator in call.operators}
        for operator in call.operators:
            if operator.counterpart is not None:
                self.agent.graph.set_attr(operator.counterpart, _COUNTERPART, _NONE)
        counts = {}
        for operator in operators:
            scope = self._scope_of(operator, called)
            if (scope + "/").startswith(call.name + "/"):
                scope = scope[len(call.name) + 1:]
            name = "%s%s/%s%s" % (_SCOPE, call.name, scope + "/" if scope else "", operator.operator)
            count = counts[name] = counts.get(name, -1) + 1
            name += "_%d" % count if count else ""
            gone.pop(name, None)
            operator.node = self._node(name, operator)
        for node in gone.values():
            self.agent.graph.set_inputs(node, ())
            self.agent.graph.set_attr(node, "compiled", "not in the graph that was compiled last")
        call.operators = [operator for operator in operators if operator.node is not None]
        call.shown, call.matched = phase, False
        self._name_pairs(self._updates(call.operators))
        return call

    def _node(self, name, operator):
        graph = self.agent.graph
        edges = [(getattr(source, "node", source), slot) for source, slot in operator.inputs]
        edges = [(node, slot) for node, slot in edges if node is not None]
        attrs = [("output", ", ".join(_type_text(kind) for kind in operator.types))]
        if operator.phase == "forward" and watching.MODE is not None:
            attrs.append((_COUNTERPART, _UNKNOWN))
        attrs += [("phase", operator.phase or "unknown"), ("compiled", "in step %d" % self.agent.steps.step)]
        if operator.ir_name:
            attrs.append(("ir name", operator.ir_name))
        node = graph.nodes.get(name)
        if node is None:
            return graph.add(name, _lib.COMPILED, operator.operator, inputs=edges, attrs=attrs)
        graph.set_inputs(node, edges)
        for key, value in [(_COUNTERPART, _NONE)] + attrs:
            graph.set_attr(node, key, value)
        return node

    def _call_of(self, called, phase):
        """The Call of this cell or function. Another one with the same name gets a number, unless the first one no
        longer exists. None: there are too many."""
        name, owner = self.name_of(called)
        key = weakref.ref(owner), phase.split(".", 1)[0] if isinstance(called, nn.Cell) else ""
        calls = {call.name: call for call in self._calls.values() if call is not None}
        base, count = name, 0
        while name in calls and calls[name].key != key and calls[name].key[0]() is not None:
            count += 1
            name = "%s_%d" % (base, count)
        if name in calls:
            calls[name].key = key
            return calls[name]
        return Call(name, key) if len(calls) < _MOST_CALLS else None

    def name_of(self, called):
        """(name, the object that it is the name of) of a cell, an optimizer, or a function with @jit."""
        if not isinstance(called, nn.Cell):
            inner = _variables_of(called.fn).get("fn") if called.fn.__name__ == "after_grad" else None
            if callable(inner):  # of value_and_grad and the like
                called = inner
            elif isinstance(called.obj, nn.Cell) and called.fn.__name__ == "construct":
                called = called.obj
            else:
                return called.fn.__name__, called.fn if called.obj is None else called.obj
        known = self.agent.parameters.known(called)
        path = known.name if known is not None else self.agent.parameters.path_of(called)
        return path or getattr(called, "__name__", type(called).__name__), called

    def _parameters(self):
        """Name in the IR -> node; names that several parameters have are left out."""
        found, several = {}, set()
        for node in list(self.agent.graph.by_id.values()):
            parameter = node.get() if node.get is not None and node.kind in (_lib.WEIGHT, _lib.PARAMETER) else None
            if isinstance(parameter, Parameter):
                if parameter.name in found:
                    several.add(parameter.name)
                found[parameter.name] = node
        return {name: node for name, node in found.items() if name not in several}

    def _scope_of(self, operator, called):
        """The path of its cell, in gradb's names. The IR has none in a function, and those of the backward pass are
        not reliable: MindSpore compiles the gradient of an operator once, and uses it again in other cells."""
        parts = operator.ir_name.split("/")[:-1]
        if operator.phase == "backward":
            return "/".join(["backward"] + [part for part in parts[-1:] if part.startswith("Grad_")])
        cell = called if isinstance(called, nn.Cell) else None
        path = "" if isinstance(cell, hooks.KINDS) else self._path_of(cell, "")
        for part in parts[1:]:
            name, _, kind = part.rpartition("-")
            child = cell.name_cells().get(name) if cell is not None else None
            cell = child if child is not None and type(child).__name__ == kind else None
            path = self._path_of(cell, path) if cell is not None else (path + "/" if path else "") + (name or part)
        return path

    def _path_of(self, cell, above):
        known = self.agent.parameters.known(cell) if isinstance(cell, hooks.KINDS) else None
        if known is not None:
            return "optimizer/" + known.name
        return self.agent.parameters.path_of(cell) or above

    def _set_phases(self, operators, is_optimizer):
        """What reads the optimizer's own parameters, or the results of that, is the optimizer's."""
        own = set()
        for _, optimizer in self.agent.parameters.living():
            trained = {parameter.name for parameter in optimizer.parameters}
            own.update(parameter.name for parameter in optimizer.get_parameters() if parameter.name not in trained)
        for operator in operators:
            phases = {source.phase for source, _ in operator.inputs if isinstance(source, Operator)}
            states = any(getattr(source, "operator", "") == "State" for source, _ in operator.inputs)
            if is_optimizer or "optimizer" in phases or states or operator.unknown & own:
                operator.phase = "optimizer"
            elif operator.ir_name.startswith(_BACKWARD) or "backward" in phases:
                operator.phase = "backward"
            elif operator.operator == _CALL or "" in phases or _LOST in operator.unknown:
                operator.phase = ""
            else:
                operator.phase = "forward"

    # ---- counterparts ----

    def _updates(self, operators):
        """(operator, node) of the optimizer's operators that update a weight."""
        found = {}
        for operator in operators:
            if operator.phase == "optimizer" and operator.inputs:
                found.setdefault(operator.inputs[0][0], []).append(operator)
        for known, _ in self.agent.parameters.living():
            for _, weight, gradient, update in known.updates:
                writers = found.get(weight, ()) if update is not None else ()
                states = {state for state, _ in update.edges} - {weight, gradient} if writers else set()
                writers = [writer for writer in writers if states <= {source for source, _ in writer.inputs}]
                if len(writers) == 1:
                    yield writers[0], update

    def _name_pairs(self, pairs):
        graph = self.agent.graph
        for operator, node in pairs:
            operator.counterpart = node
            graph.set_attr(operator.node, _COUNTERPART, node.name)
            graph.set_attr(node, _COUNTERPART, operator.node.name)


def _variables_of(function):
    """Name -> value of the variables that a function has taken from the one around it."""
    cells = getattr(function, "__closure__", None) or ()
    return {name: cell.cell_contents for name, cell in zip(function.__code__.co_freevars, cells)}


# ---- MindSpore's message ----

def _graph_of(phase, called):
    from mindspore.train import anf_ir_pb2
    executor = hooks.api._cell_graph_executor if isinstance(called, nn.Cell) else called
    model = anf_ir_pb2.ModelProto()
    model.ParseFromString(executor._graph_executor.get_func_graph_proto(phase, "anf_ir", False))
    return model.graph


def _read(graph, parameters):
    """The operators in the order in which they depend on each other. Those that pass values on are left out."""
    numbers = {constant.key: constant.value.int_val for constant in graph.const_vals}
    made = {held.name: (parameters.get(held.name, held.name), 0) for held in graph.parameters}
    operators = []
    for node in graph.node:
        inputs = [made.get(read.name, None if read.name in numbers else (_LOST, 0)) for read in node.input]
        if node.op_type in _PASSED_ON:
            made[node.name] = inputs[0] if inputs else None
        elif node.op_type == "MakeTuple":
            made[node.name] = inputs
        elif node.op_type == "TupleGetItem":
            made[node.name] = _item(inputs[0], numbers.get(node.input[1].name), node.output_type)
        elif node.op_type in _NOT_SHOWN:
            made[node.name] = None
        else:
            kind = node.output_type
            types = [None] * len(kind.sequence_type.elem_types) if kind.HasField("sequence_type") else [kind]
            operator = Operator(node.op_type or _CALL, node.full_name, list(_flat(inputs)), types)
            operators.append(operator)
            made[node.name] = operator, 0
    return operators


def _item(held, index, kind):
    """One item of a tuple: of MakeTuple, or of an operator with several outputs, whose shape is known only here."""
    if index is None or held is None:
        return None
    if isinstance(held, list):
        return held[index] if index < len(held) else None
    if isinstance(held[0], Operator) and index < len(held[0].types):
        held[0].types[index] = kind
    return held[0], index


def _flat(inputs):
    for held in inputs:
        if isinstance(held, list):
            yield from _flat(held)
        elif held is not None:
            yield held


def _element(kind):
    from mindspore.train import anf_ir_pb2
    return anf_ir_pb2.DataType.Name(kind.tensor_type.elem_type or kind.data_type)[len("DT_"):]


def _type_text(kind):
    if kind is None or not kind.HasField("tensor_type"):
        return "?"
    lengths = ["%d" % dim.size if dim.size >= 0 else "?" for dim in kind.tensor_type.shape.dim]
    return "%s (%s%s)" % (_element(kind).lower(), ", ".join(lengths), "," if len(lengths) == 1 else "")


def _shape_of(kind):
    number = getattr(_lib, _element(kind), None)
    dims = tuple(dim.size for dim in kind.tensor_type.shape.dim)
    return None if number is None or any(dim < 0 for dim in dims) else (number, dims)


# ---- matching ----

def _matched(operators, rehearsed):
    """(compiled operator, watched node) of those that must compute the same: both read the same, and no other operator
    of that type and shape does, on either side.

    What is read is a parameter, or an operator that both sides have; other inputs (data, constants, an operator that
    one side lacks) are not compared. So each round knows more."""
    left = [operator for operator in operators if operator.phase == "forward"], list(rehearsed)
    found, paired, known, before = [], {}, {}, None  # known: Operator or Node -> what stands for it on both sides
    for _ in range(_MOST_ROUNDS):
        numbers, alike = {}, {}
        ours, theirs = [_numbered(side, known, numbers) for side in left]
        for number in set(ours) & set(theirs):
            pair = tuple(ours[number] + theirs[number])
            if len(ours[number]) == len(theirs[number]) == 1:
                found.append(pair)
                paired.update((made, pair) for made in pair)
            else:
                alike.update((made, number) for made in pair)
        if (len(found), len(alike)) == before:
            break
        before, known = (len(found), len(alike)), {**paired, **alike}
        left = [[made for made in side if made not in paired] for side in left]
    return found


def _numbered(side, known, numbers):
    """Number -> the operators that have it: all that are of one type and shape and read the same."""
    held = {}
    for made in side:
        inputs = made.inputs if isinstance(made, Operator) else made.edges
        read = tuple((source if _is_parameter(source) else known[source], slot) for source, slot in inputs
                     if _is_parameter(source) or source in known)
        if read:
            kind = made.operator[:-len("Ext")] if made.operator.endswith("Ext") else made.operator  # one has two names
            number = numbers.setdefault((kind, made.shape, read), len(numbers))
            held.setdefault(number, []).append(made)
    return held


def _is_parameter(source):
    return not isinstance(source, Operator) and source.kind in (_lib.WEIGHT, _lib.PARAMETER) \
        and source.operator != INPUT
