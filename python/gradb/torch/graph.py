# SPDX-License-Identifier: MIT
"""The graph as it runs: nodes by name, edges by tensor identity.

A name is a scope path, an operator and, from the second one on, an ordinal. It belongs to a call in the program: what
one place in the user's code (stack.site) runs for the k-th time in a step is the same node in each step, wherever a
step begins. Ordinals are given in order of appearance.

A tensor's producer is found by the identity of the tensor; for a tensor that was written in place, or through a view,
it is the last writer of its base."""
import ctypes

from .. import _lib, classes, native
from . import places, stack
from .swapping import Ref
from .values import version_of

MAX_NODES = 4000000
MAX_INPUTS = 4096
_MAX_SIGNATURES = 64
_NAMES_TOLD = 3
EVALUATION = "eval"  # scope of what runs in evaluation
DATA = "data"        # scope of what a DataLoader runs
MICRO_BATCH = "micro_batch"  # attribute: the number of the micro-batch


class Node(native.base("Node")):
    """A node. The debugger knows it when `id` is not 0 (else it is latent, see Graph._latent).

    outputs: number of slots; step: the last one in which it ran; runs: how often its inputs were recorded;
    foreign: argument's position -> node, for arguments from outside; mark: what it leaves on its grad_fn;
    aside: it belongs to an evaluation, or to a DataLoader;
    wants: what the debugger wants of it, answered when Words.changes was `asked`;
    places: the places.Places of its outputs; backward: the name of its backward node, once there is one;
    edges: (Node, slot) of what it read the last time, None for an argument without a node;
    outside: it is a tensor from outside;
    learnt: everything is known of it; only its edges are still compared when it runs;
    gradient: of a parameter's node, the node of its gradient; said: attributes, until it is published;
    batch: the micro-batch that it belongs to, from 1; None: it runs outside of the passes of the training; 0: neither,
    or unknown."""
    __slots__ = native.slots("Node", (
        "id", "name", "phase", "kind", "outputs", "step", "stack", "scope", "operator", "runs", "foreign", "mark",
        "edges", "aside", "asked", "wants", "places", "backward", "learnt", "gradient", "outside")) + ("said", "batch")

    def __init__(self, number, name, phase, kind, outputs):
        self.id = number
        self.name = name
        self.phase = phase
        self.kind = kind
        self.outputs = outputs
        self.step = 0
        self.stack = ()
        self.scope = self.operator = ""
        self.runs = 0
        self.foreign = None
        self.aside = False
        self.asked = -1
        self.wants = 0
        self.places = None
        self.backward = None
        self.learnt = False
        self.outside = False
        self.gradient = None
        self.mark = None
        self.edges = ()
        self.said = ()
        self.batch = 0


class _Family(native.base("Family")):
    """The nodes of one call: of an operator in a scope, called from one site. count: how many ran in `step`."""
    __slots__ = native.slots("Family", ("nodes", "step", "count"))

    def __init__(self):
        self.nodes = []
        self.step = -1
        self.count = 0


class _Again:
    """What was recomputed in the step. ran: the nodes of the forward passes by (scope, operator), in order; counts: how
    many of each were recomputed; seen: how many of the step's nodes are in `ran`."""
    __slots__ = ("step", "seen", "ran", "counts")

    def __init__(self, step):
        self.step = step
        self.seen = 0
        self.ran = {}
        self.counts = {}


