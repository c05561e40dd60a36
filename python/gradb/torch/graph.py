# SPDX-License-Identifier: MIT
"""The graph as it runs: nodes by name, edges by tensor identity.

A name is a scope path, an operator and, from the second time in a step on, an ordinal: it is the same
in each step as long as control flow is. A tensor's producer is found by the identity of the tensor; of a
tensor that was written in place, or through a view, by that of the last writer of its base.
"""
import ctypes
import weakref

from .. import _lib

MAX_NODES = 4000000
MAX_INPUTS = 4096


class Node:
    """A node that the debugger knows of. outputs: its slots; step: the last one in which it ran."""
    __slots__ = ("id", "name", "phase", "kind", "outputs", "step", "stack")

    def __init__(self, number, name, phase, kind, outputs):
        self.id = number
        self.name = name
        self.phase = phase
        self.kind = kind
        self.outputs = outputs
        self.step = 0
        self.stack = ()


class _Origin:
    """Who made a tensor: ref to it, node, slot, and the count of writes at that time."""
    __slots__ = ("ref", "node", "slot", "version")

    def __init__(self, ref, node, slot, version):
        self.ref = ref
        self.node = node
        self.slot = slot
        self.version = version


class Graph:
    """Node table, ordinals of the running step, and producers of tensors."""

    def __init__(self, library, handle):
        self._library = library
        self._handle = handle
        self.nodes = {}     # name -> Node
        self.by_id = {}     # number -> Node
        self._ordinals = {}  # (scope, operator) -> how often in this step
        self._origins = {}   # id(tensor) -> _Origin, of this step
        self._lasting = {}   # likewise, of parameters and what else outlives a step
        self._writers = {}   # id(base) -> _Origin of the last write in place
        self.grown = False   # nodes were added since they were published

    def begin_step(self):
        """Forgets what belongs to the step that is over."""
        self._ordinals.clear()
        self._origins.clear()
        self._writers.clear()

    def next_name(self, scope, operator):
        """The name of the next such operator of this step."""
        key = (scope, operator)
        ordinal = self._ordinals.get(key, 0)
        self._ordinals[key] = ordinal + 1
        name = scope + "/" + operator if scope else operator
        return name if ordinal == 0 else "%s_%d" % (name, ordinal)

    # ---- nodes ----

    def add(self, name, kind, *, operator, phase=_lib.NO_PHASE, inputs=(), outputs=(), attrs=(), stack=()):
        """The node of that name, made when there is none yet; None when it cannot be.

        inputs: (node number, slot) pairs; outputs: one Tensor struct or None per slot; attrs: (name,
        value) texts; stack: what stack.frames() gave."""
        node = self.nodes.get(name)
        if node is not None:
            return node
        if len(self.nodes) >= MAX_NODES:
            return None
        info = _lib.NodeInfo()
        info.name = _lib.text(name)
        info.type = _lib.text(operator)
        info.kind = kind
        info.phase = phase
        inputs = inputs[:MAX_INPUTS]
        info.inputs = (_lib.Input * len(inputs))(*[_lib.Input(number, slot, False) for number, slot in inputs])
        info.input_count = len(inputs)
        unknown = _lib.Tensor(_lib.FLOAT32, 0, None, None, None)
        info.outputs = (_lib.Tensor * len(outputs))(*[tensor or unknown for tensor in outputs])
        info.output_count = len(outputs)
        info.attrs = (_lib.Attr * len(attrs))(*[_lib.Attr(_lib.text(key), _lib.text(value))
                                                for key, value in attrs])
        info.attr_count = len(attrs)
        info.frames = (_lib.Frame * len(stack))(*[
            _lib.Frame(_lib.text(code.co_filename), line or 0, _lib.text(code.co_name), library)
            for code, line, library in stack])
        info.frame_count = len(stack)
        number = self._library.gradb_add_node(self._handle, ctypes.byref(info))
        if number == 0:
            return None
        node = Node(number, name, phase, kind, len(outputs))
        node.stack = stack
        self.nodes[name] = node
        self.by_id[number] = node
        self.grown = True
        return node

    def add_inputs(self, node, inputs):
        """Edges that were not known when the node was made."""
        array = (_lib.Input * len(inputs))(*[_lib.Input(number, slot, False) for number, slot in inputs])
        self._library.gradb_add_inputs(self._handle, node.id, array, len(inputs))
        self.grown = True

    # ---- who made a tensor ----

    def produced(self, tensor, node, slot, lasting=False):
        """From now on `tensor` is the output of that slot."""
        origin = _Origin(weakref.ref(tensor), node, slot, _version(tensor))
        (self._lasting if lasting else self._origins)[id(tensor)] = origin
        if origin.version:
            base = tensor._base
            if base is None:
                base = tensor
            self._writers[id(base)] = _Origin(weakref.ref(base), node, slot, origin.version)

    def producer(self, tensor):
        """(node, slot) that made it or wrote to it last; None when it came from outside."""
        found = None
        for table in (self._origins, self._lasting):
            origin = table.get(id(tensor))
            if origin is not None and origin.ref() is tensor:
                found = origin
                break
        version = _version(tensor)
        if version and (found is None or found.version != version):
            base = tensor._base
            if base is None:
                base = tensor
            writer = self._writers.get(id(base))
            if writer is not None and writer.ref() is base and (found is None or writer.version > found.version):
                found = writer
        return (found.node, found.slot) if found is not None else None


def _version(tensor):
    """How often it was written in place; 0 for those that do not count (inference mode)."""
    try:
        return tensor._version
    except RuntimeError:
        return 0
