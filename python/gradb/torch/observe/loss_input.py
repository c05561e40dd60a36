# SPDX-License-Identifier: MIT
"""What a loss is computed from: scores or probabilities, targets in the range of the outputs, the sign of each term."""
import torch

from . import Watcher, likelihood, loss_form, piece, trace
from .lines import line_of_program

_ROWS = 4096     # of scores that are examined
_TERMS = 256     # operators from a loss back to its terms
_PIECES = 16     # of one kind

_CROSS = frozenset(("cross_entropy", "cross_entropy_loss"))
_LOGITS = frozenset(("binary_cross_entropy_with_logits", "multilabel_soft_margin_loss", "sigmoid_focal_loss"))
_BINARY = _LOGITS | {"binary_cross_entropy"}
_NLL = frozenset(("nll_loss", "nll_loss2d", "nll_loss_nd"))
_KL = frozenset(("kl_div",))
_DISTANCES = frozenset(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
_LOSSES = _CROSS | _BINARY | _NLL | _DISTANCES | {"ctc_loss", "poisson_nll_loss", "gaussian_nll_loss"}
# The range of the results, of operators that limit them.
_RANGES = {"relu": (0.0, None), "relu_": (0.0, None), "sigmoid": (0.0, 1.0), "sigmoid_": (0.0, 1.0),
           "tanh": (-1.0, 1.0), "tanh_": (-1.0, 1.0), "softmax": (0.0, 1.0), "softplus": (0.0, None),
           "relu6": (0.0, 6.0),
           "abs": (0.0, None), "exp": (0.0, None), "softsign": (-1.0, 1.0), "hardtanh": (-1.0, 1.0),
           "hardsigmoid": (0.0, 1.0), "logsigmoid": (None, 0.0), "log_softmax": (None, 0.0), "square": (0.0, None),
           "sin": (-1.0, 1.0), "cos": (-1.0, 1.0), "norm": (0.0, None)}
_SCALED = trace.SAME | {"mul", "add"}
_LIMITED = trace.SAME | {"dropout", "clamp", "clip", "clamp_", "clip_", "clamp_min", "clamp_max"}
_SMOOTHED = trace.SAME | {"clamp", "clip", "clamp_", "clip_", "clamp_min", "clamp_max", "add", "add_", "dropout"}
# From a loss to its terms.
_PASSED = trace.SAME | {"mean", "sum", "nanmean", "nansum", "stack", "cat", "add_", "iadd", "getitem", "float", "where",
                        "masked_select", "index_select", "minimum", "min", "nan_to_num", "clamp", "clip", "div_"}
# Said where a step has one loss.
_SINGLE = ("maximised", "policy-sign", "cancels", "one-sided", "falling-term", "advantage")
_SEVERAL = frozenset(("stack", "cat", "where", "minimum", "min"))  # of them, those that pass all arguments)
_MOVES = frozenset(("transpose", "permute", "mT", "T", "movedim", "swapaxes", "view", "reshape"))


def _rows(tensor, axis):
    """The rows along an axis of the first ones of a tensor, as (rows, classes) in float64; None: unreadable."""
    if tensor.dim() == 0 or tensor.numel() == 0 or not tensor.is_floating_point():
        return None
    shape = tensor.shape
    per = tensor.numel() // shape[0]
    part = tensor[:max(1, (_ROWS * shape[axis]) // max(per, 1))] if axis and tensor.layout == torch.strided else tensor
    flat = trace.copied(part)
    return None if flat is None else flat.to(torch.float64).movedim(axis, -1).reshape(-1, shape[axis])[:_ROWS]


class LossInput(Watcher):
    """Looks at the arguments of losses, and at how a loss adds up."""

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._found = {}       # (kind, place) -> piece
        self._pairs = {}       # Made that pairs each with each -> (shape, shape)
        self._tokens = []      # (ids of this step, its Made): copies
        self._losses = 0       # backward passes of this step
        self._seen = set()     # optimizers
        self._signs = []       # pieces of this step that hold for a single loss only
        self._most = 0         # of passes in a step
        self._picked = {}      # Made of a loss for each token, or of chosen scores -> (labels, what is ignored)

    def begins(self, step):
        """Forgets the previous step."""
        self.trace.begins(step)
        self._pairs, self._tokens, self._losses, self._signs = {}, [], 0, []
        self._picked = {}

    # ---- pieces ----

    def _add(self, kind, where, holds, **numbers):
        """Counts an observation of one place: `holds` in `held` of `steps`. Numbers named min_* and max_* are the
        extremes; others the last ones while it holds."""
        key = (kind, where.get("file"), where.get("line"), where.get("node"), numbers.get("what"))
        found = self._found.get(key)
        if found is None:
            if sum(one[0] == kind for one in self._found) >= _PIECES:
                return
            found = self._found[key] = piece(kind, where, steps=0, held=0)
        found["steps"] += 1
        found["held"] += bool(holds)
        if not holds and found["held"]:
            return
        for name, value in numbers.items():
            if value is None:
                continue
            if name.startswith("min_") and name in found:
                value = min(value, found[name])
            elif name.startswith("max_") and name in found:
                value = max(value, found[name])
            found[name] = value

    # ---- operators ----

    def operator(self, call):
        """Looks at losses."""
        made = self.trace.see(call)
        if made is None or not call.is_forward():
            return
        name = call.name
        if name == "embedding":
            ids = call.given(0, "input")
            if isinstance(ids, torch.Tensor) and ids.dim() == 2 and not ids.is_floating_point() and not self._tokens:
                self._tokens.append(trace.copied(ids))
        if not made.grad:
            return
        if name == "gather":
            self._chooses(call, made)
        elif name in _CROSS:
            self._cross_entropy(call, made)
        elif name in _NLL:
            self._log_likelihood(call, made)
        elif name in _BINARY:
            self._binary(call, made)
        elif name in _KL:
            self._divergence(call, made)
        elif name in _DISTANCES:
            self._distance(call, made, call.given(0, "input"), call.given(1, "target"), made.given(0, "input"),
                           made.given(1, "target"))
        elif name == "poisson_nll_loss":
            self._poisson(call, made)
        elif name in ("sub", "mul", "add", "div", "rsub") and len(call.args) == 2:
            self._elementwise(call, made)
        if name in _LOSSES and call.given(4, "reduction") == "sum":
            self._add("sum-loss", made.where(), True, loss=name, count=_numel(call.given(0, "input")))

    left = operator

    def _cross_entropy(self, call, made):
        scores, target = call.given(0, "input"), call.given(1, "target")
        if not isinstance(scores, torch.Tensor) or not isinstance(target, torch.Tensor) or scores.dim() == 0:
            return
        axis = 1 if scores.dim() > 1 else 0
        self._add("one-class", made.where(), scores.shape[axis] == 1, loss=call.name)
        rows = _rows(scores, axis)
        given = made.given(0, "input")
        if rows is None or rows.shape[1] < 2 or not isinstance(given, trace.Made):
            return
        self._probabilities(call, made, rows, given, "softmax")
        if not target.is_floating_point():
            self._labels(call, made, target, scores, axis)
        smoothing = call.given(7, "label_smoothing", 0.0)
        if isinstance(smoothing, float) and smoothing > 0:
            self._add("label-smoothing", made.where(), True, smoothing=smoothing, classes=scores.shape[axis],
                      own=1 - smoothing + smoothing / scores.shape[axis])
        self._limits(call, made, given, None)
        if scores.dim() == 3 and scores.shape[1] == scores.shape[2]:
            source = given.source(trace.SAME - _MOVES)
            self._add("class-axis", made.where(), source.name == "linear" and source.shape == tuple(scores.shape),
                      loss=call.name, classes=scores.shape[2], node_made=source.node_name())

    def _probabilities(self, call, made, rows, given, applies):
        low, high = float(rows.min()), float(rows.max())
        sums = rows.sum(1)
        is_sum = bool(((sums - 1).abs() < 1e-3).all())
        inside = low >= 0 and high <= 1
        source = given.source(_SMOOTHED if inside else trace.SAME)
        known = source.name in ("softmax", "sigmoid", "sigmoid_", "softmax_")
        holds = inside and (known or is_sum) if applies == "softmax" else \
            inside and source.name in ("sigmoid", "sigmoid_", "softmax")
        where = source.where() if known else made.where()
        self._add("loss-input", where, holds, loss=call.name, min_value=low, max_value=high, applies=applies,
                  made=source.name if known else None, sum_min=float(sums.min()) if is_sum else None,
                  sum_max=float(sums.max()) if is_sum else None,
                  node=source.node_name() or made.node_name())

    def _labels(self, call, made, target, scores, axis):
        """Integer targets: what is ignored, and padding."""
        ignored = call.given(4, "ignore_index", -100)
        labels = trace.copied(target)
        if labels is None:
            return
        classes = scores.shape[axis]
        if isinstance(ignored, int) and 0 <= ignored < classes:
            share = float((labels == ignored).double().mean())
            self._add("ignored-class", made.where(), share > 0, ignored=ignored, share=share, classes=classes,
                      sequences=_is_sequence(made.given(1, "target")))
        weight = call.given(2, "weight")
        if call.given(6, "reduction", "mean") in ("mean", "sum") and weight is None:
            self._padding(made, labels, ignored, made.given(1, "target"))
        elif weight is None:
            self._picked[made] = labels, ignored, made.given(1, "target")

    def _chooses(self, call, made):
        """Scores that are chosen by labels: gather(log_probabilities, -1, labels)."""
        index = call.given(2, "index")
        if isinstance(index, torch.Tensor) and index.dim() > 1 and index.shape[-1] == 1:
            labels = trace.copied(index)
            if labels is not None:
                self._picked[made] = labels, None, made.given(2, "index")

    def _padding(self, made, labels, ignored, target):
        """Whether labels end in runs of one value where the tokens end in runs of one."""
        ids = self._tokens[0] if self._tokens else None
        if ids is None or labels.numel() != ids.numel() or not _is_sequence(target):
            return
        wanted = labels.reshape(ids.shape)
        if isinstance(ignored, int) and wanted.shape[1] > 2 and bool((wanted[:, -1] == ignored).all()):
            wanted = wanted[:, :-1]  # nothing follows the last token
        ends, pad = _tails(wanted)
        own, token = _tails(ids)
        if pad == ignored or ids.shape[0] < 4:
            return
        match = ((ends == own) | (ends == own + 1))[own > 0]
        share = float(ends.sum()) / wanted.numel()
        holds = bool(match.numel() and match.double().mean() > 0.95 and len(set(own.tolist())) > 1
                     and (own > 0).double().mean() >= 0.5)
        where = made.where()
        if "site-packages" in where.get("file", ""):  # the loss of a library's model
            where.update(line_of_program())
        self._add("padded-loss", where, holds, share=share, pad=pad, token=token, loss=made.name,
                  ignored=ignored if isinstance(ignored, int) else None)

    def _log_likelihood(self, call, made):
        scores, given = call.given(0, "input"), made.given(0, "input")
        if not isinstance(scores, torch.Tensor) or scores.dim() == 0 or not isinstance(given, trace.Made):
            return
        rows = _rows(scores, 1 if scores.dim() > 1 else 0)
        if rows is None:
            return
        total = rows.logsumexp(1)
        total = total[torch.isfinite(total)]
        if not total.numel():
            return
        source = given.source(_SMOOTHED)
        sums = rows.sum(1)
        probabilities = float(rows.min()) >= 0 and bool(((sums - 1).abs() < 1e-3).all()) or source.name == "sigmoid"
        known = source.name in ("softmax", "sigmoid")
        self._add("log-likelihood", (source if known else made).where(), float(total.abs().median()) > 0.05,
                  loss=call.name, made=source.name if known else None, probabilities=probabilities,
                  min_value=float(rows.min()), max_value=float(rows.max()), positive=float((rows > 0).double().mean()),
                  total=float(total.exp().median()) if float(total.median()) < 300 else None,
                  node=source.node_name() or made.node_name())

    def _binary(self, call, made):
        scores, target = call.given(0, "input"), call.given(1, "target")
        given = made.given(0, "input")
        wanted = trace.read(target) if isinstance(target, torch.Tensor) else None
        if wanted is None or not isinstance(scores, torch.Tensor) or not isinstance(given, trace.Made):
            return
        self._add("binary-targets", made.where(), float(wanted.min()) < -1e-6 or float(wanted.max()) > 1 + 1e-6,
                  loss=call.name, min_value=float(wanted.min()), max_value=float(wanted.max()))
        if call.name in _LOGITS:
            rows = _rows(scores, -1)
            if rows is not None:
                self._probabilities(call, made, rows, given, "sigmoid")
            self._limits(call, made, given, wanted)
        elif given.source(_SMOOTHED).name == "softmax":
            source = given.source(_SMOOTHED)
            dim = source.given(1, "dim")
            one = isinstance(dim, int) and -len(source.shape) <= dim < len(source.shape) and source.shape[dim] == 1
            self._add("one-class", source.where(), one, loss=call.name, softmax=True)
            if dim in (-1, len(source.shape) - 1) and source.shape == tuple(target.shape) and not one:
                sums = wanted[:len(wanted) // target.shape[-1] * target.shape[-1]].reshape(-1, target.shape[-1]).sum(1)
                self._add("softmax-labels", source.where(), bool((sums > 1.01).any()), loss=call.name,
                          labels=target.shape[-1], most=float(sums.max()), usual=float(sums.mean()))
        self._shapes(call, made, scores, target)

    def _divergence(self, call, made):
        scores, target = call.given(0, "input"), call.given(1, "target")
        rows = _rows(scores, -1) if isinstance(scores, torch.Tensor) else None
        wanted = _rows(target, -1) if isinstance(target, torch.Tensor) else None
        if rows is None or wanted is None:
            return
        log_target = bool(call.given(5, "log_target", False))
        source = made.given(0, "input").source(_SMOOTHED)
        total = rows.logsumexp(1)
        finite = total[torch.isfinite(total)]
        self._add("kl-arguments", made.where(), True, what="kl", log_target=log_target,
                  input_is_probabilities=float(rows.min()) >= 0 and bool(((rows.sum(1) - 1).abs() < 1e-3).all()),
                  input_total=float(finite.median()) if finite.numel() else None,
                  input_is_log=source.name in ("log_softmax", "logsigmoid", "log"),
                  target_is_log=float(wanted.max()) <= 0 and float(wanted.min()) < 0,
                  target_is_probabilities=float(wanted.min()) >= 0 and
                  bool(((wanted.sum(1) - 1).abs() < 1e-3).all()),
                  min_target=float(wanted.min()), reduction=str(call.given(4, "reduction", "mean")), made=source.name,
                  input_trained=scores.requires_grad, target_trained=target.requires_grad)

    def _poisson(self, call, made):
        given = made.given(0, "input")
        if isinstance(given, trace.Made) and call.given(2, "log_input", True) is True:
            source = given.source()
            self._add("poisson-input", made.where(), source.name in ("exp", "softplus"), made=source.name,
                      node_made=source.node_name())

    def _distance(self, call, made, output, target, given, wanted):
        """A distance between outputs and targets."""
        if not all(isinstance(one, torch.Tensor) for one in (output, target)) or not isinstance(given, trace.Made) or \
                not isinstance(wanted, trace.Made):
            return
        if call.name in _DISTANCES:
            self._shapes(call, made, output, target)
        if given.grad == wanted.grad:
            return
        if wanted.grad:
            output, target, given = target, output, wanted
        if target.shape == output.shape and target.numel() > 1:
            values = trace.read(target)
            if values is not None:
                self._limits(call, made, given, values)

    def _limits(self, call, made, given, targets):
        """Whether the operator that ends the network limits its results to a range, and the targets lie outside."""
        source = given.source(_LIMITED - {"clamp", "clip", "clamp_", "clip_", "clamp_min", "clamp_max"})
        low, high = _range_of(source)
        if low is None and high is None or not source.grad:
            return
        numbers = dict(made=source.name, loss=call.name, range=_range_text(low, high))
        if call.name in _CROSS:
            self._add("limited-scores", source.where(), source.name not in ("softmax", "log_softmax", "logsigmoid"),
                      **numbers)
            return
        if call.name in _LOGITS:
            if low == 0.0 and high is None:
                outside = float((targets < 0.5).double().mean())
                self._add("output-range", source.where(), outside > 0.01, outside=outside, scores=True, **numbers)
            return
        slack = 1e-4 + 1e-3 * float(targets.abs().max())
        outside = torch.zeros_like(targets, dtype=torch.bool)
        if low is not None:
            outside |= targets < low - slack
        if high is not None:
            outside |= targets > high + slack
        share = float(outside.double().mean())
        self._add("output-range", source.where(), share > 0, outside=share, min_target=float(targets.min()),
                  max_target=float(targets.max()), **numbers)

    def _shapes(self, call, made, output, target):
        first, second = tuple(output.shape), tuple(target.shape)
        if _pairs(first, second):
            self._pairs_found(made, call.name, first, second)

    def _pairs_found(self, made, name, first, second):
        self._add("broadcast", made.where(), True, what="broadcast", loss=name, first=_shape(first),
                  second=_shape(second), count=max(first))

    def _elementwise(self, call, made):
        first, second = call.args
        if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
            return
        shapes = tuple(first.shape), tuple(second.shape)
        if first.requires_grad != second.requires_grad and _pairs(*shapes):
            self._pairs[made] = shapes
        if call.name == "sub" and first.requires_grad != second.requires_grad and shapes[0] == shapes[1]:
            made_first, made_second = made.args[0], made.args[1]
            wanted, given = (second, made_first) if first.requires_grad else (first, made_second)
            if isinstance(given, trace.Made) and any(one is not None for one in _range_of(given.source())):
                values = trace.read(wanted)
                if values is not None:
                    self._waits(call, made, given, values)

    def _waits(self, call, made, given, targets):
        """A difference that may be an error: judged when a loss is made of it."""
        self._pairs.setdefault("differences", []).append((call.name, made, given, targets.clone()))

    # ---- a loss ----

    def loss(self, tensor):
        """A backward pass begins: walks back to the terms of the loss."""
        if not self.observation.observes or not isinstance(tensor, torch.Tensor):
            return
        self._losses += 1
        self._most = max(self._most, self._losses)
        loss = self.trace.of(tensor)
        terms, seen = terms_of(loss)
        for made in seen:
            shapes = self._pairs.get(made)
            if shapes is not None:
                self._pairs_found(made, made.name, *shapes)
        for name, made, given, targets in self._pairs.get("differences", ()):
            if made in seen:
                self._limits(_Named(name), made, given, targets)
        self._looks_at_form(loss, terms, seen)
        self._judged(terms, tensor)

    def _densities(self, loss, value):
        """A loss that contains the constant of normal densities with a minus: it is their logarithm."""
        found = list(likelihood.normal_constants(loss, parts_of))
        if found:
            made = loss.source(trace.SAME | {"mean", "sum"})
            self._signs.append(("maximised", loss.where(), all(sign < 0 for _, sign in found),
                                dict(loss=found[0][0].name, chosen=True, density=True, value=value, terms=1,
                                     also=[one for one in (made.where(), found[0][0].where()) if one])))

    def _looks_at_form(self, loss, terms, seen):
        """Hand-written parts: softmax over one element, padding, averages."""
        for made in seen:
            if made.name in ("softmax", "log_softmax"):
                self._add("one-class", made.where(), loss_form.is_single(made), loss=made.name)
        masked = loss_form.is_masked(seen)
        for term in terms:
            if term.made in self._picked and term.factor is None and not masked:
                labels, ignored, target = self._picked[term.made]
                self._padding(term.made, labels, ignored, target)
        if loss_form.sums_batch(loss) and any(term.kind in ("loss", "error") for term in terms):
            self._add("sum-loss", loss.where(), True, loss="the sum", count=max(loss.first().shape[0], 2))
        found = loss_form.cancelled(loss, seen)
        if found is not None:
            made, how = found
            self._signs.append(("cancels", made.where(), all(term.made is made or term.kind == "falls"
                                                             for term in terms), {how: True}))
        else:
            made = loss_form.one_sided(loss, parts_of)
            if made is not None:
                self._signs.append(("one-sided", made.where(), True, {}))

    def _judged(self, terms, tensor):
        fits = [term for term in terms if term.kind in ("loss", "error") and term.sign]
        chosen = [term for term in terms if term.kind == "chosen" and term.sign]
        weighted = [term for term in fits + chosen if term.factor is not None]
        plain = [term for term in fits if term.factor is None]
        value = trace.read(tensor)
        value = float(value.sum()) if value is not None else None
        self._densities(self.trace.of(tensor), value)
        if plain and len(fits) == len(plain):
            self._signs.append(("maximised", plain[0].made.where(), all(term.sign < 0 for term in plain),
                                dict(loss=plain[0].made.name, terms=len(plain), value=value,
                                     error=plain[0].kind == "error")))
        for term in chosen if not weighted else ():
            self._signs.append(("maximised", term.made.where(), term.sign > 0,
                                dict(loss=term.made.name, chosen=True, value=value, terms=1)))
        advantages = set()
        for term in terms:
            if term.kind == "falls":
                self._signs.append(("falling-term", term.made.where(), True, dict(name=term.made.name, value=value)))
            elif term.factor is not None and term.factor.grad and term.factor not in advantages:
                advantages.add(term.factor)
                self._signs.append(("advantage", term.factor_at.where(), True,
                                    dict(factor=term.factor.node_name() or term.factor.name)))
        for term in weighted:
            sign = term.sign if term.kind == "chosen" else -term.sign
            self._signs.append(("policy-sign", term.factor_at.where(), sign * term.factor_sign > 0,
                                dict(chosen=term.kind == "chosen", factor=term.factor.node_name() or term.factor.name,
                                     log=term.made.node_name(), name=term.made.name)))

    def before_step(self, optimizer):
        """Notes which optimizers there are, and whether one goes up."""
        self._seen.add(id(optimizer))
        groups = getattr(optimizer, "param_groups", None) or [{}]
        self._up = bool(groups[0].get("maximize", False))
        self._parameters = sum(len(group.get("params", ())) for group in groups)

    _up, _parameters = False, 0

    def ends(self, step):
        """Signs count in steps with one loss and one optimizer."""
        if self._losses == 1 and len(self._seen) == 1:
            for kind, where, holds, numbers in self._signs:
                turned = self._up and kind not in ("cancels", "one-sided", "advantage")
                self._add(kind, where, bool(holds) != turned, maximize=self._up, parameters=self._parameters,
                          **numbers)
        self._signs, self._losses, self._pairs, self._tokens = [], 0, {}, []

    def evidence(self):
        """All pieces; of those on signs, only where one loss and one optimizer make each step."""
        single = len(self._seen) == 1 and self._most == 1
        return [one for one in self._found.values() if single or one["kind"] not in _SINGLE]


class _Named:
    """Stands for a call of which only the name matters."""

    def __init__(self, name):
        self.name = name


class _Term:
    """A term of a loss. kind: "loss" (an operator of that name), "error" (a power or magnitude of a difference of an
    output and data), "chosen" (log-probabilities that were picked by an index), "falls" (has no upper limit, and is
    subtracted); sign; factor: the data that it was
    multiplied with, or None."""
    __slots__ = ("kind", "sign", "made", "factor", "factor_at", "factor_sign")

    def __init__(self, kind, sign, made, factor):
        self.kind, self.sign, self.made = kind, sign, made
        self.factor, self.factor_at = factor if factor is not None else (None, None)
        self.factor_sign = _sign_of(self.factor) if self.factor is not None else 1


_KEEPS_SIGN = frozenset(("neg", "mul", "div", "detach", "to", "float", "squeeze", "unsqueeze", "view", "reshape",
                         "getitem", "stack", "cat"))


def _sign_of(made):
    """-1 where data was negated last."""
    sign = 1
    for _ in range(16):
        if made is None or made.name not in _KEEPS_SIGN:
            break
        if made.name == "neg":
            sign = -sign
        numbers = [one for one in made.args if isinstance(one, (int, float)) and not isinstance(one, bool)]
        if made.name in ("mul", "div") and numbers and numbers[0] < 0:
            sign = -sign
        if made.name in ("mul", "div") and not numbers:
            break
        made = made.first()
    return sign


def terms_of(loss):
    """(the terms of a loss, all operators between it and them)."""
    found, seen, todo = [], set(), [(loss, 1, None)]
    while todo and len(seen) < _TERMS:
        made, sign, factor = todo.pop()
        if not isinstance(made, trace.Made) or made in seen or not made.grad:
            continue
        seen.add(made)
        if made.name in _LOSSES:
            found.append(_Term("loss", sign, made, factor))
            continue
        if _is_error(made):
            found.append(_Term("error", sign, made, factor))
        elif sign < 0 and (made.name == "exp" or loss_form.is_even(made)):
            found.append(_Term("falls", sign, made, factor))
        if _is_chosen(made):
            found.append(_Term("chosen", sign, made, factor))
            continue
        todo.extend(parts_of(made, sign, factor))
    return found, seen


def parts_of(made, sign, factor):
    """What a value consists of: (Made, sign, factor)."""
    name, parents = made.name, made.parents()
    numbers = [one for one in made.args if isinstance(one, (int, float)) and not isinstance(one, bool)]
    if name in ("neg", "negative"):
        return [(one, -sign, factor) for one in parents]
    if name in ("sub", "rsub", "isub", "sub_", "subtract"):
        turned = made.turned != (name == "rsub")
        args = made.args[::-1] if turned else made.args
        return [(one, sign if index == 0 else -sign, factor) for index, one in enumerate(args[:2])]
    if name in ("add", "radd"):
        return [(one, sign, factor) for one in parents]
    if name in ("mul", "imul", "mul_", "multiply", "div", "truediv", "true_divide", "itruediv"):
        sign = -sign if any(number < 0 for number in numbers) else sign
        trained = [one for one in parents if one.grad]
        data = [one for one in parents if not one.grad]
        advantage = next((one for one in trained if loss_form.is_difference(one)), None)
        chosen = next((one for one in trained if one.name == "gather" or _is_log_probability(one)), None)
        if len(trained) == 2 and advantage is not None and chosen is not None and factor is None:
            return [(chosen, sign, (advantage, made))]
        if len(trained) > 1:  # by what is positive
            positive = name.endswith(("div", "div_", "divide")) and _is_positive(trained[1])
            return [(trained[0], sign if positive else 0, factor)]
        weighs = name.endswith("mul") or name in ("mul_", "multiply")
        if data and weighs and factor is None and data[0].shape not in ((), (1,)) and not data[0].integer and \
                data[0].source().name not in ("ne", "eq", "gt", "lt", "ge", "le", "bool", "logical_not", "and", "or"):
            factor = (data[0], made)
        return [(one, sign, factor) for one in trained]
    if name in _PASSED:
        return [(one, sign, factor) for one in (parents if name in _SEVERAL else parents[:1])]
    if name == "exp":
        return [(one, sign, factor) for one in parents[:1]]
    if name in ("pow", "square", "abs", "sqrt", "relu", "log", "maximum", "max"):  # the sign is lost
        return [(one, 0, factor) for one in parents[:2]]
    return []


def _is_error(made):
    first = made.first()
    return first is not None and loss_form.is_even(made) and loss_form.is_difference(first)


def _is_chosen(made):
    """Whether it picks log-probabilities by an index: gather(log_softmax(x), 1, index), log_prob(action)."""
    if made.name not in ("gather", "getitem", "take_along_dim", "index_select"):
        return False
    parents = made.parents()
    if len(parents) < 2 or not any(one.integer and not one.grad for one in parents[1:]):
        return False
    source = parents[0]
    for _ in range(16):
        trained = [one for one in source.parents() if one.grad]
        if source.name not in trace.SAME | {"broadcast_tensors", "expand", "clamp"} or len(trained) != 1:
            break
        source = trained[0]
    if source.name in ("log_softmax", "log"):
        return True
    return source.name == "sub" and any(one.name in ("logsumexp", "log") for one in source.parents())


def _is_log_probability(made):
    """Whether it consists of log-probabilities of actions, of one step or of several."""
    source = made.source(trace.SAME | {"stack", "cat", "sum"})
    return _is_chosen(source) or likelihood.is_normal(source)


def _is_positive(made):
    """Whether an operator's results cannot be negative."""
    made = made.source(_SCALED)
    low = _range_of(made)[0]
    return made.name == "pow" or low is not None and low >= 0


def _numel(tensor):
    return tensor.numel() if isinstance(tensor, torch.Tensor) else None


def _shape(shape):
    return "(%s)" % ", ".join(str(size) for size in shape) if len(shape) != 1 else "(%d)" % shape[0]


def _pairs(first, second):
    """Whether one is (N, 1) and the other (N), which broadcast to (N, N)."""
    if len(first) < len(second):
        first, second = second, first
    return len(first) == 2 and len(second) == 1 and first[1] == 1 and first[0] == second[0] > 1


def _range_of(made):
    """The range to which an operator limits its results."""
    if made.name in ("clamp", "clip", "clamp_", "clip_", "hardtanh"):
        low, high = made.given(1, "min"), made.given(2, "max")
        if made.name == "hardtanh":
            low, high = made.given(1, "min_val", -1.0), made.given(2, "max_val", 1.0)
        return tuple(float(one) if isinstance(one, (int, float)) else None for one in (low, high))
    return _RANGES.get(made.name, (None, None))


def _range_text(low, high):
    if low is not None and high is not None:
        return "between %g and %g" % (low, high)
    return "never below %g" % low if low is not None else "never above %g" % high


def _is_sequence(target):
    """Whether labels were a table of sequences, and at most flattened since."""
    made = target
    for _ in range(8):
        if not isinstance(made, trace.Made):
            return False
        if len(made.shape) == 2 and min(made.shape) > 1:
            return True
        if len(made.shape) == 3 and made.shape[2] == 1 and min(made.shape[:2]) > 1:
            return True
        if made.name not in ("view", "reshape", "flatten", "contiguous", "long", "to", "ravel", "unsqueeze", "clamp"):
            return False
        made = made.first()
    return False


def _tails(table):
    """(the length of the run of one value at the end of each row, that value)."""
    last = table[:, -1]
    value = int(last.mode().values)
    same = (table == value).flip(1).long()
    return same.cumprod(1).sum(1), value
