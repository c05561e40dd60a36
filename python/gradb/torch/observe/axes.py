# SPDX-License-Identifier: MIT
"""Axes: what is reshaped where it should be transposed, reduced over the batch, or run over the batch as over time."""
import torch

from . import Watcher, piece, trace
from .loss_input import terms_of

_PIECES = 16
_RESHAPES = frozenset(("view", "reshape", "view_as", "reshape_as", "unflatten"))
_RECURRENT = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))
_LOSSES = frozenset(("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
                     "binary_cross_entropy", "binary_cross_entropy_with_logits"))
# Operators that treat all positions of a sequence alike.
_ALIKE = frozenset(("linear", "matmul", "layer_norm", "rms_norm", "dropout", "relu", "gelu", "tanh", "chunk", "split",
                    "div", "unbind", "embedding", "silu", "unflatten", "getitem"))
_MASKS = frozenset(("masked_fill", "masked_fill_", "fill_diagonal_", "where", "masked_select", "setitem", "fill_",
                    "index_fill", "index_fill_", "diagonal_scatter"))
_ADDS = frozenset(("add", "iadd", "add_"))
_SCALED = trace.SAME | _ADDS | {"mul", "div", "truediv", "masked_fill", "masked_fill_", "where"}


class Axes(Watcher):
    """Looks at reshapes, softmax, recurrences and attention, and at similarities of a batch with itself."""

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._found = {}
        self._waiting = []     # (kind, Made, numbers) of this step, until the size of the batch is known
        self._batch = None     # the size of the batch, in this step
        self._loaded = 0       # rows of the batch that a DataLoader returned last
        self._ids = None       # the first table of ids of this step: a copy
        self._seeing = []      # Made of attention without a mask, and of recurrences in both directions, in this step
        self._looked = None    # the Made of the embedding of the ids
        self._lengths = set()  # over which attention and recurrences run, in this step
        self._placings = []    # (Made, text of what is added, shape) of this step: positions along the wrong axis

    def begins(self, step):
        """Forgets the previous step."""
        self.trace.begins(step)
        self._waiting, self._batch, self._ids, self._seeing, self._looked = [], None, None, [], None
        self._lengths, self._placings = set(), []

    def batch(self, batch):
        """Notes the number of rows."""
        first = batch
        for _ in range(4):
            if isinstance(first, dict):
                first = next(iter(first.values()), None)
            elif isinstance(first, (tuple, list)):
                first = first[0] if first else None
        self._loaded = first.shape[0] if isinstance(first, torch.Tensor) and first.dim() else 0

    def _add(self, kind, where, holds=True, **numbers):
        key = (kind, where.get("file"), where.get("line"), None if where.get("line") else where.get("node"))
        found = self._found.get(key)
        if found is None:
            if sum(one[0] == kind for one in self._found) >= _PIECES:
                return
            found = self._found[key] = piece(kind, where, steps=0, held=0)
        found["steps"] += 1
        found["held"] += bool(holds)
        if holds:
            found.update((name, value) for name, value in numbers.items() if value is not None)

    # ---- operators ----

    def operator(self, call):
        """Looks at what depends on an axis."""
        made = self.trace.see(call)
        if made is None or not call.is_forward():
            return
        name = call.name
        if name in _RESHAPES:
            self._reshaped(call, made)
        elif name in _ADDS:
            self._positioned(call, made)
        elif name == "embedding":
            ids = call.given(0, "input")
            if self._ids is None and isinstance(ids, torch.Tensor) and ids.dim() == 2:
                self._ids, self._looked = trace.copied(ids), made
        elif not made.grad:
            return
        elif name in _RECURRENT:
            self._recurrent(call, made)
        elif name == "multi_head_attention_forward":
            self._heads(call, made)
        elif name in ("softmax", "log_softmax"):
            self._softmax(call, made)
        elif name == "conv1d":
            self._convolved(call, made)
        elif name == "scaled_dot_product_attention":
            self._attention(call)
        elif name in ("mean", "sum", "norm", "normalize", "std", "var", "layer_norm", "max", "amax", "cumsum", "cat"):
            self._reduced(call, made)
        elif name in _LOSSES:
            self._target(call, made)
        if name in ("linear", "matmul") and self._waiting:
            self._reads(made)
        if name == "cross_entropy":
            self._similar(call, made)
        elif name in ("logsumexp", "log_softmax"):
            self._similar(call, made)

    left = operator

    def _reshaped(self, call, made):
        before = made.first()
        if before is None or not isinstance(call.result, torch.Tensor) or before.name in ("pad", "cat"):
            self._joined(before, made)
            return  # a row that was added shifts the others: relative positions
        moved = _moved(before.shape, made.shape)
        if moved is not None:
            self._add("reshaped", made.where(), trained=made.grad, size=moved, operator=made.name,
                      before=_text(before.shape), after=_text(made.shape),
                      pure=sorted(before.shape) == sorted(made.shape))

    def _joined(self, before, made):
        """Tensors of N rows were joined to k * N rows, and the result is cut into N rows again."""
        parts = before.parents()
        if before.name != "cat" or before.given(1, "dim", before.kwargs.get("axis", 0)) != 0 or len(parts) < 2:
            return
        rows = parts[0].shape[0] if parts[0].shape else 0
        same = all(part.shape == parts[0].shape for part in parts)
        if same and rows > 2 and made.shape[:1] == (rows,) and before.shape[0] == len(parts) * rows and \
                rows != len(parts) and made.grad:
            self._add("joined", before.where(), rows=rows, count=len(parts), operator=made.name,
                      before=_text(before.shape), after=_text(made.shape))

    def _positioned(self, call, made):
        """Something that depends on no data is added to vectors: along which axis it varies."""
        if len(made.shape) != 3 or len(call.args) < 2 or len(self._placings) >= 4 or min(made.shape[:2]) < 2:
            return
        for tensor, other, one in zip(call.args[:2], call.args[1::-1], made.args[:2]):
            tokens = isinstance(other, torch.Tensor) and other.shape == call.result.shape
            if tokens and isinstance(tensor, torch.Tensor) and tensor.dim() == 3 and _is_of_places(one):
                added = tensor.detach()
                if tensor.shape[2] != made.shape[2] or not bool((added == added[:, :1]).all()):
                    continue
                if tensor.shape[0] > 1 and bool((added != added[:1]).any()):
                    self._placings.append((made, "batch"))
                elif _table_of(one) >= made.shape[1] and tensor.shape[1] > 1:
                    self._placings.append((made, "none"))

    def _place(self):
        """The pass is over: whether what was added varies over the examples and not over the sequence."""
        for made, axis in self._placings:
            rows, time = made.shape[:2]
            if time in self._lengths and rows not in self._lengths:
                self._add("misplaced", made.where(), axis=axis, rows=rows, length=time, shape=_text(made.shape))
        self._placings = []

    def _recurrent(self, call, made):
        """A recurrence: over which axis it runs, of which shape."""
        flat = call.args
        if len(flat) == 9 and flat[7] is True:
            self._seeing.append((made, "the bidirectional %s reads later tokens, too" % made.name))
        data = flat[0] if flat else None
        if not isinstance(data, torch.Tensor) or data.dim() != 3:
            return  # packed, or a single sequence
        first = flat[-1] if isinstance(flat[-1], bool) else call.kwargs.get("batch_first", False)
        time, batch = (1, 0) if first else (0, 1)
        sizes = data.shape[time], data.shape[batch]
        self._lengths.add(sizes[0])
        if sizes[0] != sizes[1]:
            self._waiting.append(("recurrence", made, dict(operator=made.name, batch_first=bool(first), time=sizes[0],
                                                           rows=sizes[1], shape=_text(data.shape))))

    def _heads(self, call, made):
        """Attention of PyTorch's own layers: time is axis 0 here, whatever batch_first says."""
        query, padded = call.given(0, "query"), call.given(14, "key_padding_mask")
        if not isinstance(query, torch.Tensor) or query.dim() != 3:
            return
        length, rows = query.shape[:2]
        self._lengths.add(length)
        if length != rows:
            self._waiting.append(("recurrence", made, dict(operator="attention", batch_first=False, time=length,
                                                           rows=rows, shape=_text(query.shape))))
        mask = trace.copied(padded) if isinstance(padded, torch.Tensor) else None
        ids = self._ids
        seen = call.given(16, "attn_mask")
        if isinstance(seen, torch.Tensor) and seen.shape[-2:] == (length, length):
            part = seen.detach().reshape(-1, length, length)[0]
            self._sees_next(part > -1e4 if part.is_floating_point() else part == 0, made)
        if seen is None and not call.kwargs.get("is_causal"):
            self._open(made, call.given(0, "query"), call.given(1, "key"), made.given(0, "query"), padded is None)
        if mask is None or ids is None or mask.shape != ids.shape:
            return
        gone = mask if mask.dtype == torch.bool else mask < -1e4
        pads = _pads(ids)
        if bool(pads.any()) and not bool(pads.all()):
            self._add("mask-inverted", made.where(), bool((gone == ~pads).all()), causal=False,
                      pad=int(ids[:, -1].mode().values), share=float(pads.double().mean()), shape=_text(mask.shape))

    def _softmax(self, call, made):
        dim = call.given(1, "dim")
        scores = call.given(0, "input")
        if not isinstance(scores, torch.Tensor) or not isinstance(dim, int) or scores.dim() < 2:
            return
        axis = dim % scores.dim()
        self._add("softmax-one", made.where(), scores.shape[axis] == 1, operator=made.name, dim=dim,
                  result=0 if made.name == "log_softmax" else 1, shape=_text(scores.shape), pairs=_of_pairs(made))
        if axis == 0 and scores.shape[0] > 1:
            self._waiting.append(("over-batch", made, dict(operator=made.name, rows=scores.shape[0],
                                                           shape=_text(scores.shape), normalises=True)))
        if made.name == "softmax" and scores.dim() >= 2 and axis == scores.dim() - 1:
            self._masked(scores, made)

    def _reduced(self, call, made):
        given = made.first()
        dims = call.given(1, "dim", call.given(1, "axis"))
        if made.name == "normalize":
            dims = call.given(2, "dim", 1)
        if made.name in ("norm",):
            dims = call.given(2, "dim")
        dims = dims if isinstance(dims, (tuple, list)) else (dims,)
        if made.name == "cat":
            dims = (call.given(1, "dim", 0),)
        if given is None or len(given.shape) < 2 or not any(one in (0, -len(given.shape)) for one in dims if
                                                            isinstance(one, int) and not isinstance(one, bool)):
            return
        if len(dims) > 1 or made.name == "cat":
            return  # statistics of a batch
        keeps = bool(call.given(2, "keepdim", False)) if made.name != "normalize" else False
        self._waiting.append(("over-batch", made, dict(operator=made.name, rows=given.shape[0], keeps=keeps,
                                                       shape=_text(given.shape), dims=len(given.shape),
                                                       normalises=made.name == "normalize")))

    def _reads(self, made):
        """A layer reads what was reduced over axis 0, and expanded again."""
        source = made.first()
        for _ in range(8):
            if source is None or source.name not in trace.SAME | {"relu", "dropout", "layer_norm", "mean", "repeat",
                                                                 "getitem"}:
                return
            for kind, one, numbers in self._waiting:
                if kind == "over-batch" and one is source and one.name in ("mean", "sum", "max", "amax"):
                    numbers["read"] = True
                    return
            source = source.first()

    # ---- masks ----

    def _masked(self, scores, made):
        """Scores of attention: which ones are masked."""
        if scores.shape[-1] < 3 or scores.dim() < 3:
            return
        if scores.shape[-1] == scores.shape[-2]:
            self._lengths.add(scores.shape[-1])
        part = trace.copied(scores[:2])
        if part is None or not part.is_floating_point():
            return
        part = part.to(torch.float32)
        gone = (part < -1e4) if bool((part < -1e4).any()) else None
        if gone is None and scores.shape[-1] == scores.shape[-2]:
            self._open(made, scores, scores, made.first(), True, scores.shape[-1])
        if gone is not None and not bool(gone.all()):
            self._judge_mask(~gone, made, scores.shape)

    def _attention(self, call):
        mask, made = call.given(3, "attn_mask"), self.trace.see(call)
        self._lengths.add(call.given(0, "query").shape[-2])
        if mask is None and not call.given(5, "is_causal", False) and made is not None:
            self._open(made, call.given(0, "query"), call.given(1, "key"), made.given(0, "query"), True)
        if not isinstance(mask, torch.Tensor) or mask.dim() < 2:
            return
        part = trace.copied(mask[:2] if mask.dim() > 2 else mask)
        if part is None:
            return
        kept = part if part.dtype == torch.bool else part.to(torch.float32) > -1e4
        if not bool(kept.all()):
            query = call.given(0, "query")
            shape = (*query.shape[:-1], call.given(1, "key").shape[-2])
            self._judge_mask(kept, made, shape)

    def _open(self, made, query, key, given, unmasked, length=None):
        """Attention of a sequence to itself without any mask over time."""
        ids = self._ids
        if ids is None or not isinstance(query, torch.Tensor) or not isinstance(key, torch.Tensor):
            return
        sizes = {length} if length else {query.shape[-2], query.shape[0] if query.dim() == 3 else 0}
        if query.shape != key.shape or ids.shape[1] not in sizes:
            return
        self._seeing.append((made, "the attention has no causal mask"))
        if unmasked and len(self._seeing) == 1 and isinstance(given, trace.Made):
            self._placed(made, given)

    def _placed(self, made, given):
        """Whether anything but the tokens themselves enters the first attention, such as positions."""
        of_ids, seen, todo = {}, [], [given]
        while todo and len(seen) < 512:
            one = todo.pop()
            if one in of_ids:
                continue
            of_ids[one] = one is self._looked
            seen.append(one)
            if one is not self._looked:
                todo.extend(one.parents())
        for one in sorted(seen, key=lambda made: made.number):
            of_ids[one] = of_ids[one] or any(of_ids.get(parent) for parent in one.parents())
        if not of_ids.get(given):
            return
        known = True  # each operator is one that treats all positions alike
        for one in seen:
            if not of_ids[one] or one is self._looked:
                continue
            known = known and (one.name in _ALIKE or one.name in trace.SAME or one.name in ("add", "mul") and
                               all(of_ids.get(parent) or parent.shape[-2:-1] in ((), (1,)) and len(parent.shape) < 2
                                   for parent in one.parents()))
        self._add("positions", made.where(), known, length=self._ids.shape[1], loss=None,
                  recurrent=any(one.name in _RECURRENT for one in seen))

    def _future(self, target):
        """Whether the targets are the tokens one position later; notes what sees later positions then."""
        ids = self._ids
        if ids is None or not self._seeing or ids.shape[1] < 4:
            return
        labels = trace.copied(target)
        if labels is None or labels.is_floating_point() or labels.numel() % ids.shape[0]:
            return
        labels = labels.reshape(ids.shape[0], -1)
        count = min(labels.shape[1], ids.shape[1] - 1)
        if count < 3 or labels.shape[1] not in (ids.shape[1], ids.shape[1] - 1):
            return
        used = labels[:, :count] >= 0
        later = ids[:, 1:count + 1]
        equal = float((labels[:, :count] == later)[used].double().mean()) if bool(used.any()) else 0.0
        if equal > 0.99 and bool((later != ids[:, :count]).any()):
            for made, what in self._seeing:
                self._add("future", made.where(), what=what, length=ids.shape[1])

    def _sees_next(self, kept, made):
        """kept: (T, T), what each position may see, some of it masked: whether that includes the next one."""
        ids = self._ids
        if ids is not None and ids.shape[1] == kept.shape[0] > 3 and not bool(kept.all()) and \
                bool(kept.diagonal(1).all()) and not bool(kept.triu(2).all()):
            self._seeing.append((made, "the mask of the attention is one diagonal too wide"))

    def _convolved(self, call, made):
        """A convolution over time that is padded on both sides."""
        data, weight, padding = call.given(0, "input"), call.given(1, "weight"), call.given(4, "padding", 0)
        ids, length = self._ids, data.shape[-1] if isinstance(data, torch.Tensor) else 0
        if ids is None or ids.shape[1] != length or made.shape[-1] != length or not isinstance(weight, torch.Tensor):
            return
        if weight.shape[-1] > 1 and padding not in (0, (0,), [0], "valid"):
            self._seeing.append((made, "the convolution is padded on both sides"))

    def _judge_mask(self, kept, made, shape):
        """kept: what may be seen, (..., T, S) or (..., 1, S)."""
        kept = kept.reshape(-1, kept.shape[-2], kept.shape[-1])
        size = kept.shape[-1]
        if kept.shape[-2] == size:
            strict = torch.ones(size, size, dtype=torch.bool).triu(1)
            one = kept[0]
            below = one & strict.t()
            above = one & strict
            self._sees_next(one, made)
            if not bool(below.any()) and bool((above == strict).all()):
                self._add("mask-inverted", made.where(), causal=True, shape=_text(shape))
        ids = self._ids
        if ids is None or ids.shape[1] != size:
            return
        rows = kept[:, -1, :] if kept.shape[0] == min(2, ids.shape[0]) else None
        if rows is None or kept.shape[0] > ids.shape[0]:
            return
        pad = ids[:, -1].mode().values
        padded = _pads(ids)[:rows.shape[0]]
        if bool(padded.any()) and not bool(padded.all()):
            inverted = bool((rows == padded).all())
            self._add("mask-inverted", made.where(), inverted, causal=False, pad=int(pad), shape=_text(shape),
                      share=float(padded.double().mean()))

    # ---- similarities ----

    def _similar(self, call, made):
        """Scores (M, M) of a batch with itself, whose diagonal takes part."""
        scores = call.given(0, "input")
        given = made.given(0, "input")
        if not isinstance(scores, torch.Tensor) or scores.dim() != 2 or scores.shape[0] != scores.shape[1] or \
                scores.shape[0] < 3 or not isinstance(given, trace.Made):
            return
        source = given
        for _ in range(12):
            if source.name in ("matmul", "mm", "cosine_similarity", "einsum"):
                break
            parents = [one for one in source.parents() if one.grad]
            if source.name in _MASKS or len(parents) != 1:
                return
            source = parents[0]
        parents = [one.source() for one in source.parents()]
        if source.name not in ("matmul", "mm", "einsum") or len(parents) < 2 or parents[-1] is not parents[-2]:
            return
        values = trace.copied(scores)
        if values is None:
            return
        values = values.to(torch.float64)
        own = values.diagonal()
        above = float((own >= values.max(1).values - 1e-9).double().mean())
        target = call.given(1, "target") if call.name == "cross_entropy" else None
        labels = trace.copied(target) if isinstance(target, torch.Tensor) else None
        is_own = None
        if labels is not None and labels.shape == own.shape and not labels.is_floating_point():
            is_own = float((labels == torch.arange(len(own))).double().mean())
        self._add("own-diagonal", source.where(), above > 0.9, largest=above, is_own=is_own, loss=call.name,
                  size=len(own), loss_node=made.node_name())

    # ---- the batch ----

    def _target(self, call, made):
        target, output = call.given(1, "target"), call.given(0, "input")
        wanted = made.given(1, "target")
        if not isinstance(target, torch.Tensor) or not isinstance(output, torch.Tensor) or target.dim() == 0 or \
                not isinstance(wanted, trace.Made) or wanted.grad:
            return
        if call.name in ("cross_entropy", "nll_loss"):
            self._future(target)
        shape = _before_flat(wanted)
        self._judged(shape, output.shape, call.name)

    def _judged(self, shape, output, loss):
        """The shape of the targets is known: which axis is the batch follows from one label per example."""
        rows = shape[0]
        one_each = len(shape) == 1 or len(shape) == 2 and (shape[1] == 1 or loss not in ("cross_entropy", "nll_loss"))
        waiting, self._waiting = self._waiting, []
        for kind, made, numbers in waiting:
            if kind == "recurrence":
                # One label for each example, or rows of a loader that nothing has moved.
                known = one_each and output[0] == rows and rows in (numbers["time"], numbers["rows"])
                loaded = self._loaded == numbers["time"] and self._loaded == rows and not known
                wrong = numbers["time"] == rows and numbers["rows"] != rows and (known or loaded)
                self._add(kind, made.where(), wrong, examples=rows, sure=known, **numbers)
            elif kind == "over-batch":
                wrong = one_each and output[0] == rows and numbers["rows"] == rows
                self._add(kind, made.where(), wrong, examples=rows, **numbers)

    def loss(self, tensor):
        """A backward pass begins: a difference of outputs and data in the loss says what a batch is."""
        self._place()
        if not self._waiting or not self.observation.observes or not isinstance(tensor, torch.Tensor):
            return
        for made in terms_of(self.trace.of(tensor))[1]:
            parents = made.parents()
            if made.name == "sub" and len(parents) == 2 and parents[0].grad != parents[1].grad and \
                    parents[0].shape == parents[1].shape and len(made.shape) > 0:
                data = parents[1] if parents[0].grad else parents[0]
                self._judged(_before_flat(data), made.shape, "sub")
                return

    def evidence(self):
        """The pieces."""
        return list(self._found.values())


