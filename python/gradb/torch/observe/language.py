# SPDX-License-Identifier: MIT
"""Tokens and labels, routers of experts, layers that are and stay 0, embeddings that should be tied."""
import weakref

import torch

from .. import stack
from . import Watcher, node_of, piece
from .collapse import shares
from .units import is_plain
from .ways import Ways

_MOST_TOKENS = 1 << 20
_MOST_EXPERTS = 256
_MOST_NODES = 256
_SHIFTS = (0, 1, 2, -1)
_CHOICES = frozenset(("argmax", "topk", "max"))
_JOIN = frozenset(("mul", "mul_", "matmul", "einsum", "bmm", "index_add", "index_add_", "scatter_add", "baddbmm"))
_SELECTS = frozenset(("linear", "matmul", "bmm", "index_add", "index_add_", "index_select", "gather", "one_hot",
                      "scatter", "scatter_", "scatter_add", "mul"))
_MAKERS = frozenset(("linear", "matmul", "bmm", "einsum", "conv1d", "conv2d"))


def line_of_program():
    """{"file", "line"} of the innermost line that belongs to no installed package; {} where there is none."""
    for code, line, _ in stack.frames(2):
        if "site-packages" not in code.co_filename and "dist-packages" not in code.co_filename \
                and not stack.is_torch(code):
            return {"file": code.co_filename, "line": line}
    return {}


def _is_integer(tensor):
    return isinstance(tensor, torch.Tensor) and type(tensor) is torch.Tensor and not tensor.is_floating_point() \
        and not tensor.is_complex() and tensor.dtype != torch.bool and 1 <= tensor.numel() <= _MOST_TOKENS \
        and tensor.layout is torch.strided and tensor.device.type != "meta"


class _Loss:
    """A place where a loss takes labels."""
    __slots__ = ("where", "calls", "masked", "labels", "ignored", "shifts", "compared", "ignore", "per_pass", "classes",
                 "uneven", "split", "least", "most")

    def __init__(self, where):
        self.where = where
        self.calls = self.masked = self.labels = self.ignored = self.compared = 0
        self.shifts = dict.fromkeys(_SHIFTS, 0)
        self.ignore = -100
        self.per_pass = []
        self.classes = 0
        self.uneven = self.split = self.least = self.most = 0


