# SPDX-License-Identifier: MIT
"""What losses are given, by its values: targets, weights of classes, and how far scores can differ."""
import torch

from . import Watcher, piece, trace

_SIGNED = {"cosine_embedding_loss": 2, "margin_ranking_loss": 2, "hinge_embedding_loss": 1, "soft_margin_loss": 1}
_CROSS = frozenset(("cross_entropy", "nll_loss"))
_DISTANCES = frozenset(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
_TURNS = frozenset(("T", "t", "mT", "transpose", "permute", "swapaxes", "adjoint"))
_SUMS = frozenset(("sum", "mean", "add", "sub", "mul", "radd", "rmul")) | trace.SAME
_MOST = 1 << 16  # values that are compared
_OPERATORS = 512  # between an estimate and its parameters


class Targets(Watcher):
    """Compares targets with what a loss takes, with the outputs, and with the weights of classes."""

    operators = frozenset(_SIGNED) | _CROSS | _DISTANCES | {
        "binary_cross_entropy_with_logits", "mul", "add", "iadd", "add_", "clamp", "relu", "clamp_min", "maximum"}

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._found = {}   # (kind, file, line) -> piece
        self._labels = {}  # Made of a product with data, in this step -> whether that is 0 and 1
        self._penalties = {}  # Made of a sum in this step -> (penalty, loss of the data)
        self._counts = {}  # (file, line) -> (where, counts of labels by class, weights)

    def begins(self, step):
        """Forgets the previous step."""
        self.trace.begins(step)
        self._labels, self._penalties = {}, {}

    def _add(self, kind, made, holds, **numbers):
        where = made.where()
        key = kind, where.get("file"), where.get("line")
        found = self._found.setdefault(key, piece(kind, where, steps=0, held=0))
        found["steps"] += 1
        found["held"] += bool(holds)
        found.update((key, value) for key, value in numbers.items() if value is not None)

    def operator(self, call):
        """Looks at losses and their parts."""
        made = self.trace.see(call)
        if made is None or not call.is_forward() or not made.grad:
            return
        name = call.name
        if name in _SIGNED:
            self._signs(call, made, call.given(_SIGNED[name], "target"))
        elif name in _CROSS:
            self._classes(call, made)
        elif name == "binary_cross_entropy_with_logits":
            self._positives(call, made)
        elif name in _DISTANCES:
            self._distance(call, made)
        elif name == "mul":
            self._multiplies(call, made)
        elif name in ("add", "iadd", "add_") and call.result.numel() == 1:
            self._adds(call, made)
        elif name in ("clamp", "relu", "clamp_min", "maximum"):
            self._hinge(call, made)

    def _signs(self, call, made, target):
        wanted = trace.read(target) if isinstance(target, torch.Tensor) else None
        if wanted is not None:
            self._add("signed-targets", made, bool((wanted.abs() != 1).any()), loss=call.name, low=float(wanted.min()),
                      high=float(wanted.max()), share=float((wanted.abs() != 1).double().mean()))

    def _classes(self, call, made):
        scores, target, weight = call.given(0, "input"), call.given(1, "target"), call.given(2, "weight")
        if not isinstance(scores, torch.Tensor) or not isinstance(target, torch.Tensor) or target.is_floating_point() \
                or scores.dim() != 2 or target.dim() != 1 or target.numel() > _MOST:
            return
        labels, given = target.detach().to("cpu"), made.given(0, "input")
        ordered = torch.equal(labels, torch.arange(len(labels)))
        if isinstance(given, trace.Made):
            turned = given.name in _TURNS and scores.shape[0] == scores.shape[1] and not ordered
            self._add("turned-scores", made, turned, loss=call.name, count=scores.shape[0], node=given.node_name())
            self._narrow(call, made, given, scores)
        if isinstance(weight, torch.Tensor) and weight.numel() == scores.shape[1]:
            at = made.where()
            known = self._counts.setdefault((at.get("file"), at.get("line")), [
                at, torch.zeros(scores.shape[1]), weight.detach().to("cpu", torch.float64)])
            inside = labels[(labels >= 0) & (labels < scores.shape[1])]
            known[1] = known[1] + torch.bincount(inside, minlength=scores.shape[1])

    def _narrow(self, call, made, given, scores):
        """How far the scores of a row differ at most, where they are multiplied by a number."""
        source = given.source(trace.SAME)
        factor = next((one for one in source.args if isinstance(one, float)), None) if source.name in ("mul", "div") \
            else None
        rows = trace.copied(scores)
        if not factor or rows is None or scores.shape[1] < 3:
            return
        factor = factor if source.name == "mul" else 1 / factor
        self._add("narrow-scores", source, factor < 1, loss=call.name, factor=factor, classes=scores.shape[1],
                  range=float((rows.amax(1) - rows.amin(1)).median()))

    def _positives(self, call, made):
        weight, target = call.given(6, "pos_weight"), call.given(1, "target")
        wanted = trace.read(target) if isinstance(target, torch.Tensor) else None
        if wanted is None or not isinstance(weight, torch.Tensor) or weight.numel() != 1:
            return
        at = made.where()
        known = self._found.setdefault(("pos-weight", at.get("file"), at.get("line")),
                                       piece("pos-weight", at, steps=0, positive=0.0, count=0))
        known["steps"] += 1
        known["positive"] += float((wanted > 0.5).sum())
        known["count"] += wanted.numel()
        known["weight"] = float(weight)

    def _distance(self, call, made):
        output, target = call.given(0, "input"), call.given(1, "target")
        given, wanted = made.given(0, "input"), made.given(1, "target")
        if not all(isinstance(one, torch.Tensor) for one in (output, target)) or output.shape != target.shape or \
                output.numel() < 2 or not all(isinstance(one, trace.Made) for one in (given, wanted)):
            return
        self._add("self-compared", made, torch.equal(output, target), loss=call.name, shape=str(tuple(output.shape)))
        if given.grad and wanted.grad:
            self._bootstraps(made, given, wanted)
        if given.grad and not wanted.grad:
            first, second = trace.read(output, _MOST), trace.read(target, _MOST)
            if first is not None and second is not None:
                self._add("target-scale", made, True, loss=call.name, output=float(first.square().mean().sqrt()),
                          target=float(second.square().mean().sqrt()), mean=float(second.mean()),
                          deviation=float(second.std()) if len(second) > 1 else None)

    def _bootstraps(self, made, given, wanted):
        """One side is data + factor * an estimate of the same network that the other side is trained for: the target of
        temporal differences."""
        for target, other in ((wanted, given), (given, wanted)):
            target, factor, estimate = target.source(), 1.0, None
            parents = target.parents() if target.name in ("add", "radd") else ()
            scaled = [one for one in parents if one.grad]
            if len(parents) != 2 or len(scaled) != 1 or any(one.integer for one in parents):
                continue
            estimate = scaled[0].source()
            while estimate.name == "mul":
                numbers = [one for one in estimate.args if isinstance(one, float)]
                trained = [one for one in estimate.parents() if one.grad]
                if len(trained) != 1:
                    break
                factor *= numbers[0] if numbers else 1.0
                estimate = trained[0].source()
            same = _parameters(estimate) & _parameters(other)
            if same and estimate.name != "mul":
                self._add("bootstrap", target, True, factor=factor, estimate=estimate.node_name() or estimate.name,
                          also=[made.where()])

    def _hinge(self, call, made):
        """max(0, 1 - y f(x)): y must be 1 or -1."""
        inner = next((one for one in made.parents() if one.name in ("sub", "rsub")), None)
        product = next((one for one in inner.parents() if one.name == "mul"), None) if inner is not None else None
        pair = product.parents() if product is not None else ()
        if len(pair) != 2 or pair[0].grad == pair[1].grad or not inner.turned and inner.name != "rsub":
            return
        if product in self._labels:
            self._add("hinge-labels", made, self._labels[product])

    def _multiplies(self, call, made):
        """Data that outputs are multiplied by: whether it consists of 0 and 1."""
        pair = [one for one in call.args[:2] if isinstance(one, torch.Tensor)]
        if len(pair) == 2 and pair[0].requires_grad != pair[1].requires_grad and pair[0].shape == pair[1].shape \
                and 1 < pair[0].numel() <= 4096 and len(self._labels) < 16:
            values = trace.read(pair[0] if pair[1].requires_grad else pair[1])
            if values is not None:
                self._labels[made] = bool(((values == 0) | (values == 1)).all()) and 0 < float(values.mean()) < 1

    def _adds(self, call, made):
        """A loss of the data, and a penalty that depends on parameters alone."""
        terms = made.parents()
        if len(terms) != 2 or not all(one.grad for one in terms):
            return
        alone = [_is_of_parameters(one) for one in terms]
        if alone.count(True) == 1 and None not in alone:
            numbers = [float(one.detach()) for one in call.args[:2]]
            self._penalties[made] = numbers[alone.index(True)], numbers[alone.index(False)]

    def loss(self, tensor):
        """A pass begins: whether an overlap is to be made small, or a penalty outweighs the data."""
        if not self.observation.observes:
            return
        made, sign = self.trace.of(tensor), 1
        penalty, fit = self._penalties.get(made.source(), (0.0, 0.0))
        if penalty > 0 and fit > 0:
            known = next((one for (kind, _, _), one in self._found.items() if kind == "penalty"), {})
            self._add("penalty", made.source(), penalty > 4 * fit, penalty=penalty, fit=fit,
                      penalty_first=known.get("penalty_first", penalty), fit_first=known.get("fit_first", fit))
        for _ in range(8):
            if made.name == "neg" or made.name == "rsub" or made.name == "sub" and made.turned:
                sign = -sign
            elif made.name not in trace.SAME | {"mean", "sum"}:
                break
            made = made.first() if made.first() is not None else made
        if made.name in ("div", "truediv", "true_divide") and is_overlap(made):
            self._add("overlap", made, sign > 0)

    def evidence(self):
        """What was measured; weights of classes against how frequent these are."""
        found = list(self._found.values())
        for at, counts, weights in self._counts.values():
            used = (counts > 0) & (weights > 0)
            if used.sum() < 2:
                continue
            often, weight = counts[used].double().log(), weights[used].log()
            spread = often - often.mean()
            if float(spread.square().sum()) > 0:
                most, least = int((counts * used).argmax()), int(torch.where(used, counts, torch.inf).argmin())
                slope = float((spread * weight).sum() / spread.square().sum())
                found.append(piece("class-weights", at, slope=slope, most=most, most_weight=float(weights[most]),
                                   most_count=int(counts[most]), least=least, least_weight=float(weights[least]),
                                   least_count=int(counts[least])))
        return found


def _is_of_parameters(made):
    """Whether a value depends on no data; None: unknown."""
    todo, seen = [made], 0
    while todo:
        one = todo.pop()
        seen += 1
        if seen > 512:
            return None
        parents = one.parents()
        if not parents and one.name == "":
            return False
        todo += [parent for parent in parents if parent.name != "parameter"]
    return True


def is_overlap(made):
    """Whether a quotient is that of Dice or Jaccard: a sum of products of outputs and data, over sums of both."""
    parents = made.parents()
    if len(parents) != 2 or not all(one.grad for one in parents):
        return False
    above, below = parts_of_sum(parents[0]), parts_of_sum(parents[1])
    products = [one for one in above if one.name == "mul" and len(one.parents()) == 2
                and one.parents()[0].grad != one.parents()[1].grad and one.parents()[0].shape == one.parents()[1].shape
                and len(one.shape) > 0]
    sums = [one for one in below if one.name in ("sum", "mean")]
    return len(products) == 1 and (any(one.grad for one in sums) and any(not one.grad for one in sums) or
                                   all(one in below for one in products[0].parents()))


def parts_of_sum(made):
    """All that sums, multiples and forms of it are made of, itself included."""
    found, todo = [], [made]
    while todo and len(found) < 32:
        one = todo.pop()
        found.append(one)
        if one.name in _SUMS:
            todo += one.parents()
    return found


def _parameters(made):
    """The parameters that a value was computed from."""
    return {one for one in trace.ancestors(made, _OPERATORS) if one.name == "parameter"}
