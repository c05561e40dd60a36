# SPDX-License-Identifier: MIT
"""Labels against inputs: whether similar examples, or a linear model, say anything about them."""
import math

import torch
from torch.nn import functional

from . import piece

_EXAMPLES = 512   # that are kept
_FEATURES = 1024  # of an example that are compared
_LEAST = 32       # examples that are compared with columns
_MANY = 128       # of which a relation would be seen
_DISTANCES = {"smooth_l1_loss": functional.smooth_l1_loss, "huber_loss": functional.huber_loss,
              "l1_loss": functional.l1_loss}


class Relation:
    """Some examples of the training with their labels."""

    def __init__(self):
        self._examples, self._labels = [], []
        self._tabular = False  # each column of the input is one thing; not in sequences and images
        self._window = None    # of sequences in full: the shape of an example
        self._classed = self._own = False
        self._loss = ""

    def add(self, values, labels, loss, classed, own):
        """A batch. loss: the operator that compares; classed: labels are classes; own: they were computed from the
        inputs themselves."""
        self._loss, self._classed, self._own = loss, classed, own
        if sum(len(one) for one in self._labels) < _EXAMPLES:
            table = values.reshape(values.shape[0], -1)
            stride = max(1, table.shape[1] // _FEATURES)
            self._examples.append(table[:, ::stride][:, :_FEATURES].clone())
            self._labels.append(labels.double())
            self._tabular = values.dim() == 2
            self._window = tuple(values.shape[1:]) if values.dim() == 3 and table.shape[1] <= _FEATURES else None

    def pieces(self, input_at, label_at):
        """What the columns and the examples say about the labels."""
        if sum(len(one) for one in self._labels) < _LEAST or len({one.shape[1] for one in self._examples}) > 1:
            return
        table, labels = torch.cat(self._examples).double(), torch.cat(self._labels)
        if not bool(torch.isfinite(table).all() and torch.isfinite(labels).all()) or float(labels.std()) == 0:
            return
        spread = table.std(0)
        used = spread > 0
        if int(used.sum()) >= 3:
            yield self._leak(table, labels, used, input_at, label_at)
        if self._classed and float(labels.min()) < 0 or not bool(used.any()):
            return
        part = (table[:, used] - table[:, used].mean(0)) / spread[used]
        once = _first_of_each(table)  # an example that comes again is its own neighbour
        if len(once) >= _MANY:
            yield self._related(part, labels, once, label_at)

    def _leak(self, table, labels, used, input_at, label_at):
        part = (table[:, used] - table[:, used].mean(0)) / table[:, used].std(0)
        wanted = (labels - labels.mean()) / labels.std()
        alike = (part * wanted[:, None]).mean(0).abs() * len(labels) / (len(labels) - 1)
        best = int(alike.argmax())
        column = int(used.nonzero()[best])
        first, second = self._window or (0, 0)
        ends = bool(first) and min(first, second) < max(first, second) and (
            column // second == first - 1 if first > second else column % second == second - 1)
        return piece("leaked", input_at, alike=float(alike[best]), column=column, columns=table.shape[1],
                     matching=int((alike > 0.9999).sum()), equal=bool((table[:, column] == labels).all()),
                     examples=len(labels), own=self._own, classed=bool(self._classed), tabular=self._tabular,
                     window=max(first, second) if ends else None,
                     also=[label_at] if label_at else None)

    def _related(self, part, labels, once, label_at):
        table, wanted = part[once], labels[once]
        count = len(once)
        near = torch.cdist(table, table).fill_diagonal_(math.inf).argmin(1)
        numbers = {"examples": count, "classed": bool(self._classed)}
        if self._classed:
            shares = torch.bincount(wanted.long()).double() / count
            numbers.update(nearest=float((wanted[near] == wanted).double().mean()), chance=float((shares ** 2).sum()),
                           majority=float(shares.max()), entropy=entropy(shares))
        else:
            numbers.update(nearest=_correlation(wanted, wanted[near]), chance=0.0, entropy=self._constant(labels))
        numbers["linear"] = _linear(table, wanted, self._classed)
        for name, move in (("next", -1), ("previous", 1)):
            moved = torch.cat([one.roll(move) for one in self._labels])[once]
            numbers[name] = _linear(table, moved, self._classed)
        return piece("label-relation", label_at, **numbers)

    def _constant(self, labels):
        """The loss of the best constant."""
        distance = _DISTANCES.get(self._loss)
        best = labels.mean() if distance is None else labels.median()
        return float((distance or functional.mse_loss)(best.expand_as(labels), labels))


def entropy(shares):
    """Of a distribution, in nats."""
    used = shares[shares > 0]
    return float(-(used * used.log()).sum())


def _first_of_each(table):
    """The first place of each row that differs from all before it."""
    _, group = torch.unique(table, dim=0, return_inverse=True)
    places = torch.arange(len(table) - 1, -1, -1)
    first = torch.empty(int(group.max()) + 1, dtype=torch.long)
    first[group[places]] = places
    return first.sort().values


def _correlation(one, other):
    one, other = one - one.mean(), other - other.mean()
    size = float(one.norm() * other.norm())
    return float((one * other).sum()) / size if size else 0.0


def _linear(table, labels, classed):
    """How often a ridge regression on one half predicts the labels of the other one, or the correlation."""
    half = len(labels) // 2
    wanted = functional.one_hot(labels.long(), int(labels.max()) + 1).double() if classed else \
        ((labels - labels.mean()) / labels.std())[:, None]
    full = torch.cat([table, torch.ones(len(table), 1, dtype=torch.float64)], 1)
    first = full[:half]
    gram = first.t() @ first + 0.1 * half * torch.eye(full.shape[1], dtype=torch.float64)
    guess = full[half:] @ torch.linalg.solve(gram, first.t() @ wanted[:half])
    if classed:
        return float((guess.argmax(1) == labels[half:]).double().mean())
    return _correlation(guess[:, 0], labels[half:])
