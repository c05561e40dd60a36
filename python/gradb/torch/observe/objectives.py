# SPDX-License-Identifier: MIT
"""Hand-written objectives: what a loss is computed from, by the form of its operators and by their values."""
import torch

from . import Watcher, piece, trace
from .data import DRAWN, FIRST
from .loss_input import terms_of
from .targets import is_overlap, parts_of_sum

_BINARY = frozenset(("binary_cross_entropy", "binary_cross_entropy_with_logits"))
_CROSS = frozenset(("cross_entropy", "nll_loss"))
_ONE_WAY = _BINARY | _CROSS | {"poisson_nll_loss"}  # whose second argument is data
_LOSSES = _ONE_WAY | {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}
_HINGES = frozenset(("relu", "clamp", "clamp_min", "maximum"))
_CHOICES = frozenset(("max", "min", "amax", "amin", "topk", "sort", "kthvalue", "maximum", "minimum", "where", "argmax",
                      "argmin"))
_SCALED = trace.SAME | {"mul"}
_MOST = 512         # operators that are walked
_PIECES = 16        # of one kind
_VALUES = 1 << 20   # of a batch, or of an output that a mask multiplies
_SAMPLE = 1 << 16   # of them that are read
_ROWS = 256         # of a batch that are recognised again
_KNOWN_ROWS = 8192


