# SPDX-License-Identifier: MIT
"""The nodes that libgradb knows: parameters, the state of optimizers, gradients, updates, cells and operators.

A node's name has the path of its cell: `net/fc1/weight`, where `net` is the user's variable and `fc1` the name in the
parent cell. A gradient is `net/fc1/weight.grad`, an update `optimizer/Momentum/net/fc1/weight`."""
import ctypes

from .. import _lib, classes
from . import values

MAX_NODES = 1000000
_NO_TENSOR = _lib.Tensor(_lib.FLOAT32, 0, None, None, None)


class Node:
    """A node. get: returns its tensor at any time, for one whose value lasts; step: the last one in which it ran;
    shape: (type, lengths) of its first output, None: unknown; structs: of its outputs, for libgradb, and shapes:
    what they were made for, see operators."""
    __slots__ = ("id", "name", "kind", "operator", "phase", "get", "step", "edges", "shape", "shapes", "structs")

    def __init__(self, number, name, kind, operator, phase):
        self.id = number
        self.name = name
        self.kind = kind
        self.operator = operator
        self.phase = phase
        self.get = None
        self.step = 0
        self.edges = ()
        self.shape = self.shapes = self.structs = None


class Graph:
    """The nodes, by name and by number."""

    def __init__(self, library, handle):
        self._library = library
        self._handle = handle
        self.nodes = {}
        self.by_id = {}
        self._names = {}    # (scope, operator, site) -> names of those that run there in a step, in order
        self._counts = {}   # (scope, operator) -> how many names there are
        self.classes = classes.Classes()
        self.grown = False  # nodes were added since the last publishing

    def add(self, name, kind, operator, *, phase=_lib.NO_PHASE, inputs=(), outputs=(), attrs=(), stack=()):
        """The node of that name, made when there is none; None when it cannot be made.

        inputs: (Node, slot) pairs; outputs: a struct of values.shape_of per slot, None for an unknown one; attrs:
        (name, value) texts; stack: of stack.frames()."""
        node = self.nodes.get(name)
        if node is not None or len(self.by_id) >= MAX_NODES:
            return node
        attrs = (*attrs, *self.classes.attrs(name.rpartition("/")[0]))
        info = _lib.NodeInfo()
        info.name, info.type, info.kind, info.phase = _lib.text(name), _lib.text(operator), kind, phase
        info.inputs, info.input_count = _inputs(inputs)
        info.outputs = (_lib.Tensor * len(outputs))(*[tensor or _NO_TENSOR for tensor in outputs])
        info.output_count = len(outputs)
        info.attrs = (_lib.Attr * len(attrs))(*[_lib.Attr(_lib.text(key), _lib.text(value)) for key, value in attrs])
        info.attr_count = len(attrs)
        info.frames = (_lib.Frame * len(stack))(*[
            _lib.Frame(_lib.text(code.co_filename), line or 0, _lib.text(code.co_name), library)
            for code, line, library in stack])
        info.frame_count = len(stack)
        number = self._library.gradb_add_node(self._handle, ctypes.byref(info))
        if number == 0:
            return None
        node = self.nodes[name] = Node(number, name, kind, operator, phase)
        if kind != _lib.COMPILED:  # those have no values
            self.by_id[number] = node
        node.edges = tuple(inputs)
        if outputs and outputs[0] is not None:
            node.shape = outputs[0].dtype, tuple(outputs[0].shape[:outputs[0].rank])
        self.grown = True
        return node

    def name_of(self, scope, operator, site, ordinal):
        """The name of the operator that runs in its scope, at that site of the user's code, for the ordinal-th time in
        a step."""
        names = self._names.setdefault((scope, operator, site), [])
        while len(names) <= ordinal:
            number = self._counts[(scope, operator)] = self._counts.get((scope, operator), -1) + 1
            names.append((scope + "/" if scope else "") + operator + ("_%d" % number if number else ""))
        return names[ordinal]

    def set_inputs(self, node, inputs):
        """Updates what a node reads."""
        inputs = tuple(inputs)
        if inputs != node.edges:
            node.edges = inputs
            change = getattr(self._library, "gradb_set_inputs", None)
            if change is not None:
                change(self._handle, node.id, *_inputs(inputs))

    def set_attr(self, node, name, value):
        """Gives a node's attribute a value."""
        self._library.gradb_set_attr(self._handle, node.id, _lib.text(name), _lib.text(value))

    def add_lasting(self, name, kind, operator, get, tensor, *, attrs=(), phase=_lib.NO_PHASE, inputs=()):
        """A node whose only value is what get() returns at any time. tensor: for its type and shape."""
        node = self.add(name, kind, operator, phase=phase, inputs=inputs, outputs=(values.shape_of(tensor),),
                        attrs=attrs)
        if node is not None and node.get is None:
            node.get = get
            self._library.gradb_lasts(self._handle, node.id)
            if operator == "Buffer":
                self.changes_anytime(node)
        return node

    def changes_anytime(self, node):
        """A node without a phase whose value may change in any of them."""
        if hasattr(self._library, "gradb_momentary"):
            self._library.gradb_momentary(self._handle, node.id)

    def publish(self):
        """Shows the debugger the nodes that were added."""
        if self.grown:
            self.grown = False
            self._library.gradb_publish(self._handle)

    def unused_name(self, name):
        """The name, or with a number where a node has it."""
        base, count = name, 0
        while name in self.nodes:
            count += 1
            name = "%s_%d" % (base, count)
        return name


def _inputs(edges):
    told = [edge for edge in edges if edge is not None]
    return (_lib.Input * len(told))(*[_lib.Input(node.id, slot, False) for node, slot in told]), len(told)