class Graph(native.base("Graph")):
    """The nodes, the ordinals of the running step, and the producers of tensors.

    An origin says what made a tensor: (weak reference, version, node, slot). The node is None for memory that nobody
    has written yet."""

    def __init__(self, library, handle):
        self._library = library
        self._handle = handle
        self.nodes = {}     # name -> Node
        self.by_id = {}     # number -> Node
        self.step = 0
        self.ran = []        # numbers of the nodes that ran in this step
        self._families = {}  # (scope, operator, site), or the name of a backward node -> _Family
        self._named = {}     # (scope, operator) -> how many nodes have that name
        self._again = _Again(0)
        self._origins = {}   # id(tensor) -> origin, of this step
        self._before = {}    # the same for the previous step: hidden states are carried over
        self._lasting = {}   # the same for parameters and whatever else outlives a step
        self._writers = {}   # id(base) -> origin of the last write in place, of this step
        self._signatures = {}  # set of the nodes of a step -> the step
        self._last = None    # (set of nodes, number) of the step that was watched last
        self._last_ran = []  # what ran in it
        self._passes = 1     # counted down from -2, of evaluations
        self.novel = -1      # the last step with a new operator, whose outputs others may read
        self.grown = False   # nodes were added since the last publishing
        self.makers = {}     # type of a grad_fn -> forward nodes whose results have one
        self.bare = {}       # id(tensor) -> weak reference: x.data of a tensor that needs a gradient, in this step
        self.classes = classes.Classes()
        self.origin_of = None  # see native.Context: for what backward nodes have made without Python
        self.leaked = 0      # the last step in which memory was handed out, so that writes may go unnoticed

    def begin_step(self, step):
        """Begins a step. Outputs of the previous step stay known for one more step."""
        self.step = step
        self.ran = []
        self._before, self._origins = self._origins, {}
        self._writers = {}
        self.bare = {}

    def is_bare(self, tensor):
        """Whether it is x.data of a tensor that needs a gradient."""
        found = self.bare.get(id(tensor))
        return found is not None and found() is tensor

    def is_quiet(self):
        """Whether nothing has run in this step or the previous one."""
        return not (self.ran or self._before or self._origins or self._writers)

    # ---- names ----

    def new_pass(self):
        """In an evaluation: what runs from here on are the same nodes again."""
        self._passes += 1
        self.step = -self._passes

    def next_of(self, scope, operator, site=0):
        """The node of the next such operator that this site runs in this step (0: any site); a latent one when there is
        none yet."""
        family = self._families.get((scope, operator, site))
        if family is None:
            family = self._families[(scope, operator, site)] = _Family()
        if family.step != self.step:
            family.step = self.step
            family.count = 0
        ordinal = family.count
        nodes = family.nodes
        if ordinal == len(nodes):
            nodes.append(self._latent(scope, operator))
            nodes[ordinal].batch = stack.batch_of(site)
        family.count = ordinal + 1  # set last: an interrupt may come anywhere
        return nodes[ordinal]

    def known_of(self, scope, operator, site):
        """The same when everything is known of that node; else None, and nothing is counted."""
        family = self._families.get((scope, operator, site))
        if family is None:
            return None
        ordinal = family.count if family.step == self.step else 0
        if ordinal >= len(family.nodes) or not family.nodes[ordinal].learnt or self.novel == self.step:
            return None
        family.step = self.step
        family.count = ordinal + 1
        return family.nodes[ordinal]

    def next_pass_of(self, name, own):
        """The backward node of that name, for a backward.PassNode. When several passes of this step go through it,
        NAME.2 is the node of the second."""
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = _Family()
        if family.step != self.step:
            family.step = self.step
            family.count = 0
        ordinal = family.count
        if ordinal == len(family.nodes):
            node = _unknown(name if ordinal == 0 else "%s.%d" % (name, ordinal + 1), own.scope, own.operator)
            node.batch = own.mark.node.batch or 0 if ordinal == 0 and own.mark is not None and own.mark.node else 0
            family.nodes.append(node)
        family.count = ordinal + 1
        return family.nodes[ordinal]

    def again_of(self, scope, operator):
        """The forward node of an operator that is recomputed in the backward pass (activation checkpointing); None when
        there was none."""
        again = self._again
        if again.step != self.step:
            again = self._again = _Again(self.step)
        while again.seen < len(self.ran):
            node = self.by_id[self.ran[again.seen]]
            again.ran.setdefault((node.scope, node.operator), []).append(node)
            again.seen += 1
        ordinal = again.counts.get((scope, operator), 0)
        again.counts[(scope, operator)] = ordinal + 1
        nodes = again.ran.get((scope, operator), ())
        return nodes[ordinal] if ordinal < len(nodes) else None

    def _latent(self, scope, operator):
        ordinal = self._named.get((scope, operator), 0)
        self._named[(scope, operator)] = ordinal + 1
        name = scope + "/" + operator if scope else operator
        return _unknown(name if ordinal == 0 else "%s_%d" % (name, ordinal), scope, operator)

    # ---- nodes ----

    def add(self, name, kind, *, operator, phase=_lib.NO_PHASE, inputs=(), outputs=(), attrs=(), stack=()):
        """The node of that name, made when there is none; None when it cannot be made. See settle."""
        node = self.nodes.get(name)
        if node is None:
            node = Node(0, name, phase, kind, len(outputs))
            node.operator = operator
            if not self.settle(node, kind, phase=phase, inputs=inputs, outputs=outputs, attrs=attrs, stack=stack):
                return None
        return node

    def settle(self, node, kind, *, phase=_lib.NO_PHASE, inputs=(), outputs=(), attrs=(), stack=(), type=None):
        """Adds a latent node to the debugger's graph. Returns whether it could.

        inputs: as Node.edges; outputs: one Tensor struct per slot, None for one that cannot be read, False for no
        tensor; attrs: (name, value) texts; stack: from stack.frames(); type: None for the operator's name."""
        if len(self.by_id) >= MAX_NODES or node.name in self.nodes:
            return False
        info = _lib.NodeInfo()
        info.name = _lib.text(node.name)
        info.type = _lib.text(type or node.operator)
        info.kind = kind
        info.phase = phase
        if node.batch is None or node.batch > 0:
            attrs = [*attrs, (MICRO_BATCH, str(node.batch or "none"))]
        info.inputs, info.input_count = _inputs(inputs)
        attrs = (*attrs, *self.classes.attrs(node.scope or node.name.rpartition("/")[0]))
        info.outputs = (_lib.Tensor * len(outputs))(*[
            places.NO_TENSOR if tensor is False else tensor or places.NOT_TOLD for tensor in outputs])
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
            return False
        node.id, node.kind, node.phase, node.outputs, node.stack = number, kind, phase, len(outputs), stack
        node.edges = tuple(inputs)
        self.nodes[node.name] = node
        self.by_id[number] = node
        self.grown = True
        return True

    def set_attr(self, node, name, value):
        """Changes an attribute of a node that the debugger knows."""
        if hasattr(self._library, "gradb_set_attr"):
            self._library.gradb_set_attr(self._handle, node.id, _lib.text(name), _lib.text(value))

    def set_inputs(self, node, inputs):
        """Updates what a known node reads. inputs: as Node.edges."""
        inputs = tuple(inputs)
        if inputs != node.edges:
            node.edges = inputs
            change = getattr(self._library, "gradb_set_inputs", None)
            if change is not None:
                change(self._handle, node.id, *_inputs(inputs))

    # ---- who made a tensor ----

    def produced(self, tensor, node, slot, lasting=False):
        """Records that `tensor` is the output of that slot. Returns its origin."""
        try:
            version = tensor._version
        except RuntimeError:  # like version_of
            version = 0
        origin = (Ref(tensor), version, node, slot)
        (self._lasting if lasting else self._origins)[id(tensor)] = origin
        return origin

    def wrote(self, tensor, node, slot):
        """Records that the node has written the tensor in place, and with it all views of the same memory. Returns its
        origin."""
        origin = self.produced(tensor, node, slot)
        base = tensor._base
        if base is None:
            base = tensor
        self._writers[id(base)] = (Ref(base), origin[1], node, slot)
        return origin

    def producer(self, tensor):
        """The origin of a tensor: what made it or wrote to it last; None when it came from outside."""
        key = id(tensor)
        found = self._origins.get(key)
        if found is None or found[0]() is not tensor:
            found = self._lasting.get(key)
            if found is None or found[0]() is not tensor:
                found = self._before.get(key)
                if found is not None and found[0]() is not tensor:
                    found = None
                elif found is not None:
                    self._origins[key] = found  # what is used in every step stays known
        seen = self.origin_of(tensor) if self.origin_of is not None else None
        if seen is not None and (found is None or found[1] < seen[1]):
            found = self._origins[key] = seen
        if self._writers and (found is None or found[1] != version_of(tensor)):
            found = self._last_writer(tensor, found)
        return found

    def _last_writer(self, tensor, found):
        base = tensor._base
        if base is None:
            base = tensor
        writer = self._writers.get(id(base))
        if writer is None or writer[0]() is not base or (found is not None and writer[1] <= found[1]):
            return found
        return writer

    def let_go(self, tensor):
        """The tensor gets another value, which nobody here has made. Returns the origins that it had, except a lasting
        one, which stays."""
        found = [table.pop(id(tensor), None) for table in (self._origins, self._before, self._writers)]
        if self.origin_of is not None:
            found.append(self.origin_of(tensor))
        return [origin for origin in found if origin is not None and origin[0]() is tensor]

    def forget(self, tensor):
        """A parameter is no longer reached by its name."""
        self._lasting.pop(id(tensor), None)

    def holder(self, tensor):
        """The node of a parameter or buffer, whatever wrote to it last; None for other tensors."""
        found = self._lasting.get(id(tensor))
        return found[2] if found is not None and found[0]() is tensor else None

    # ---- change ----

    def changes(self):
        """At the end of a step that was watched from its beginning: says what differs from the previous watched step,
        when this set of nodes is new; else None.

        Evaluation, which runs only now and then, does not count. Nor do tensors from outside: one that lives on is
        reported again only after a step that was not watched."""
        if self._last is not None and self.ran == self._last_ran:  # nearly always: only the step differs
            self._last = self._last[0], self.step
            return None
        now = frozenset(number for number in self.ran if self.by_id[number].operator != "Input")
        last, self._last = self._last, (now, self.step)
        self._last_ran = list(self.ran)
        if self.step <= 1:  # the script's setup runs in it too
            self._last = None
        if now in self._signatures:
            return None
        if len(self._signatures) < _MAX_SIGNATURES:
            self._signatures[now] = self.step
        if last is None:
            return None
        missing, new = sorted(last[0] - now), sorted(now - last[0])
        parts = [self._listed(missing, "%s of step %d did not run" % (_nodes(missing), last[1])),
                 self._listed(new, "%s ran that did not run in step %d" % (_nodes(new), last[1]))]
        return "; ".join(part for part in parts if part) or None

    def _listed(self, numbers, text):
        if not numbers:
            return ""
        names = ", ".join(self.by_id[number].name for number in numbers[:_NAMES_TOLD])
        return "%s: %s%s" % (text, names, ", ..." if len(numbers) > _NAMES_TOLD else "")


def _inputs(edges):
    """libgradb's array of these edges, and its length."""
    told = [(edge[0].id, edge[1]) for edge in edges if edge is not None and edge[0].id][:MAX_INPUTS]
    return (_lib.Input * len(told))(*[_lib.Input(number, slot, False) for number, slot in told]), len(told)


def _unknown(name, scope, operator):
    """A node that the debugger does not know yet."""
    node = Node(0, name, _lib.NO_PHASE, _lib.OTHER, 0)
    node.scope, node.operator = scope, operator
    node.aside = scope.split("/", 1)[0] in (EVALUATION, DATA)
    return node


def _nodes(numbers):
    return "1 node" if len(numbers) == 1 else "%d nodes" % len(numbers)
