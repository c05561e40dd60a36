# SPDX-License-Identifier: MIT
"""The nodes of networks and optimizers: parameters, their gradients, the state and the updates of optimizers, and the
cells that use them.

A network is found when an optimizer is made that trains it: it is the user's variable whose cell has most of the
optimizer's parameters. A parameter that no variable reaches has the name that MindSpore gives it."""
import weakref

from mindspore import Parameter, ParameterTuple, Tensor, nn

from .. import _lib
from . import stack, values
from .guard import guarded

STATISTICS = ("moving_mean", "moving_variance")  # of normalizations: they are not trained


class Optimizer:
    """What is known of one optimizer. updates: (parameter, its node, its gradient's node, the node of its update), in
    the order of the gradients."""

    def __init__(self, optimizer, name):
        self.reference = weakref.ref(optimizer)
        self.name = name
        self.updates = []
        self.count = None   # what its counter was; None: unknown
        self.stepped = None  # in which step it stepped last; None: unknown


class Parameters:
    """Makes and finds the nodes."""

    def __init__(self, agent):
        self.agent = agent
        self.optimizers = []   # Optimizer, in the order in which they were made
        self.gradients = {}    # id(parameter) -> its gradient of the running step
        self._ties = {}   # number of a node -> its other names
        self._nodes = {}       # id(parameter) -> (weak reference, Node)
        self._roots = {}       # name -> weak reference to a cell
        self._paths = {}       # id(cell) -> (weak reference, path)

    # ---- networks ----

    def path_of(self, cell):
        """The path of a cell of a known network; None for others."""
        found = self._paths.get(id(cell))
        return found[1] if found is not None and found[0]() is cell else None

    def scope_of(self, cell):
        """The path of a cell that runs. One that belongs to no known network, like a loss, has the name of the user's
        variable that holds it; None: no variable does."""
        found = self._paths.get(id(cell))
        if found is not None and found[0]() is cell:
            return found[1]
        name = next((name for name, held in stack.cells(2) if held is cell), None)
        if name is None or any(self.path_of(child) is not None for _, child in cell.cells_and_names()):
            self._paths[id(cell)] = (weakref.ref(cell), None)  # around a network, or without a name
            return None
        return self.add_root(cell, name)

    def add_root(self, cell, name):
        """Names a network, its cells and its parameters, unless it is known."""
        known = self.path_of(cell)
        if known is not None:
            return known
        base, count = name, 1
        while name in self._roots and self._roots[name]() is not None:
            name = "%s_%d" % (base, count)
            count += 1
        self._roots[name] = weakref.ref(cell)
        for path, child in cell.cells_and_names():
            path = _joined(name, path)
            if self.path_of(child) is None:
                self._paths[id(child)] = (weakref.ref(child), path)
                self.agent.graph.classes.of[path] = type(child).__name__
            for parameter in own(child):
                self._add_parameter(parameter, path, child)
            for key, buffer in getattr(child, "_buffers", {}).items():
                if isinstance(buffer, Tensor):
                    self.agent.graph.add_lasting(_joined(path, key), _lib.PARAMETER, "Buffer", weakref.ref(buffer),
                                                 buffer)
        return name

    def cells(self):
        """(cell, path) of the known networks."""
        held = [(reference(), path) for reference, path in self._paths.values()]
        return [(cell, path) for cell, path in held if cell is not None and not isinstance(cell, nn.Optimizer)]

    def roots(self):
        """The known networks."""
        return [cell for cell in (reference() for reference in self._roots.values()) if cell is not None]

    def cell_at(self, path):
        """The cell of that path, or None."""
        return next((reference() for reference, place in self._paths.values() if place == path), None)

    def inputs_of(self, cell):
        """(Node, 0) of a cell's own parameters."""
        nodes = [self.node_of(parameter) for parameter in own(cell)]
        return [(node, 0) for node in nodes if node is not None]

    @staticmethod
    def variable_of(cell):
        """The name of the user's variable that holds a network, or "net"."""
        return next((name for name, held in stack.cells(2) if held is cell), "net")

    def discover(self, optimizer):
        """Names the networks that hold the optimizer's parameters after the variables in the user's frames."""
        wanted = {id(parameter) for parameter in optimizer.parameters if self.node_of(parameter) is None}
        found = {}
        for name, cell in stack.cells(2):
            if id(cell) not in found and cell is not optimizer and not isinstance(cell, nn.Optimizer):
                held = {id(parameter) for parameter in cell.get_parameters()}
                if held & wanted:
                    found[id(cell)] = (name, cell, held)
        while wanted and found:
            best = max(found.values(), key=lambda item: (len(item[2] & wanted), -_size(item[1])))
            if not best[2] & wanted:
                break
            self.add_root(best[1], best[0])
            wanted -= best[2]
            del found[id(best[1])]

    # ---- parameters ----

    def node_of(self, parameter):
        """The node of a parameter, or None."""
        found = self._nodes.get(id(parameter))
        return found[1] if found is not None and found[0]() is parameter else None

    def all(self):
        """(parameter, node) of those that have memory."""
        held = [(reference(), node) for reference, node in self._nodes.values()]
        return [(parameter, node) for parameter, node in held
                if parameter is not None and not getattr(parameter, "has_init", False)]

    def paths(self):
        """The paths of all cells of known networks that exist."""
        return sorted({path for reference, path in self._paths.values() if path and reference() is not None})

    def _tie(self, node, name):
        """Another cell has the parameter, too."""
        names = self._ties.setdefault(node.id, [])
        if name not in names and name not in self.agent.graph.nodes and hasattr(self.agent.library, "gradb_set_attr"):
            names.append(name)
            self.agent.graph.set_attr(node, "tied to", ", ".join(names))

    def _add_parameter(self, parameter, path=None, cell=None):
        known = self.node_of(parameter)
        if known is not None:
            for key, held in cell._params.items() if cell is not None else ():
                if held is parameter and _joined(path, key) != known.name:
                    self._tie(known, _joined(path, key))
            return known
        leaf = parameter.name.rsplit(".", 1)[-1]
        if cell is not None:
            leaf = next((key for key, held in cell._params.items() if held is parameter), leaf)
            name = _joined(path, leaf)
        else:
            name = parameter.name.replace(".", "/")
        is_state = leaf in STATISTICS or parameter.dtype not in values.FLOATS
        attrs = [("name", parameter.name)]
        if not parameter.requires_grad and not is_state:
            attrs.append(("frozen", "requires_grad was False when it was first seen"))
        reference = weakref.ref(parameter)
        node = self.agent.graph.add_lasting(
            self.agent.graph.unused_name(name), _lib.PARAMETER if is_state else _lib.WEIGHT,
            "Buffer" if is_state else "Parameter", reference, parameter, attrs=attrs)
        if node is not None:
            self._nodes[id(parameter)] = (reference, node)
        return node

    def to_save(self):
        """name -> parameter of the networks and optimizers, under the names that they have in MindSpore."""
        held = {}
        for parameter in [parameter for parameter, _ in self.all()] + [
                parameter for _, optimizer in self.living() for parameter in optimizer.get_parameters()]:
            if not any(parameter is known for known in held.values()) and not getattr(parameter, "has_init", False):
                node = self.node_of(parameter)
                name = parameter.name if parameter.name not in held or node is None else node.name
                held.setdefault(name, parameter)
        return held

    # ---- optimizers ----

    def known(self, optimizer):
        """The Optimizer record of an optimizer, or None."""
        return next((known for known in self.optimizers if known.reference() is optimizer), None)

    def living(self):
        """(record, optimizer) of all optimizers that exist."""
        pairs = [(known, known.reference()) for known in self.optimizers]
        return [(known, optimizer) for known, optimizer in pairs if optimizer is not None]

    @guarded
    def made(self, optimizer):
        """An optimizer was made: names it, and makes the nodes of its parameters."""
        known = self.known(optimizer)
        if known is not None:
            return
        self.discover(optimizer)
        base = name = type(optimizer).__name__
        count = 0
        while any(other.name == name and other.reference() is not None for other in self.optimizers):
            count += 1
            name = "%s_%d" % (base, count)
        known = Optimizer(optimizer, name)
        self.optimizers.append(known)
        for parameter in optimizer.parameters:
            weight = self._add_parameter(parameter)
            if weight is not None:
                self._add_gradient(parameter, weight)

    def complete(self, known, optimizer):
        """Adds what exists only when the optimizer is used: its state and its updates. Does so once."""
        if known.updates:
            return
        states = _states(optimizer)
        graph = self.agent.graph
        frames = stack.frames(2)
        for index, parameter in enumerate(optimizer.parameters):
            weight = self._add_parameter(parameter)
            if weight is None:
                continue
            gradient = self._add_gradient(parameter, weight)
            full = "optimizer/%s/%s" % (known.name, weight.name)
            inputs = [(weight, 0)] + ([(gradient, 0)] if gradient is not None else [])
            for key, held in states:
                state = graph.add_lasting("%s.%s" % (full, key), _lib.PARAMETER, "State", _item(held, index),
                                          held[index])
                if state is not None:
                    inputs.append((state, 0))
            update = graph.add(full, _lib.OTHER, type(optimizer).__name__, phase=_lib.OPTIMIZER, inputs=inputs,
                               outputs=(values.shape_of(parameter),), stack=frames)
            if update is not None:
                update.get = weight.get
                self.agent.library.gradb_lasts(self.agent.handle, update.id)
            known.updates.append((weakref.ref(parameter), weight, gradient, update))
        graph.publish()

    def _add_gradient(self, parameter, weight):
        reference, gradients = weakref.ref(parameter), self.gradients

        def get():
            held = reference()
            return gradients.get(id(held)) if held is not None else None
        return self.agent.graph.add_lasting(weight.name + ".grad", _lib.GRADIENT, "Gradient", get, parameter,
                                            phase=_lib.BACKWARD)


def _item(held, index):
    """A function that returns one tensor of a tuple."""
    return lambda: held[index]


def _states(optimizer):
    """(name, tuple) of the state that an optimizer keeps for each parameter."""
    count = len(optimizer.parameters)
    found = []
    for key, held in list(vars(optimizer).items()) + list(optimizer.__dict__.get("_params_list", {}).items()):
        if isinstance(held, ParameterTuple) and len(held) == count and held is not optimizer.parameters \
                and key not in ("_parameters", "cache_enable") and held[0] is not optimizer.parameters[0]:
            key = key.lstrip("_")
            if key not in [name for name, _ in found]:
                found.append((key, held))
    return found


def own(cell):
    """A cell's own parameters."""
    return [parameter for parameter in cell._params.values() if isinstance(parameter, Parameter)]


def _size(cell):
    return sum(1 for _ in cell.cells_and_names())


def _joined(path, name):
    name = name.replace(".", "/")
    return path + "/" + name if path and name else path or name
