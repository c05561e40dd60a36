# SPDX-License-Identifier: MIT
"""Evaluations between training steps: whether their inputs are those of the training, and whether what was learned
holds for them."""
import torch

from . import Call, Watcher, here, piece, trace
from .data import FIRST
from .units import DROPOUTS

_LOSSES = frozenset(("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
                     "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
_ALL = 8          # first evaluations that are observed; later ones if their number is a power of two
_CALLS = 4        # batches of an evaluation
_ROWS = 8         # that make a batch
_MOST = 1 << 20   # values of a batch that are examined
_COLUMNS = 4096
_CLASSES = 1024  # of which it is counted what is taken for what
_LEAST = 4        # batches of the training
_PART = 64        # values by which a batch is recognised


class _Columns:
    """Sums over the columns (features or channels) of batches."""

    def __init__(self):
        self.count = self.batches = self.rows = self.below = self.values = 0
        self.sum = self.squares = self.low = None

    def add(self, table, rows):
        """table: (values, columns)."""
        table = table.to(torch.float64)
        if self.sum is None:
            self.sum, self.squares = table.sum(0), table.square().sum(0)
            self.low = float(table.min())
        elif len(self.sum) != table.shape[1]:
            return
        else:
            self.sum, self.squares = self.sum + table.sum(0), self.squares + table.square().sum(0)
            self.low = min(self.low, float(table.min()))
        self.batches, self.rows = self.batches + 1, self.rows + rows
        self.count, self.values = self.count + len(table), self.values + table.numel()
        self.below += int((table < 0).sum())

    def mean(self):
        """Of each column."""
        return self.sum / self.count

    def deviation(self):
        """Of each column."""
        return (self.squares / self.count - self.mean().square()).clamp(min=0).sqrt()

    def total(self):
        """(mean, deviation) of all values."""
        mean = float(self.sum.sum()) / self.values
        return mean, max(0.0, float(self.squares.sum()) / self.values - mean * mean) ** 0.5


class _Seen:
    """Sees the operators of an evaluation, in steps whose operators are not observed."""

    def __init__(self, watcher):
        self.watcher = watcher

    def operator_ran(self, operator, function, args, kwargs, result):
        """An operator has run."""
        observation = self.watcher.observation
        if self.watcher.agent.is_training_thread():
            call = Call(self.watcher.agent, operator, function, args, kwargs, result, torch.is_grad_enabled())
            observation.tell_one(self.watcher, "evaluated", call)

    left = operator_ran


class HeldOut(Watcher):
    """Compares evaluations with the training."""

    def __init__(self, observation):
        super().__init__(observation)
        self._seen = _Seen(self)
        self._sees = False       # an evaluation runs, and is observed
        self._trained = set()    # ids of modules that were called to be trained
        self._layer = False      # the first layer of this pass has been seen
        self._columns = {}       # id of a weight -> (_Columns in training, in evaluations)
        self._counted = self._calls = self._in = 0
        self._at, self._trained_at = {}, {}
        self._losses = []        # of evaluations: (sum of losses, examples)
        self._labels = None      # numbers of labels by class
        self._right = []         # (right ones, of)
        self._dropped = {}       # (file, line) -> dropout that is active in evaluations
        self._guess = None       # the last result of argmax: its id
        self._confusion = -1, torch.zeros(0, 0)  # (step, guesses by label)

    def begins(self, step):
        """The first layer has not run."""
        self._layer = False

    _watches = False         # operators are intercepted for this

    # ---- which passes are evaluations ----

    def called(self, module, grad):
        """A pass begins: of the training or of an evaluation."""
        steps = self.agent.steps
        if grad and module.training:
            self._trained.add(id(module))
            self._stop()
            self._trained_at = self._trained_at or here()
        elif id(module) not in self._trained or grad and module.training or steps.step < 2 or steps.running or \
                not grad and (steps.forward and module.training or self.agent.events.has_passes()):
            self._stop()
        else:
            self._evaluates(steps.step)

    def _evaluates(self, step):
        if step != self._in:
            self._in, self._calls = step, 0
            self._counted += 1
            self._losses.append([0.0, 0])
            self._right.append([0, 0])
        self._calls += 1
        self._layer = False
        self._at = self._at or here()
        number = self._counted
        self._sees = (number <= _ALL or number & (number - 1) == 0) and self._calls <= _CALLS
        if self._sees and self.agent.observer is None:
            self.agent.observer = self._seen
            if not self.agent.watching:
                self.agent.set_watching(True)
                self._watches = True
        elif not self._sees:
            self._stop()

    def _stop(self):
        self._sees = False
        if self.agent.observer is self._seen:
            self.agent.observer = self.observation if self.observation.observes else None
        if self._watches:
            self._watches = False
            self.agent.set_watching(False)

    def loss(self, tensor):
        """A backward pass: of the training."""
        self._stop()

    def closes(self):
        """Observation ends."""
        if self.agent.observer is self._seen:
            self.agent.observer = None

    # ---- operators ----

    def operator(self, call):
        """The first layer of a training step, or an operator of an evaluation."""
        if self._sees:
            self.evaluated(call)
        elif call.is_forward() and not self._layer and call.name in FIRST and call.module():
            self._enters(call, 0)

    left = operator

    def evaluated(self, call):
        """An operator of an evaluation has run."""
        name = call.name
        if not self._layer and name in FIRST and call.module():
            self._enters(call, 1)
        elif name in DROPOUTS or name == "scaled_dot_product_attention":
            self._drops(call)
        elif name in _LOSSES:
            self._compares(call)
        elif name in ("argmax", "max") and call.given(1, "dim") is not None:
            guess = call.result if name == "argmax" else call.result[1]
            self._guess = guess.detach() if guess.numel() <= _MOST else None
        elif name == "eq" and self._guess is not None and len(call.args) > 1 and call.result.dim() == 1:
            self._counts_right(call)

    def _enters(self, call, part):
        self._layer = True
        data, weight = call.given(0, "input"), call.given(1, "weight")
        weight = call.args[2] if call.name in ("lstm", "gru", "rnn_tanh", "rnn_relu") and len(call.args) > 2 else weight
        weight = weight[0] if isinstance(weight, (list, tuple)) and weight else weight
        if not isinstance(data, torch.Tensor) or not isinstance(weight, torch.Tensor) or data.dim() < 2 or \
                not data.is_floating_point() or data.requires_grad or data.shape[0] < _ROWS or data.numel() > _MOST:
            return
        pair = self._columns.get(id(weight))
        if pair is None:
            if len(self._columns) >= 16 or part:
                return
            pair = self._columns[id(weight)] = (_Columns(), _Columns(), call.name)
        values = trace.copied(data, _MOST)
        if values is None or not bool(torch.isfinite(values).all()):
            return
        axis = 1 if call.name.startswith("conv") else -1
        table = values.movedim(axis, -1).reshape(-1, values.shape[axis])
        if table.shape[1] <= _COLUMNS:
            pair[part].add(table, data.shape[0])

    def _drops(self, call):
        """Dropout that does not follow the mode of the module that calls it."""
        path, given = call.module().replace("eval/", "", 1), call.given(0, "input", call.kwargs.get("query"))
        rate, active = call.given(1, "p", 0.5), call.given(2, "training", True)
        if call.name not in DROPOUTS:
            rate, active = call.given(4, "dropout_p", 0.0), True
        if not path or not active or not isinstance(rate, (int, float)) or not 0 < rate < 1 \
                or not isinstance(given, torch.Tensor):
            return
        module, loose = self._module_at(path)
        if module is None or module.training or isinstance(module, torch.nn.modules.dropout._DropoutNd):
            return
        at = call.where()
        known = self._dropped.setdefault((at.get("file"), at.get("line")), {
            "where": at, "rate": float(rate), "operator": call.name, "loose": loose, "calls": 0, "again": 0,
            "before": (0, None)})
        part, step = given.detach().reshape(-1)[:_PART].clone(), self.agent.steps.step
        known["calls"] += 1  # the same examples again in one evaluation: the spread of the results is wanted
        known["again"] += known["before"][0] == step and torch.equal(known["before"][1], part)
        known["before"] = step, part

    def _module_at(self, path):
        """(the module with that path, False); if it is a part of no model, (the one that calls it, True)."""
        known = dict(self.agent.modules.all())
        if path in known:
            return known[path], False
        return known.get(path.rpartition("/")[0]), True

    def _compares(self, call):
        scores, target, loss = call.given(0, "input"), call.given(1, "target"), call.result
        if not isinstance(target, torch.Tensor) or not isinstance(scores, torch.Tensor) or loss.numel() != 1 or \
                target.dim() == 0 or not self._losses or call.kwargs.get("reduction", "mean") != "mean":
            return
        rows = target.shape[0]
        self._losses[-1][0] += float(loss) * rows
        self._losses[-1][1] += rows
        if not target.is_floating_point() and target.dim() == 1 and scores.dim() == 2:
            counts = torch.bincount(target.detach().clamp(min=0).cpu(), minlength=scores.shape[1])
            self._labels = counts if self._labels is None or len(counts) != len(self._labels) \
                else self._labels + counts
            if scores.shape[1] <= _CLASSES:
                self._confuses(scores, target)

    def _confuses(self, scores, target):
        """Which classes are guessed, by label, in the last evaluation."""
        step, classes, labels = self.agent.steps.step, scores.shape[1], target.detach().cpu()
        if step != self._confusion[0] or self._confusion[1].shape[0] != classes:
            self._confusion = step, torch.zeros(classes, classes)
        inside = (labels >= 0) & (labels < classes)
        pairs = labels[inside] * classes + scores.detach().argmax(1).cpu()[inside]
        self._confusion[1].view(-1).add_(torch.bincount(pairs, minlength=classes * classes))

    def _renumbered(self):
        """How often a guess is the one that is usual for its label, and how often it is the label."""
        table = self._confusion[1]
        total, used = float(table.sum()), table.sum(1) > 0
        usual = table.argmax(1)[used]
        return piece("renumbered", self._at, examples=int(total), usual=float(table.max(1).values.sum()) / total,
                     right=float(table.diag().sum()) / total, classes=int(used.sum()), guesses=len(set(usual.tolist())),
                     moved=int((usual != used.nonzero()[:, 0]).sum()))

    def _counts_right(self, call):
        for one in call.args[:2]:
            if isinstance(one, torch.Tensor) and one.shape == self._guess.shape and self._right and \
                    one.data_ptr() == self._guess.data_ptr():
                self._right[-1][0] += int(call.result.sum())
                self._right[-1][1] += call.result.numel()
                self._guess = None
                return

    # ---- evidence ----

    def evidence(self):
        """How inputs differ, the losses of evaluations, and dropout in them."""
        found = [piece("evaluation-dropout", one["where"], rate=one["rate"], operator=one["operator"],
                       loose=one["loose"] or None, calls=one["calls"], again=one["again"],
                       also=[self._at] if self._at else None)
                 for one in self._dropped.values()]
        means = [total / rows for total, rows in self._losses if rows]
        if means:
            rights = [right / of for right, of in self._right if of]
            shares = (self._labels.double() / self._labels.sum()) if self._labels is not None else None
            used = shares[shares > 0] if shares is not None else None
            found.append(piece("held-out", self._at, evaluations=len(means), best=min(means), last=means[-1],
                               right=max(rights) if rights else None,
                               examples=max(rows for _, rows in self._losses),
                               entropy=float(-(used * used.log()).sum()) if used is not None else None,
                               majority=float(shares.max()) if shares is not None else None))
        if self._confusion[0] >= 0 and float(self._confusion[1].sum()) > 0:
            found.append(self._renumbered())
        for training, evaluation, operator in self._columns.values():
            if training.batches >= _LEAST and evaluation.batches:
                found.append(self._differs(training, evaluation, operator))
        return found

    def _differs(self, training, evaluation, operator):
        spread, other = training.deviation(), evaluation.deviation()
        used = (spread > 0) & (other > 0)
        ratio = other[used] / spread[used]
        shift = (evaluation.mean() - training.mean()).abs()[used] / torch.maximum(spread, other)[used]
        mean, deviation = training.total()
        held_mean, held_deviation = evaluation.total()
        return piece("held-out-input", self._at, operator=operator, rows=evaluation.rows, columns=int(used.sum()),
                     ratio=float(ratio.median()) if len(ratio) else None,
                     shift=float(shift.median()) if len(shift) else None, mean=mean, deviation=deviation,
                     held_mean=held_mean, held_deviation=held_deviation, evaluations=self._counted,
                     negative=training.below / training.values, held_negative=evaluation.below / evaluation.values,
                     low=training.low, held_low=evaluation.low,
                     also=[self._trained_at] if self._trained_at else None)
