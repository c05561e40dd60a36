# SPDX-License-Identifier: MIT
"""The structure of a network: residual connections and activations that are missing, pooling over the channels, scores
of attention that are not scaled."""
import ast
import collections
import re

from . import Watcher, piece, trace
from .source_lines import sources_of

_PIECES = 16
_MOST = 8192      # operators of a step that are examined
_BLOCKS = 8       # modules of a kind that are examined
_STEPS = 2        # steps whose blocks are examined
_SCORES = 3       # weights of attention that are examined: those of the first steps
_SHORT = 12       # operators back from a pooling to the layer that made the channels
_ADDS = frozenset(("add", "iadd", "add_"))
_WEIGHTED = frozenset(("linear", "conv1d", "conv2d", "conv3d", "matmul", "bmm", "einsum",
                       "multi_head_attention_forward", "scaled_dot_product_attention"))
_BENT = frozenset(("relu", "relu_", "gelu", "silu", "tanh", "sigmoid", "elu", "leaky_relu", "mish", "softmax",
                   "scaled_dot_product_attention", "multi_head_attention_forward"))
_POOLS = frozenset(("mean", "amax", "max", "adaptive_avg_pool1d", "adaptive_max_pool1d"))
_CONVS = frozenset(("conv1d", "conv2d", "conv3d"))
_LASTS = frozenset(("layer_norm", "rms_norm", "multi_head_attention_forward", "linear", "embedding", "lstm", "gru"))
_LINEAR = trace.SAME | {"dropout", "add", "iadd", "masked_fill", "masked_fill_", "where"}
_SCALES = frozenset(("mul", "div", "imul", "idiv", "mul_", "div_", "truediv", "layer_norm", "rms_norm", "normalize"))
_PRODUCTS = frozenset(("matmul", "bmm", "einsum", "baddbmm"))
_NAMED = re.compile(r"(?i)^_*(pre|post)?(res|resid|residual|skip)_*(net|conv|mlp|dense)?_*"
                    r"(block|layer|unit|module|cell|stage|wrapper|add|connection)?\d*$")