class Tokens(Watcher):
    """Compares the labels of a loss with the tokens that the model reads."""

    def __init__(self, observation):
        super().__init__(observation)
        self._passes = 0     # backward passes of this step
        self._read = []      # of this pass: tokens of embeddings
        self._losses = {}
        self._causal = False
        self._vocabulary = 0

    def begins(self, _step):
        """Forgets the tokens of the previous step."""
        self._read, self._passes = [], 0

    def loss(self, _tensor):
        """The pass is over."""
        self._read = []
        self._passes += 1

    def ends(self, _step):
        """Compares the numbers of labels of its passes."""
        for one in self._losses.values():
            counts, one.per_pass = one.per_pass, []
            if self._passes > 1 and len(counts) == self._passes and min(counts) > 0:
                one.uneven += max(counts) > min(counts)
                one.split += 1
                one.least, one.most = min(one.least or counts[0], *counts), max(one.most, *counts)

    def operator(self, call):
        """Notes tokens, and looks at labels."""
        if not call.is_forward():
            return
        if call.name == "embedding":
            tokens = call.given(0, "input")
            if _is_integer(tokens) and tokens.dim() == 2 and tokens.shape[1] > 3 and len(self._read) < 8:
                self._read.append(tokens.detach())
        elif call.name == "scaled_dot_product_attention":
            self._causal |= bool(call.given(5, "is_causal", False)) or call.given(3, "attn_mask") is not None
        elif call.name in ("masked_fill", "masked_fill_", "tril", "triu", "lstm", "gru", "rnn_tanh"):
            self._causal = True
        elif call.name in ("cross_entropy", "nll_loss"):
            self._labels(call)

    def _labels(self, call):
        scores, labels = call.given(0, "input"), call.given(1, "target")
        if not _is_integer(labels) or not isinstance(scores, torch.Tensor):
            return
        where = dict(call.where(), **line_of_program())
        key = where.get("file"), where.get("line")
        if key not in self._losses and len(self._losses) >= _MOST_NODES:
            return
        known = self._losses.setdefault(key, _Loss(where))
        known.ignore = call.given(4, "ignore_index", -100)
        if not isinstance(known.ignore, int):
            known.ignore = -100
        kept = labels.detach() != known.ignore
        count = int(kept.sum())
        known.calls += 1
        if call.kwargs.get("reduction", "mean") == "mean":
            known.per_pass.append(count)
        known.masked += count == 0
        known.labels += labels.numel()
        known.ignored += labels.numel() - count
        known.classes = scores.shape[1] if scores.dim() > 1 else 0
        self._compare(known, labels.detach(), kept)

    def _compare(self, known, labels, kept):
        compared = False
        for tokens in self._read:
            rows, width = tokens.shape
            if labels.numel() % rows or labels.numel() // rows not in (width, width - 1):
                continue
            own = labels.numel() // rows
            flat, keeps = labels.reshape(rows, own), kept.reshape(rows, own)
            compared = True
            for shift in _SHIFTS:
                first, last = max(0, -shift), min(own, width - shift)
                read = tokens[:, first + shift:last + shift]
                used = keeps[:, first:last]
                total = int(used.sum())
                if total >= 8 and _varies(read) \
                        and int(((flat[:, first:last] == read) & used).sum()) >= 0.98 * total:
                    known.shifts[shift] += 1
        known.compared += compared

    def evidence(self):
        """One piece for each loss."""
        straight = sum(one.shifts[1] for one in self._losses.values())
        return [piece("labels", one.where, calls=one.calls, masked=one.masked, ignore=one.ignore,
                      ignored=one.ignored / max(1, one.labels), compared=one.compared, same=one.shifts[0],
                      next=one.shifts[1], after_next=one.shifts[2], previous=one.shifts[-1], straight=straight,
                      split=one.split, uneven=one.uneven, least=one.least, most=one.most,
                      causal=self._causal) for one in self._losses.values()]


def _varies(tokens):
    """Whether neighbours differ: in a constant row each shift agrees."""
    return tokens.shape[1] > 1 and float((tokens[:, 1:] != tokens[:, :-1]).float().mean()) > 0.3


class Routers(Watcher):
    """Counts what is chosen of few: experts."""

    def __init__(self, observation):
        super().__init__(observation)
        self._chosen = {}
        self._step = 0

    def begins(self, step):
        """Remembers its number."""
        self._step = step

    def operator(self, call):
        """A choice along the last axis of scores that carry a gradient."""
        if call.name not in _CHOICES or not call.is_forward():
            return
        scores = call.given(0, "input")
        if not is_plain(scores) or not scores.requires_grad or scores.dim() < 2 \
                or not 2 <= scores.shape[-1] <= _MOST_EXPERTS:
            return
        axis = call.given(2 if call.name == "topk" else 1, "dim", -1 if call.name == "topk" else None)
        if axis not in (-1, scores.dim() - 1):
            return
        chosen = call.result if call.name == "argmax" else getattr(call.result, "indices", None)
        origin = self.agent.graph.producer(scores)
        if not _is_integer(chosen) or origin is None or origin[2] is None:
            return
        experts, rows = scores.shape[-1], scores.numel() // scores.shape[-1]
        if rows < 4 * experts:
            return
        counts = torch.bincount(chosen.detach().reshape(-1), minlength=experts)
        key = origin[2].name
        if key not in self._chosen and len(self._chosen) >= _MOST_NODES:
            return
        known = self._chosen.setdefault(key, {"where": dict(call.where(), node=key), "looks": 0, "full": 0,
                                             "used": None})
        used = counts > 0
        known["looks"] += 1
        most = float(counts.max()) / rows
        known["full"] = known["full"] + 1 if most >= 0.9 else 0
        known["used"] = used if known["used"] is None or known["looks"] == 1 else known["used"] | used
        known["chosen"] = node_of(self.agent, chosen) or key
        known.update(share=most, expert=int(counts.argmax()), experts=experts, rows=rows, step=self._step,
                     first=known.get("first", most))

    def evidence(self):
        """One piece for each router: scores that also weigh what layers make."""
        ways = Ways(self.agent)
        found = []
        for name, known in self._chosen.items():
            chosen = known["chosen"]
            if known["looks"] >= 3 and _weighs(ways, name) and (chosen == name or ways.leads_to(chosen, _SELECTS)):
                unused = known["experts"] - int(known["used"].sum())
                found.append(piece("router", known["where"], share=known["share"], expert=known["expert"],
                                   experts=known["experts"], rows=known["rows"], step=known["step"], full=known["full"],
                                   looks=known["looks"], first=known["first"], unused=unused))
        return found


