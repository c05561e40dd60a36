# SPDX-License-Identifier: MIT
"""The data: whether batches and random draws differ, their scale, integers that wrap, and labels against inputs."""
import linecache

import torch

from . import Watcher, here, piece, trace
from .lines import all_lines, only_line
from .loss_input import terms_of
from .relations import Relation, entropy

_PIECES = 16
_DRAWS = 64       # places of random draws
_LEAST = 4        # steps that make a repetition
_IMAGES = 32      # of a batch whose pixels are compared

DRAWN = frozenset(("randn", "rand", "randint", "normal", "bernoulli", "randn_like", "rand_like", "randint_like",
                    "normal_", "uniform_", "multinomial", "randperm"))
FIRST = frozenset(("linear", "conv1d", "conv2d", "conv3d", "lstm", "gru", "rnn_tanh", "rnn_relu", "matmul", "mm",
                   "addmm"))
_NORMS = frozenset(("batch_norm", "layer_norm", "instance_norm", "group_norm", "rms_norm"))
_WRAPS = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "iadd": torch.add, "isub": torch.sub, "imul": torch.mul}
_SMALL = frozenset((torch.uint8, torch.int8, torch.int16))
_DIVIDES = frozenset(("floordiv", "floor_divide", "div", "ifloordiv"))
_CASTS = frozenset(("long", "int", "byte", "char", "short", "to", "type"))
_PICKS = frozenset(("getitem", "index_select"))
_LOSSES = frozenset(("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
                     "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))


class Data(Watcher):
    """Looks at the first input and the targets of each observed step, and at random draws."""

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._found = {}
        self._draws = {}       # node's name -> [where, prints]
        self._batches = []     # fingerprints of batches of a loader
        self._batch_at = {}
        self._inputs = []      # (fingerprint, picked: (rows, of rows) or None) of each observed step
        self._input_at = self._picked_at = {}
        self._first = None     # (input tensor's copy, Made) of this step
        self._after = None     # the Made of the first layer, until its reader is known
        self._start = 0        # the number of the first Made of this step
        self._losses = 0
        self._relation = Relation()
        self._sequences = False  # labels are those of sequences
        self._classes = []     # histograms of labels by step
        self._guessed = []     # (step, shares of predictions, of labels, of right ones)
        self._label_at = {}
        self._weighted = False
        self._step = 0

    def begins(self, step):
        """Forgets the previous step."""
        self.trace.begins(step)
        self._first = self._after = None
        self._start, self._losses, self._step = self.trace.count, 0, step
        self._told = set()
        self._errors = []

    _told = ()

    def loss(self, tensor):
        """A pass begins: one of several reads other rows than the first."""
        if self._errors and self._losses == 0 and isinstance(tensor, torch.Tensor):
            inside = terms_of(self.trace.of(tensor))[1]
            for made, wanted, labels in self._errors:
                if made in inside:
                    self._label_at = made.where()
                    self._matched(labels, wanted, made, False)
                    break
        self._errors = []
        self._passes = self._passes + 1 if self._passed_in == self.agent.steps.step else 1
        self._passed_in = self.agent.steps.step
        self._several = self._several or self._passes > 1

    _passes = _passed_in = 0
    _weights_seen = None
    _several = False  # a step has had several passes
    _outputs = None   # of the network, where labels are classes
    _loaders = ()     # lines that make loaders which do not shuffle
    _bytes = ()       # lines about integers of a byte
    _reshapes = ()    # lines that reshape, where images are read
    _errors = ()      # (Made, Made of the data, a copy of it) of this step

    def _add(self, kind, where, **numbers):
        key = (kind, where.get("file"), where.get("line"), None if where.get("line") else where.get("node"))
        found = self._found.get(key)
        if found is None:
            if sum(one[0] == kind for one in self._found) >= _PIECES:
                return None
            found = self._found[key] = piece(kind, where, steps=0)
        found["steps"] += 1
        found.update((name, value) for name, value in numbers.items() if value is not None)
        return found

    # ---- batches ----

    def batch(self, batch):
        """Takes the fingerprint of a batch of a loader."""
        if not self.observation.observes or len(self._batches) >= 16:
            return
        first = _first_tensor(batch)
        mark = trace.print_of(first) if first is not None else None
        if mark is None:
            return
        if not self._batch_at:
            self._batch_at = here()
            self._bytes = all_lines(r"uint8|ubyte")[:3]
            self._loaders = [one for one in all_lines(r"DataLoader\(")
                             if "shuffle=True" not in linecache.getline(one["file"], one["line"])][:2]
        feeds = self.agent.events.loader
        if feeds.is_apart():
            return
        loader = feeds.latest()[0]
        self._sampled(feeds.weights)
        try:
            count = len(loader)
        except (TypeError, NotImplementedError):
            count = 0
        rows = _distinct_rows(first)
        value = first.reshape(-1)[0].item() if rows and first.numel() > first.shape[0] and bool(
            (first == first.reshape(-1)[0]).all()) else None
        self._batches.append((mark, count, rows, first.shape[0], value))

    def _sampled(self, counts):
        """A sampler that draws by weights wants one for each example of the dataset."""
        if counts is None or counts == self._weights_seen:
            return
        self._weights_seen = weights, rows = counts
        self._add("sampler-weights", only_line(r"WeightedRandomSampler\(") or self._batch_at,
                  weights=weights, rows=rows)

    # ---- operators ----

    def operator(self, call):
        """Looks at draws, integers, the first layer and losses."""
        made = self.trace.see(call)
        if made is None or not call.is_forward():
            return
        name, result = call.name, call.result
        if name in DRAWN and isinstance(result, torch.Tensor):
            self._drew(made, result)
        elif isinstance(result, torch.Tensor) and not result.requires_grad:
            self._integers(call, made)
        if self._after is not None and made.first() is self._after:
            entry = self._found.get(self._after_key)
            if entry is not None:
                entry["normed"] = name in _NORMS
            self._after = None
        if self._first is None and made.grad and name in FIRST:
            if self._reshapes == () and name == "conv2d":
                self._reshapes = all_lines(r"\.(reshape|view|resize)\(.*\b[34]\b")[:3]
            self._entered(call, made)
        if name in _LOSSES and made.grad:
            self._compared(call, made)
        elif name == "sub" and made.grad and len(self._errors) < 4:
            self._subtracted(call, made)

    def _subtracted(self, call, made):
        """An output minus data, or the other way round: it may be the error of a loss."""
        pairs = [(one, value) for one, value in zip(made.args[:2], call.args[:2]) if isinstance(one, trace.Made)]
        if len(pairs) == 2 and pairs[0][0].grad != pairs[1][0].grad and pairs[0][0].shape == pairs[1][0].shape:
            wanted, value = pairs[pairs[0][0].grad]
            labels = trace.copied(value, 1 << 14) if wanted.name != "parameter" else None
            if labels is not None and labels.dim():
                self._errors = [*self._errors, (made, wanted, labels)]

    _after_key = None

    def _drew(self, made, result):
        node = made.node_name()
        known = self._draws.get(node)
        if known is None:
            if len(self._draws) >= _DRAWS or not node:
                return
            known = self._draws[node] = [made.where(), [], tuple(result.shape)]
        if result.numel() >= 8 and node not in self._told and self._step > 1:
            self._told.add(node)
            known[1].append(trace.print_of(result))

    def _integers(self, call, made):
        result, name = call.result, call.name
        first = call.args[0] if call.args else None
        known = name in _WRAPS or name in _DIVIDES or name in _CASTS
        if not known or not isinstance(first, torch.Tensor) or result.numel() < 8:
            return
        if name in _WRAPS and result.dtype in _SMALL and first.dtype == result.dtype and len(call.args) > 1:
            second = call.args[1]
            if not isinstance(second, (int, torch.Tensor)) or call.writes or first.numel() > 1 << 20:
                return
            if isinstance(second, torch.Tensor) and second.is_floating_point():
                return
            one = first.detach().to(torch.int64)
            other = second.detach().to(torch.int64) if isinstance(second, torch.Tensor) else second
            exact = _WRAPS[name](other, one) if made.turned else _WRAPS[name](one, other)
            wrong = float((exact != result.to(torch.int64)).double().mean())
            if wrong > 0:
                self._add("wrapped", made.where(), share=wrong, type=str(result.dtype).rpartition(".")[2],
                          operator=name, smallest=int(exact.min()), largest=int(exact.max()))
        elif name in _DIVIDES and not result.is_floating_point() and not first.is_floating_point():
            self._vanished(made, first, result, "integer division")
        elif name in _CASTS and not result.is_floating_point() and result.dtype != torch.bool and \
                first.is_floating_point():
            self._vanished(made, first, result, "conversion to integers")

    def _vanished(self, made, before, result, what):
        values, left = trace.read(before), trace.read(result)
        if values is None or left is None:
            return
        had, has = float((values != 0).double().mean()), float((left != 0).double().mean())
        if had > 0.3 and has < 0.02:
            self._add("divided-to-zero", made.where(), what=what, before=had, after=has,
                      type=str(result.dtype).rpartition(".")[2], largest=float(values.max()))

    # ---- the input ----

    def _entered(self, call, made):
        data = call.args[0] if call.args else None
        given = made.given(0, "input")
        if not isinstance(data, torch.Tensor) or not isinstance(given, trace.Made) or given.grad or data.dim() < 2 or \
                not data.is_floating_point() or data.requires_grad:
            return
        values = trace.copied(data)
        if values is None or given.source().name == "embedding":  # of a frozen table: not the data
            return
        values = values.to(torch.float32)
        self._first = (values, given)
        self._input_at = made.where()
        mark = trace.print_of(values)
        picked = given.source(trace.SAME | {"stack", "cat"})
        if picked.name in _PICKS | {"split", "chunk", "narrow"}:
            self._picked_at = picked.where()
        rows = None
        if picked.name in _PICKS and picked.number > self._start and picked.first() is not None and \
                len(picked.first().shape) == len(picked.shape) and picked.first().shape[0] > picked.shape[0]:
            rows = picked.shape[0], picked.first().shape[0]
        if len(self._inputs) < 16:
            self._inputs.append((mark, rows, picked.where() if rows else {}))
        self._scale(made, given, values, call.name)
        if values.dim() == 4 and min(values.shape[2:]) >= 4:
            jumps, part = _jumps(values[:_IMAGES, 0])
            if jumps > 0:
                self._add("wrapped-pixels", made.where(), jumps=jumps, part=part, also=self._bytes or None)
            if values.shape[1] in (3, 4):
                self._interleaved(made, values[:_IMAGES])

    def _interleaved(self, made, images):
        """Whether rows of (height, width, channel) were read as (channel, height, width): neighbours in a row then are
        the channels of a pixel."""
        count, channels, height, width = images.shape
        pixels = images.reshape(count, height, width, channels)
        row = _steepness(images, 3), _steepness(pixels, 2)
        column = _steepness(images, 2), _steepness(pixels, 1)
        self._add("interleaved", made.where(), row=row[0], row_apart=row[1], column=column[0], column_apart=column[1],
                  channels=channels, height=height, width=width, also=self._reshapes or None)

    def _not_finite(self, made, values, finite):
        """Values that are NaN or infinite; whole columns of them."""
        bad = ~finite.reshape(finite.shape[0], -1)
        columns = bad.all(0).nonzero().reshape(-1).tolist() if bad.shape[0] > 1 and values.dim() == 2 else []
        deviation = only_line(r"\.std\(|\.var\(|std_mean\(")
        self._add("bad-input", made.where(), nan=int(torch.isnan(values).sum()), bad=int(bad.sum()),
                  count=values.numel(), rows=int(bad.any(1).sum()), of_rows=bad.shape[0], columns=len(columns),
                  of_columns=bad.shape[1], first=columns[0] if columns else None,
                  also=[deviation] if columns and deviation else None)

    def _scale(self, made, given, values, name):
        """The scale of the columns, or of all values of images."""
        finite = torch.isfinite(values)
        if not bool(finite.all()):
            self._not_finite(made, values, finite)
            return
        if values.shape[0] < 4:
            return
        table = values if values.dim() == 2 else values.reshape(values.shape[0], -1)
        columns = table if values.dim() == 2 else values.reshape(-1, 1)
        size = columns.double().pow(2).mean(0).sqrt()
        used = size[size > 0]
        low, high = float(values.min()), float(values.max())
        same = bool((table == table[:1]).all())
        source = _whole(given)
        line = source.where() if source is not None else {}
        text = linecache.getline(line["file"], line["line"]) if "file" in line else ""
        where = made.where()
        self._add("input-scale", where, largest=float(used.max()) if used.numel() else 0.0,
                  smallest=float(used.min()) if used.numel() else 0.0, low=low, high=high, same=same, operator=name,
                  nonzero=float((values != 0).double().mean()), rows=values.shape[0], dims=values.dim(),
                  elements=table.shape[1], integers=source is not None, divides="//" in text,
                  source_file=line.get("file"), source_line=line.get("line"))
        self._after_key = ("input-scale", where.get("file"), where.get("line"),
                           None if where.get("line") else where.get("node"))
        self._after = made
        twice = _twice(given)
        if twice is not None:
            self._add("scaled-twice", twice.where(), operator=twice.name)

    # ---- labels ----

    def _compared(self, call, made):
        """A loss: the targets of the step."""
        self._losses += 1
        target, scores = call.given(1, "target"), call.given(0, "input")
        wanted = made.given(1, "target")
        if self._losses > 1 or not isinstance(target, torch.Tensor) or not isinstance(wanted, trace.Made) or \
                wanted.grad or not isinstance(scores, torch.Tensor):
            return
        labels = trace.copied(target, 1 << 14)
        if labels is None or wanted.source().name in ("ones", "zeros", "full", "ones_like", "zeros_like", "full_like"):
            return
        self._label_at = made.where()
        classed = call.name in ("cross_entropy", "nll_loss") and labels.dim() == 1 and not labels.is_floating_point()
        binary = call.name.startswith("binary") and labels.numel() == labels.shape[0] and \
            bool(((labels == 0) | (labels == 1)).all())
        if classed or binary:
            weight = call.given(2, "weight")
            self._weighted = self._weighted or weight is not None or call.kwargs.get("pos_weight") is not None
            shape = wanted.source().shape  # before it was made flat: of tokens, rows and positions
            self._sequences = len(shape) > 1 and shape[-1] > 1
            self._counted(labels.reshape(-1).long(), scores, binary)
        if self._first is not None:
            self._matched(labels, wanted, made, classed or binary)

    def _counted(self, labels, scores, binary):
        ignored = labels >= 0
        labels = labels[ignored] if not bool(ignored.all()) else labels
        if labels.numel() == 0 or len(self._classes) >= 64:
            return
        self._classes.append(torch.bincount(labels, minlength=2))
        self._outputs = None if binary else scores.shape[-1]
        detached = trace.copied(scores, 1 << 22)
        if detached is None:
            return
        guess = (detached.reshape(-1) > 0).long() if binary else detached.argmax(1)
        if guess.shape == ignored.shape:
            guess = guess[ignored]
            right = float((guess == labels).double().mean())
            self._guessed.append((self._step, torch.bincount(guess, minlength=2), right))

    def _matched(self, labels, wanted, made, classed):
        if self._first is None:
            return
        values, given = self._first
        apart = _apart(given, wanted)
        if apart is not None:
            self._add("shuffled-apart", apart.where())
        paired = torch.equal(labels.reshape(-1), torch.arange(labels.numel()))  # row i belongs to column i
        if values.shape[0] == labels.shape[0] == labels.numel() and values.shape[0] >= 4 and not paired \
                and not _is_computed(wanted) and not _is_picked(made.given(0, "input")):
            self._relation.add(values, labels.reshape(-1), made.name, classed, _is_from(wanted, given))

    # ---- evidence ----

    def evidence(self):
        """The pieces: what was found, and what is compared at the end."""
        found = list(self._found.values())
        found.extend(self._repeated())
        found.extend(self._of_labels())
        return found

    def _repeated(self):
        marks = [mark for mark, *_ in self._batches]
        varied = all(rows != 1 for _, _, rows, *_ in self._batches)
        if len(marks) >= _LEAST and len(set(marks)) == 1 and self._batches[0][1] > 1 and varied:
            yield piece("same-batch", self._batch_at, steps=len(marks), batches=self._batches[0][1], loader=True)
        alone = [1 for mark, _, rows, count, _ in self._batches if rows == 1 and count >= 4 and mark[1] != 0]
        if len(alone) >= _LEAST and len(alone) == len(self._batches):
            yield piece("same-rows", self._batch_at, steps=len(alone), rows=self._batches[0][3],
                        value=self._batches[0][4] if len({one[4] for one in self._batches}) == 1 else None,
                        ids=isinstance(self._batches[0][4], int) or None)
        if not self._several and len(self._inputs) >= _LEAST and len({mark for mark, *_ in self._inputs}) == 1 and \
                all(rows is not None for _, rows, _ in self._inputs):
            rows, of = self._inputs[0][1]
            yield piece("same-batch", self._inputs[0][2], steps=len(self._inputs), rows=rows, of=of, loader=False)
        for where, prints, shape in self._draws.values():
            if len(prints) >= _LEAST and None not in prints and len(set(prints)) == 1:
                yield piece("same-draw", where, steps=len(prints), shape="(%s)" % ", ".join(map(str, shape)))

    def _of_labels(self):
        if len(self._classes) >= _LEAST:
            most = max(len(one) for one in self._classes)
            table = torch.stack([torch.nn.functional.pad(one, (0, most - len(one))) for one in self._classes]).double()
            total = table.sum(0)
            rows = table.sum(1)
            shares = total / total.sum()
            within = [entropy(one / one.sum()) for one in table]
            last = self._guessed[-1] if self._guessed else (0, torch.ones(2), 0.0)
            top = int(total.argmax())
            guess = last[1].double()
            yield piece("labels", self._label_at, steps=len(table), rows=float(rows.mean()),
                        single=float((table.max(1).values == rows).double().mean()),
                        classes=int((total > 0).sum()), outputs=self._outputs, least=int((total > 0).nonzero()[0]),
                        entropy=entropy(shares), within=sum(within) / len(within), majority=float(shares[top]),
                        sequences=self._sequences, top=top, weighted=self._weighted, last_step=last[0],
                        guessed=float(guess[top] / guess.sum()) if top < len(guess) else 0.0, right=last[2],
                        also=self._loaders or [self._picked_at] if self._loaders or self._picked_at else None)
        yield from self._relation.pieces(self._input_at, self._label_at)


def _jumps(images):
    """(share of neighbours more than half of 256 levels apart, mean difference on a circle of 256 levels as a part of
    the plain one), of images on such levels; (0, 1) of others. Pixels at the ends of the range do not count."""
    levels = images.unique().double()
    if not 64 < len(levels) <= 256:
        return 0.0, 1.0
    step = float((levels[1:] - levels[:-1]).min())
    whole = (images.double() - levels[0]) / step
    if float((whole - whole.round()).abs().max()) > 0.02 or float(whole.max()) > 255.5:
        return 0.0, 1.0
    one, other = whole[..., 1:].round(), whole[..., :-1].round()
    apart = (one - other).abs()
    top = float(whole.max())
    inner = (one > 0) & (other > 0) & (one < top) & (other < top)
    around = torch.minimum(apart, 256 - apart)
    return float(((apart > 128) & inner).double().mean()), float(around.sum() / apart.sum())


def _steepness(images, axis):
    """The mean difference of neighbours along an axis."""
    return float(images.diff(dim=axis).abs().mean())


def _first_tensor(batch):
    for _ in range(4):
        if isinstance(batch, torch.Tensor):
            return batch if batch.dim() else None
        if isinstance(batch, dict):
            batch = next(iter(batch.values()), None)
        elif isinstance(batch, (tuple, list)):
            batch = batch[0] if batch else None
        else:
            return None
    return None


def _distinct_rows(tensor):
    """1: all rows are the same; 0: they differ, or that is unknown."""
    part = trace.copied(tensor)
    return 1 if part is not None and part.dim() > 1 and bool((part == part[:1]).all()) else 0


def _whole(made):
    """The operator that took the whole numbers that an input was made of, or None."""
    after = made
    for _ in range(16):
        if made is None:
            return None
        if made.integer:
            return made if made.name else after
        if made.name not in trace.SAME | {"stack", "cat", "from_numpy", "tensor", "div", "mul"}:
            return None
        after, made = made, made.first()
    return None


def _twice(made):
    """The second of two subtractions, or divisions, of the same data on the way to an input; None."""
    seen = []
    for _ in range(16):
        if made is None or made.grad:
            return None
        if made.name in ("sub", "div"):
            other = made.args[1] if len(made.args) > 1 else None
            if isinstance(other, trace.Made) and not (other.name == "" or other.name in ("tensor", "view", "reshape")):
                return None  # computed from the batch: dividing again changes nothing
            entry = (made.name, other if isinstance(other, (int, float, trace.Made)) else None)
            if entry[1] is not None and entry[1] not in (0, 1):
                before = next((one for name, value, one in seen if (name, value) == entry), None)
                if before is not None and entry[0] == "div":
                    return before
                seen.append((*entry, made))
        elif made.name not in trace.SAME | {"getitem", "index_select", "stack", "cat", "from_numpy", "tensor"}:
            return None
        made = made.first()
    return None


def _apart(given, wanted):
    """Where the inputs and the targets were shuffled by different permutations; None."""
    first, second = _orders(given), _orders(wanted)
    if len(first) != len(second):
        return None
    for (one, order), (_, other) in zip(first, second):
        if order is not other and order.number and other.number and order.name == other.name == "randperm" and \
                order.shape == other.shape:
            return one
    return None


def _is_from(made, source):
    """Whether data was computed from the input itself."""
    for _ in range(32):
        if made is None or made is source:
            break
        made = made.first()
    return made is source


def _is_computed(made):
    """Whether it was computed by a network: a bootstrapped target, the output of a teacher."""
    return any(one.name == "parameter" for one in trace.ancestors(made, 512, grads=False))


def _orders(made):
    """(Made, index) of each selection of rows on the way back."""
    found = []
    for _ in range(32):
        if made is None:
            break
        if made.name in _PICKS:
            index = made.args[2] if made.name == "index_select" and len(made.args) > 2 else \
                made.args[1] if len(made.args) > 1 else None
            if isinstance(index, trace.Made):
                found.append((made, index.source()))
        made = made.first()
    return found


def _is_picked(output):
    """Whether one output of each example was picked by an index, such as an action: the label depends on it, too."""
    made = output.source() if isinstance(output, trace.Made) else None
    return made is not None and made.name in ("gather", "take_along_dim", "getitem") and \
        any(one.integer for one in made.parents()[1:])