class Structure(Watcher):
    """Follows what blocks compute of their inputs."""

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._found = {}
        self._pooled = []    # (Made, size of what remains) of this step
        self._scored = 0     # weights of attention that were examined
        self._looked = 0     # steps whose blocks were examined
        self._unread = None  # what the source says, once read

    def begins(self, step):
        """Forgets the previous step."""
        self.trace.begins(step)
        self._pooled = []

    def _add(self, kind, where, **numbers):
        key = kind, where.get("file"), where.get("line")
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _PIECES:
                return
            found = self._found[key] = piece(kind, where, steps=0)
        found["steps"] += 1
        found.update(numbers)

    def operator(self, call):
        """Looks at poolings, and at layers that read them."""
        made = self.trace.see(call)
        if made is None or not made.grad or not call.is_forward():
            return
        if call.name in _POOLS:
            self._pools(call, made)
        elif call.name == "softmax" and self._scored < _SCORES:
            self._scores(call, made)
        elif call.name == "linear" and self._pooled:
            source = made.first()
            for _ in range(_SHORT):
                if source is None or source.name not in trace.SAME | {"relu", "dropout", "layer_norm", "squeeze"}:
                    break
                source = source.first()
            for pooled, channels, shape in self._pooled:
                if pooled is source:
                    self._add("channel-pool", pooled.where(), operator=pooled.name, channels=channels,
                              shape="(%s)" % ", ".join(map(str, shape)))

    def _pools(self, call, made):
        """A mean over the channels only, which leaves the places."""
        given = made.first()
        rank = len(given.shape) if given is not None else 0
        dim = call.given(1, "dim", call.given(1, "axis"))
        dim = dim[0] if isinstance(dim, (tuple, list)) and len(dim) == 1 else dim
        if call.name.startswith("adaptive"):
            if rank != 3 or made.shape[-1] != 1:
                return
            dim = 2
        if not isinstance(dim, int) or isinstance(dim, bool) or rank not in (3, 4) or \
                (call.given(2, "keepdim", False) is True and not call.name.startswith("adaptive")):
            return
        maker = given
        for _ in range(_SHORT):
            if maker is None or maker.name in _CONVS or maker.name in _LASTS:
                break
            if maker.name in ("transpose", "permute", "mT", "movedim", "swapaxes", "reshape", "view", "einsum"):
                return  # the channels may be anywhere
            maker = maker.first()
        if maker is None:
            return
        axis = 1 if maker.name in _CONVS else rank - 1
        if dim % rank == axis and given.shape[axis] > 1 and rank == (4 if maker.name in _CONVS else 3):
            self._pooled.append((made, given.shape[axis], given.shape))

    # ---- attention ----

    def _scores(self, call, made):
        """Weights of attention, of products that nothing has scaled."""
        given, weights = made.first(), call.result
        for _ in range(_SHORT):
            if given is None or given.name in _PRODUCTS or given.name not in _LINEAR:
                break
            given = given.first()
        if given is None or given.name not in _PRODUCTS or weights.dim() < 3 or weights.shape[-1] < 4:
            return
        sides = [one.source() for one in given.parents()]
        if len(sides) != 2 or any(_is_scaled(one) for one in given.parents()) or \
                any(not one.grad or one.name in ("softmax", "parameter") for one in sides):
            return
        part = trace.copied(weights)
        if part is not None:
            self._scored += 1
            inner = given.parents()[0].shape[-1]
            self._add("unscaled-scores", given.where(), largest=float(part.amax(-1).double().mean()), size=inner,
                      length=weights.shape[-1], also=[made.where()])

    # ---- residual connections ----

    def loss(self, tensor):
        """The forward pass is complete."""
        if self._looked >= _STEPS or not self.observation.observes:
            return
        self._looked += 1
        loss = self.trace.of(tensor)
        self._unbent(loss)
        kinds = collections.defaultdict(list)
        for path, module in self.agent.modules.all():
            if next(module.children(), None) is not None and not type(module).__module__.startswith("torch."):
                kinds[type(module)].append(path)
        kinds = {kind: paths for kind, paths in kinds.items() if len(paths) > 1}
        if not kinds:
            return
        members = _members(loss, {path: kind for kind, paths in kinds.items() for path in paths})
        for kind, paths in kinds.items():
            results = [_dropped(members[path]) for path in paths[:_BLOCKS] if path in members]
            if len(results) > 1 and all(results):
                made, what = results[0]
                self._add("dropped", _inside(made, kind) or made.where(), type=kind.__name__, blocks=len(paths),
                          first=what == "first")

    def _unbent(self, loss):
        """Two linear layers in a row, of which the second one reads nothing but the first: they are one layer."""
        readers, operators = collections.Counter(), trace.ancestors(loss, _MOST)
        for made in operators:
            readers.update(made.parents())
        for made in operators:
            if made.name != "linear" or len(made.args) < 2:
                continue
            before = made.first()
            while before is not None and before.name in trace.SAME | {"dropout"} and readers[before] == 1:
                before = before.first()
            if before is None or before.name != "linear" or readers[before] != 1 or len(before.parents()) < 2:
                continue
            source = before.first().source()
            sizes = before.first().shape[-1], before.shape[-1], made.shape[-1]
            if sizes[1] >= max(sizes[0], sizes[2]) and sizes[2] > 0 and source.name not in _WEIGHTED - {"linear"}:
                self._add("no-activation", made.where(), inputs=sizes[0], middle=sizes[1], outputs=sizes[2],
                          before=before.node_name(), also=[before.where()])

    # ---- what the source says ----

    def _read(self):
        """Residual connections that a forward() prepares and forgets."""
        types = {type(module).__name__: module for _, module in self.agent.modules.all()}
        roots = {type(root).__name__ for root in self.agent.modules.roots().values()}
        found = []
        for file, tree in sources_of(self.observation).trees():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and node.name in types:
                    found += _forgotten(file, node, types[node.name], node.name in roots)
        return found

    def evidence(self):
        """The pieces."""
        if not self._unread:
            self._unread = self._read()
        return list(self._found.values()) + self._unread


def _is_scaled(made):
    """Whether a factor of a product was scaled or normalised after its layer."""
    for _ in range(_SHORT):
        if made is None or made.name in _WEIGHTED:
            return False
        if made.name in _SCALES:
            return True
        made = made.first()
    return False