def _of_pairs(made):
    """Whether scores compare queries with keys."""
    scores = made.first()
    return scores is not None and scores.source(_SCALED).name in ("matmul", "bmm", "baddbmm", "einsum")


def _is_of_places(made):
    """Whether a value is made of parameters, buffers and counted numbers only."""
    return isinstance(made, trace.Made) and made.fixed and made.name not in ("", "parameter")


def _table_of(made):
    """The number of rows of the table that an embedding reads; 0: it is not one."""
    source = made.source()
    table = source.given(1, "weight") if source.name == "embedding" else None
    return table.shape[0] if isinstance(table, trace.Made) else 0


def _pads(ids):
    """Where the rows of a table end in runs of one value."""
    return (ids == ids[:, -1].mode().values).flip(1).long().cumprod(1).flip(1).bool()


def _before_flat(made):
    """The shape of targets before they were flattened."""
    shape = made.shape
    for _ in range(8):
        before = made.first() if made.name in ("view", "reshape", "flatten", "long", "to", "float", "contiguous",
                                               "squeeze", "unsqueeze") else None
        if before is None:
            break
        made = before
        if len(made.shape) > len(shape) and made.name != "unsqueeze":
            shape = made.shape
    return shape


def _moved(before, after):
    """The size of an axis that a reshape moves without moving its elements; None: it splits and merges only."""
    if len(before) < 2 or len(after) < 2 or 0 in before:
        return None
    for axis, size in enumerate(before):
        if size < 3 or before.count(size) != 1 or after.count(size) != 1:
            continue
        place = after.index(size)
        first, second = _product(before[:axis]), _product(after[:place])
        if first == second:
            continue
        # Axes that split evenly could be meant: (8, 6) as (4, 2, 6) keeps 6 in place.
        others = [one for index, one in enumerate(before) if index != axis and one > 1]
        rest = [one for index, one in enumerate(after) if index != place and one > 1]
        if others and rest and _refines(others, rest):
            return size
    return None


def _refines(first, second):
    """Whether the sizes of one list are products of those of the other, in any order."""
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    return len(longer) <= 6 and _groups(sorted(longer, reverse=True), tuple(sorted(shorter)))


def _groups(sizes, products):
    """Whether the sizes can be shared out so that each of the products is made of some of them."""
    if not sizes:
        return all(one == 1 for one in products)
    return any(product % sizes[0] == 0 and
               _groups(sizes[1:], (*products[:place], product // sizes[0], *products[place + 1:]))
               for place, product in enumerate(products))


def _product(sizes):
    product = 1
    for size in sizes:
        product *= size
    return product


def _text(shape):
    return "(%s)" % ", ".join(str(size) for size in shape)