class Objectives(Watcher):
    """Looks at the parts of a loss."""

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._found = {}
        self._rows = {}   # a number for each row of inputs -> the last step that had it
        self._fakes = {}  # module -> the constant target of its outputs, where these carry no gradient
        self._labels = set()  # constant targets of outputs that were made of data alone
        self.begins(0)

    def begins(self, step):
        """Forgets the previous step."""
        self.trace.begins(step)
        self._step, self._input, self._start = step, None, self.trace.count
        self._focal = []      # (the exponential, the mean that it was made of)
        self._distances = []  # of outputs and targets: Made
        self._products = {}   # of outputs and masks -> (lowest output, highest, share outside of 0 to 1)
        self._constant = {}   # Made of a loss with a constant target -> (target, modules of generators)

    def _add(self, kind, made, holds, **numbers):
        where = made.where()
        key = kind, where.get("file"), where.get("line")
        if key not in self._found and sum(one[0] == kind for one in self._found) >= _PIECES:
            return
        found = self._found.setdefault(key, piece(kind, where, steps=0, held=0))
        found["steps"] += 1
        found["held"] += bool(holds)
        found.update((key, value) for key, value in numbers.items() if value is not None and (
            not key.startswith("first_") or key not in found))

    def operator(self, call):
        """Looks at losses and at what they are written with."""
        made = self.trace.see(call)
        if made is None or not call.is_forward() or not made.grad:
            return
        name = call.name
        if name in FIRST:
            self._entered(call)
        elif name in _LOSSES:
            self._loss_of(call, made)
        elif name == "exp":
            self._exponential(call, made)
        elif name == "mul":
            self._multiplies(call, made)
        elif name in _HINGES:
            self._hinge(call, made)
        elif name == "triplet_margin_loss":
            self._triplet(call, made)

    def _entered(self, call):
        data = call.args[0] if call.args else None
        if self._input is None and isinstance(data, torch.Tensor) and not data.requires_grad and data.dim() > 1:
            self._input = trace.copied(data, _VALUES)

    # ---- losses by name ----

    def _loss_of(self, call, made):
        output, target = call.given(0, "input"), call.given(1, "target")
        given, wanted = made.given(0, "input"), made.given(1, "target")
        if not all(isinstance(one, trace.Made) for one in (given, wanted)):
            return
        name = call.name
        if name in _ONE_WAY:
            self._add("loss-swapped", made, wanted.grad and not given.grad, loss=name)
        if name in _CROSS:
            if target.is_floating_point() and target.dim() > 1:
                self._soft(made, target, 1, name)
            return
        if name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss") and given.grad and not wanted.grad and \
                output.shape == target.shape and output.dim() > 1:
            self._distances.append((made, given, wanted))
        if given.grad and not wanted.grad and target.numel() <= 4096:
            self._generated(made, given, target)

    def _soft(self, made, target, axis, name):
        """Rows of soft targets are to be probabilities."""
        values = trace.copied(target, 1 << 16)
        if values is None or values.shape[axis] < 2:
            return
        values = -values if float(values.max()) < 0 else values
        sums = values.double().sum(axis)
        holds = float(values.min()) > 0 and float(sums.max() - sums.min()) <= 1e-3 * float(sums.max())
        self._add("soft-targets", made, holds, sum=float(sums.mean()), classes=values.shape[axis], loss=name,
                  low=float(values.min()))

    def _generated(self, made, given, target):
        """A loss with one target for all: of what a generator made, or of data."""
        values = trace.read(target)
        if values is None or float(values.min()) != float(values.max()):
            return
        made_by, cut = set(), set()
        seen, todo = set(), [given]
        while todo and len(seen) < _MOST:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            for before in one.parents():
                if before.name == "parameter":
                    continue
                is_cut = one.name == "detach" or not before.grad
                (cut if is_cut else made_by).add(_module_of(before))
                if not is_cut or before.name in trace.SAME:
                    todo.append(before)
        label = float(values[0])
        cut -= made_by | {""}
        for module in cut:
            self._fakes[module] = label
        if not cut and not made_by & self._fakes.keys():
            self._labels.add(label)
        self._constant[made] = label, () if cut else made_by

    # ---- operators ----

    def _exponential(self, call, made):
        """exp(-loss) of the mean of a batch; exp(new - old) of equal log-probabilities."""
        first = made.first()
        if first is None:
            return
        if first.name == "neg" and made.shape == () and first.first() is not None:
            inner = first.first().source()
            before = inner.first()
            if (inner.name in _LOSSES or inner.name == "mean") and before is not None and before.shape and \
                    before.shape[0] > 1:
                self._focal.append((made, inner))
        elif first.name == "sub" and not first.turned and len(first.parents()) == 2:
            new, old = first.parents()
            if new.grad and not old.grad and old.source() is not new.source() and call.args[0].numel() > 1:
                self._ratio(call, made)

    def _draws(self, made):
        """Whether it was made of random numbers of this step: actions that are chosen now."""
        return any(one.name in DRAWN and one.number > self._start
                   for one in trace.ancestors(made, _MOST, grads=False))

    def _ratio(self, call, made):
        """Whether it is 1 in each element, while rows of the data come again."""
        rows, again = self._input, 0
        if rows is not None and not self._draws(made):
            flat = rows[:_ROWS].double().reshape(min(_ROWS, rows.shape[0]), -1)
            weights = torch.arange(1, flat.shape[1] + 1, dtype=torch.float64).mul_(0.6180339887).frac_()
            for mark in (flat @ weights).tolist():
                again += self._rows.get(mark, self._step) != self._step
                if mark in self._rows or len(self._rows) < _KNOWN_ROWS:
                    self._rows[mark] = self._step
        found = self._found.get(("ratio", made.where().get("file"), made.where().get("line")), {})
        self._add("ratio", made, bool((call.args[0] == 0).all()), count=call.args[0].numel(),
                  again=found.get("again", 0) + again)

    def _multiplies(self, call, made):
        pair = list(zip(made.args[:2], call.args[:2]))
        if len(pair) != 2 or not all(isinstance(one, trace.Made) for one, _ in pair) or \
                pair[0][0].grad == pair[1][0].grad or pair[0][0].shape != pair[1][0].shape:
            return
        (output, scores), (_, data) = pair if pair[0][0].grad else pair[::-1]
        source = output.source()
        if source.name == "log_softmax" and data.is_floating_point() and data.dim() > 1:
            axis = source.given(1, "dim")
            if axis in (-1, len(made.shape) - 1) and source.shape == made.shape:
                self._soft(made, data, -1, "the product")
        elif len(self._products) < 16 and scores.dim() > 1 and 1 < scores.numel() <= _VALUES:
            mask, values = trace.read(data, _SAMPLE), trace.read(scores, _SAMPLE)
            if mask is not None and values is not None and bool(((mask == 0) | (mask == 1)).all()):
                outside = (values < -1e-3) | (values > 1.001)
                self._products[made] = float(values.min()), float(values.max()), float(outside.double().mean())

    def _hinge(self, call, made):
        """max(0, near - far + margin)."""
        inner = made.first()
        margin = next((one for one in inner.args if isinstance(one, (int, float)) and not isinstance(one, bool)),
                      None) if inner is not None and inner.name == "add" else None
        difference = inner.first() if margin is not None else None
        if not margin or margin < 0 or difference is None or difference.name != "sub" or made.name == "clamp" and \
                made.given(1, "min") not in (0, 0.0):
            return
        pair = difference.parents()
        if len(pair) != 2 or not all(one.grad for one in pair) or pair[0].shape != pair[1].shape or not pair[0].shape:
            return
        if any(one.name in _CHOICES for one in trace.ancestors(difference, 64)):
            return  # the hardest examples were chosen
        values = trace.read(call.args[0])
        if values is not None and len(values) >= 4:
            self._apart(made, values - margin, margin)

    def _triplet(self, call, made):
        anchor, near, far = (call.given(at, name) for at, name in enumerate(("anchor", "positive", "negative")))
        margin = call.given(3, "margin", 1.0)
        if not all(isinstance(one, torch.Tensor) and one.dim() == 2 for one in (anchor, near, far)):
            return
        if any(one.name in _CHOICES for one in trace.ancestors(made, 64)):
            return
        distance = torch.nn.functional.pairwise_distance
        if anchor.shape == near.shape == far.shape and len(anchor) >= 4:
            self._apart(made, distance(anchor, near) - distance(anchor, far), float(margin))

    def _apart(self, made, difference, margin):
        """What is made smaller, less what is made larger."""
        larger, size = float((difference > 0).double().mean()), float(difference.abs().median())
        self._add("hinge-order", made, True, first_larger=larger, larger=larger, first_size=size, size=size,
                  margin=margin, rows=len(difference))

    # ---- a loss ----

    def loss(self, tensor):
        """A backward pass begins: which of the parts are in this loss."""
        if not self.observation.observes or not isinstance(tensor, torch.Tensor):
            return
        loss = self.trace.of(tensor)
        inside = trace.ancestors(loss, _MOST)
        for exponential, mean in self._focal:
            self._add("focal-mean", mean, exponential in inside and _weighs(inside, exponential, mean),
                      loss=mean.name, node_made=exponential.node_name())
        for made in inside if self._products else ():
            if made.name in ("div", "truediv", "true_divide") and is_overlap(made):
                self._overlap(made)
        for made, given, wanted in self._distances:
            if loss.source(trace.SAME | {"mean", "sum"}) is made:
                self._add("identity", made, _width(given, wanted) >= _per_row(wanted), loss=made.name,
                          columns=_per_row(wanted))
        for term in terms_of(loss)[0] if self._constant else ():
            label, modules = self._constant.get(term.made, (None, ()))
            fakes = {self._fakes[one] for one in modules if one in self._fakes}
            if fakes:
                self._add("generator-label", term.made, term.sign > 0 and fakes == {label}, label=label,
                          others=len((self._labels | set(self._fakes.values())) - {label}), loss=term.made.name)

    def _overlap(self, made):
        product = next((one for one in parts_of_sum(made.parents()[0]) if one in self._products), None)
        if product is not None:
            low, high, share = self._products[product]
            self._add("overlap-range", product, share > 0.01, low=low, high=high, share=share)

    def evidence(self):
        """What was measured."""
        return list(self._found.values())