def _weighs(ways, name):
    """Whether the scores are multiplied with what a layer made that does not read them."""
    below = ways.values_below(name)
    for one in below:
        if ways.operator(one) in _JOIN:
            others = [other for other in ways.inputs(one) if other not in below]
            if any(ways.operator(other) in _MAKERS or any(ways.operator(up) in _MAKERS for up in ways.above(other))
                   for other in others):
                return True
    return False


class Adapters(Watcher):
    """Layers whose weights are all 0 when they first run, and embeddings with a twin."""

    def __init__(self, observation):
        super().__init__(observation)
        self._zero = {}
        self._tables = {}   # id -> (weak reference, name)
        self._heads = {}    # id -> (weak reference, name, where)
        self._twins = None
        self._steps = 0

    def operator(self, call):
        """Notes the weights of layers and embeddings."""
        if not call.is_forward() or call.name not in ("linear", "embedding"):
            return
        weight = call.given(1, "weight")
        if not is_plain(weight, 4) or weight.dim() != 2 or id(weight) in self._heads or len(self._heads) >= _MOST_NODES:
            return
        held = self.agent.graph.holder(weight)
        if held is None:
            return
        if call.name == "embedding":
            self._tables.setdefault(id(weight), (weakref.ref(weight), held.name))
            return
        self._heads[id(weight)] = weakref.ref(weight), held.name, call.where()
        if not bool((weight != 0).any()):
            self._zero[id(weight)] = weakref.ref(weight), held.name, call.where()

    def before_step(self, _optimizer):
        """Before the first update: which layers have the values of an embedding."""
        if self._twins is None:
            self._twins = []
            for table, name in self._tables.values():
                for head, other, where in self._heads.values():
                    first, second = table(), head()
                    if first is not None and second is not None and first is not second \
                            and first.shape == second.shape and first.device == second.device \
                            and torch.equal(first.detach(), second.detach()):
                        self._twins.append((table, name, head, other, where, shares(first, second)))

    def ends(self, _step):
        """Counts."""
        self._steps += 1

    def evidence(self):
        """One piece for layers that are still 0, one for each twin."""
        still = []
        for reference, name, where in self._zero.values():
            weight = reference()
            if weight is not None and self._steps >= 3 and not bool((weight != 0).any()):
                group = self.agent.optimizers.group_of(weight)
                if not weight.requires_grad or group is None:
                    still.append((name, where, not weight.requires_grad))
        found = []
        if still:
            found.append(piece("zero-layer", dict(still[0][1], node=still[0][0]), names=[one[0] for one in still[:3]],
                               more=max(0, len(still) - 3) or None, count=len(still), steps=self._steps,
                               frozen=all(one[2] for one in still)))
        for table, name, head, other, where, memory in self._twins or ():
            first, second = table(), head()
            if first is not None and second is not None:
                found.append(piece("twin", where, table=name, head=other, memory=memory, steps=self._steps,
                                   equal=bool(torch.equal(first.detach(), second.detach()))))
        return found