def _members(loss, blocks):
    """Path of a block -> the Made that were computed in it, in their order, of the forward pass before that loss."""
    found = collections.defaultdict(list)
    for made in trace.ancestors(loss, _MOST, grads=False):
        path = made.module
        while path:
            if path in blocks:
                found[path].append(made)
            path = path.rpartition("/")[0]
    return {path: sorted(inside, key=lambda made: made.number) for path, inside in found.items()}


def _dropped(inside):
    """(Made, "first" or "last") where a block adds to its input once, and replaces it before or after that; None."""
    of = set(inside)
    outside = [one for made in inside for one in made.parents() if one not in of and one.name != "parameter" and
               len(one.shape) > 1 and one.grad]
    if not outside or outside[0].shape != inside[-1].shape:
        return None
    start, end = outside[0], inside[-1]
    above = {start: {start}}  # what each is computed from
    for made in inside:
        above[made] = {made}.union(*(above.get(parent, ()) for parent in made.parents()))
    sums = []
    for made in inside:
        parts = made.parents()
        if made.name in _ADDS and len(parts) == 2 and parts[0].shape == parts[1].shape == start.shape:
            for stream, branch in (parts, parts[::-1]):
                if stream in above.get(branch, ()) and made in above[end]:
                    sums.append((made, stream))
    if not sums:
        return None
    last, (_, first) = sums[-1][0], sums[0]
    after = [made for made in inside if made is not last and last in above[made] and made in above[end]]
    if _is_branch(after):
        return end, "last"
    before = [made for made in inside if first is not start and start in above[made] and made in above.get(first, ())]
    return (first, "first") if _is_branch(before) else None


def _is_branch(operators):
    """Whether that is as much as a branch computes: two layers, and something between that is not linear."""
    names = [made.name for made in operators]
    return sum(name in _WEIGHTED for name in names) > 1 and any(name in _BENT for name in names)


def _inside(made, kind):
    """{"file", "line", "node"} of a call, in the forward() of that class; {} where it is unknown."""
    code = getattr(getattr(kind, "forward", None), "__code__", None)
    stack = made.node.stack if made.node is not None else ()
    line = next((line for one, line, _ in stack if one is code), None)
    return {} if line is None else {"file": code.co_filename, "line": line, "node": made.node.name}


def _forgotten(file, node, module, is_root):
    """Pieces about a class: a name that keeps the input and is never read; a residual block that adds nothing."""
    forward = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "forward"), None)
    if forward is None or next(module.parameters(), None) is None:
        return []
    read = {one.id for one in ast.walk(forward) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    stored = collections.Counter(one.id for one in ast.walk(forward)
                                 if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    changed = {one.target.id for one in ast.walk(forward)
               if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)}
    given = {one.arg for one in forward.args.args[1:]}
    ends = [one.lineno for one in ast.walk(forward) if isinstance(one, ast.Return)]
    also = [{"file": file, "line": ends[-1]}] if ends else None
    found = []
    for one in ast.walk(forward):
        if not isinstance(one, ast.Assign) or len(one.targets) != 1 or not isinstance(one.targets[0], ast.Name):
            continue
        name, value = one.targets[0].id, one.value
        if name in read or name in changed or name.startswith("_") or "locals" in read:
            continue
        keeps = isinstance(value, ast.Name) and (value.id in given or stored[value.id]) and stored[value.id] > (
            value.id not in given)
        branch = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and \
            isinstance(value.func.value, ast.Name) and value.func.value.id == "self" and any(
                isinstance(arg, ast.Name) for arg in value.args)
        if keeps or branch:
            found.append(piece("unread", {"file": file, "line": one.lineno}, name=name, type=node.name, keeps=keeps,
                               of=value.id if keeps else ast.unparse(value), also=also))
    if not found and not is_root and _NAMED.match(node.name) and not _adds(node):
        found.append(piece("unread", {"file": file, "line": ends[-1] if ends else forward.lineno}, type=node.name,
                           adds=False))
    return found


def _adds(node):
    """Whether anything in a class adds, subtracts or joins."""
    for one in ast.walk(node):
        if isinstance(one, (ast.BinOp, ast.AugAssign)) and isinstance(one.op, (ast.Add, ast.Sub)):
            return True
        if isinstance(one, ast.Call) and getattr(one.func, "attr", getattr(one.func, "id", "")) in (
                "add", "add_", "cat", "concat", "stack", "sum", "addcmul", "lerp", "sub", "super"):
            return True
    return False