def _weighs(inside, exponential, mean):
    """Whether a function of the exponential weighs the mean that it was made of."""
    for made in inside:
        pair = made.parents() if made.name == "mul" else ()
        if len(pair) == 2 and all(one.grad for one in pair):
            for one, other in (pair, pair[::-1]):
                if one.source(_SCALED) is mean and other.source(_SCALED) is not mean and \
                        exponential in trace.ancestors(other, 32):
                    return True
    return False


def _module_of(made):
    """The path of the module that made it, in this step or the one before; buffers are not made."""
    return made.module or (made.node_name().rpartition("/")[0] if made.grad else "")


def _per_row(made):
    size = 1
    for one in made.shape[1:]:
        size *= one
    return size


def _width(output, wanted):
    """The numbers by example that lie between a target that is an input, and the output: as many as pass the narrowest
    operator of the widest way. 0: the target is not read as it is, or something random or masking is on the way."""
    target, known = wanted.source(), {}
    if target.name in ("zeros_like", "ones_like", "zeros", "ones", "full", "full_like"):
        return 0
    todo = [output]
    while todo:
        one = todo[-1]
        if one in known:
            todo.pop()
            continue
        parents = [before for before in one.parents() if before.name != "parameter"]
        if one is target:
            known[todo.pop()] = 1 << 40
        elif len(known) >= _MOST or one.name.startswith(("dropout", "rand", "bernoulli")) or not one.grad and \
                one.name not in trace.SAME | {"cat", "stack"}:
            known[todo.pop()] = 0
        elif any(before not in known for before in parents):
            todo += [before for before in parents if before not in known]
        else:
            known[todo.pop()] = min(_per_row(one), max((known[before] for before in parents), default=0))
    return known[output]
