# SPDX-License-Identifier: MIT
"""Tokens and labels, routers of experts, codebooks, layers that are and stay 0, embeddings that should be tied."""

import torch

from ..loading import shares
from ..swapping import Ref
from . import Watcher, node_of, parameter_name, piece, trace
from .lines import line_of_program, only_line
from .source_lines import sources_of
from .units import is_plain
from .ways import Ways

_MOST_TOKENS = 1 << 20
_MOST_EXPERTS = 256
_MOST_NODES = 256
_MOST_PROMPTS = 4
_MOST_KEPT = 1 << 14   # labels
_MOST_SCORES = 1 << 23
_LEAST_LOOKS = 6
_SHIFTS = (0, 1, 2, -1)
_CHOICES = frozenset(("argmax", "topk", "max"))
_JOIN = frozenset(("mul", "mul_", "matmul", "einsum", "bmm", "index_add", "index_add_", "scatter_add", "baddbmm"))
_SELECTS = frozenset(("linear", "matmul", "bmm", "index_add", "index_add_", "index_select", "gather", "one_hot",
                      "scatter", "scatter_", "scatter_add", "mul"))
_NEAREST = frozenset(("argmin", "argmax", "min", "max"))
_LOOKED_UP = {"embedding": 0, "index_select": 2, "getitem": 1, "one_hot": 0, "scatter_": 2, "scatter": 2}
_LOOKUPS = frozenset(_LOOKED_UP)
_TABLES = frozenset(("embedding", "index_select", "getitem"))
_LEAST_CODES = 8
_LEAST_VECTORS = 32
_READERS = frozenset(("linear", "embedding", "matmul", "mm"))
_CLOSE = 0.3      # of the norm: independent tables differ by 1.4
_MOST_ROWS = 1024  # of a table whose spectrum is computed
_EDGE = 1.25      # over the largest variance that a random sample has (Marchenko and Pastur)
_MAKERS = frozenset(("linear", "matmul", "bmm", "einsum", "conv1d", "conv2d"))


def _is_integer(tensor):
    return isinstance(tensor, torch.Tensor) and type(tensor) is torch.Tensor and not tensor.is_floating_point() \
        and not tensor.is_complex() and tensor.dtype != torch.bool and 1 <= tensor.numel() <= _MOST_TOKENS \
        and tensor.layout is torch.strided and tensor.device.type != "meta"


class _Loss:
    """A place where a loss takes labels."""
    __slots__ = ("where", "calls", "masked", "labels", "ignored", "shifts", "compared", "ignore", "per_pass", "classes",
                 "uneven", "split", "least", "most", "prompts", "ends", "end_looks", "widths", "end")

    def __init__(self, where):
        self.where = where
        self.calls = self.masked = self.labels = self.ignored = self.compared = 0
        self.shifts = dict.fromkeys(_SHIFTS, 0)
        self.ignore = -100
        self.per_pass = []
        self.classes = 0
        self.uneven = self.split = self.least = self.most = 0
        self.prompts = None       # token that separates a prompt from an answer -> _Prompt
        self.ends = self.end_looks = self.end = 0
        self.widths = set()


class _Prompt:
    """What is before and after a token that each sequence has once."""

    def __init__(self):
        self.looks, self.losses, self.counts = 0, [0.0, 0.0], [0, 0]
        self.seen = [torch.zeros(0, dtype=torch.long)] * 2

    def note(self, loss, labels, before, after):
        """loss, labels, and which of them are before and after."""
        self.looks += 1
        for place, part in enumerate((before, after)):
            self.losses[place], self.counts[place] = float(loss[part].mean()), int(part.sum())
            self.seen[place] = torch.cat([self.seen[place], labels[part].cpu()])[-_MOST_KEPT:]

    def piece(self, where, token):
        """What it was in the last look, and how much a guess by frequency alone would lose."""
        guess = [_entropy(part) for part in self.seen]
        return piece("prompt", where, token=token, looks=self.looks, before=self.losses[0], after=self.losses[1],
                     before_guess=guess[0], after_guess=guess[1], share=self.counts[0] / max(1, sum(self.counts)))


class Tokens(Watcher):
    """Compares the labels of a loss with the tokens that the model reads."""

    operators = frozenset(("embedding", "scaled_dot_product_attention", "masked_fill", "masked_fill_", "tril", "triu",
                           "lstm", "gru", "rnn_tanh", "cross_entropy", "nll_loss"))

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
        self._compare(known, labels.detach(), kept, scores.detach())

    def _compare(self, known, labels, kept, scores):
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
                    if shift == 1:
                        _look_at_ends(known, tokens, flat, keeps)
                        _look_at_prompts(known, tokens, flat, keeps, scores)
        known.compared += compared

    def evidence(self):
        """One piece for each loss."""
        straight = sum(one.shifts[1] for one in self._losses.values())
        return [piece("labels", one.where, calls=one.calls, masked=one.masked, ignore=one.ignore,
                      ignored=one.ignored / max(1, one.labels), compared=one.compared, same=one.shifts[0],
                      next=one.shifts[1], after_next=one.shifts[2], previous=one.shifts[-1], straight=straight,
                      split=one.split, uneven=one.uneven, least=one.least, most=one.most,
                      causal=self._causal, ends=one.ends, end_looks=one.end_looks, widths=len(one.widths),
                      end=one.end, also=[only_line(r"pad_token(_id)?\s*=.*eos")])
                for one in self._losses.values()] + [
                    prompt.piece(one.where, token) for one in self._losses.values()
                    for token, prompt in (one.prompts or {}).items() if prompt.looks >= _LEAST_LOOKS]


def _look_at_ends(known, tokens, labels, keeps):
    """Whether the last token of all sequences, also of the longest, is one that is never a label."""
    width, own = tokens.shape[1], labels.shape[1]
    if own == width and bool(keeps[:, -1].any()):
        return
    last = tokens[:, -1].mode().values
    run = (tokens == last).flip(1).long().cumprod(1).sum(1)
    known.end_looks += 1
    known.widths.add(width)
    known.end = int(last)
    known.ends += int(run.min()) == 1 and int(run.max()) > 1 and not bool(((labels == last) & keeps).any())


def _look_at_prompts(known, tokens, labels, keeps, scores):
    """The losses before and after a token that each sequence has once."""
    rows, own = labels.shape
    once = _once(tokens)
    if known.prompts is None:
        known.prompts = {token: _Prompt() for token in once[:_MOST_PROMPTS]}
    known.prompts = {token: one for token, one in known.prompts.items() if token in once}
    if not known.prompts or scores.numel() > _MOST_SCORES:
        return
    flat = scores.transpose(1, 2).reshape(rows * own, -1) if scores.dim() == 3 else scores
    if flat.dim() != 2 or flat.shape[0] != rows * own:
        return
    target = labels.reshape(-1, 1)
    loss = -flat.float().log_softmax(1).gather(1, target.clamp(0, flat.shape[1] - 1)).reshape(rows, own)
    place = torch.arange(own, device=tokens.device)[None] + 1  # of the token that is predicted
    for token, prompt in known.prompts.items():
        at = (tokens == token).long().argmax(1)[:, None]
        prompt.note(loss, labels, keeps & (place < at), keeps & (place > at))


def _once(tokens):
    """The tokens that each row has once, not at its ends."""
    first = tokens[0, 3:-1].tolist()
    found = []
    for token in dict.fromkeys(first):
        equal = tokens == token
        if bool((equal.sum(1) == 1).all()) and not bool(equal[:, :3].any()) and not bool(equal[:, -1].any()):
            found.append(token)
    return found


def _entropy(labels):
    if labels.numel() == 0:
        return 0.0
    counts = torch.bincount(labels.clamp(min=0)).double()
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * shares.log()).sum())


def _varies(tokens):
    """Whether neighbours differ: in a constant row each shift agrees."""
    return tokens.shape[1] > 1 and float((tokens[:, 1:] != tokens[:, :-1]).float().mean()) > 0.3


class Routers(Watcher):
    """Counts what is chosen of few: experts."""

    operators = _CHOICES

    def __init__(self, observation):
        super().__init__(observation)
        self._chosen = {}
        self._step = 0

    def begins(self, step):
        """Remembers its number."""
        self._step = step

    def operator(self, call):
        """A choice along the last axis of scores that carry a gradient."""
        if not call.is_forward():
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


class Codebooks(Watcher):
    """Counts which rows of a table the nearest neighbours are: the codes of a vector quantizer."""

    operators = _LOOKUPS | _NEAREST

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._found = {}  # node -> piece
        self._step = 0

    def begins(self, step):
        """Remembers its number."""
        self._step = step
        self.trace.begins(step)

    def operator(self, call):
        """A lookup of what argmin() or argmax() has chosen among as many as the table has rows."""
        self.trace.see(call)
        place = _LOOKED_UP.get(call.name)
        index = call.given(place, "index") if place is not None else None
        if place is None or not _is_integer(index) or index.numel() < _LEAST_VECTORS:
            return
        chosen = self.trace.of(index).source()
        scores = chosen.first() if chosen.name in _NEAREST else None
        if scores is None or not scores.shape:
            return
        codes = scores.shape[-1]
        table = call.given(1, "weight") if call.name == "embedding" else call.args[0]
        if codes < _LEAST_CODES or call.name in _TABLES and table.shape[0] != codes \
                or call.name not in _TABLES and chosen.name not in ("argmin", "min"):
            return
        counts = torch.bincount(index.detach().reshape(-1), minlength=codes)
        node = chosen.node_name()
        if not node or node.startswith("eval/") or node not in self._found and len(self._found) >= _MOST_NODES:
            return
        if node not in self._found:
            name = parameter_name(self.agent, table) if call.name in _TABLES else ""
            made = sources_of(self.observation).parameter_set(name) if name else {}
            self._found[node] = piece("codebook", chosen.where(), looks=0, few=0,
                                      also=[one for one in (call.where(), made) if one])
        known = self._found[node]
        used = int((counts > 0).sum())
        known["looks"] += 1
        known["few"] = known["few"] + 1 if used <= 2 or float(counts.max()) >= 0.95 * index.numel() else 0
        known["most_used"] = max(used, known.get("most_used", 0))
        known.update(codes=codes, used=used, code=int(counts.argmax()), share=float(counts.max()) / index.numel(),
                     rows=index.numel(), step=self._step)

    def evidence(self):
        """One piece for each place of choice."""
        return list(self._found.values())


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
    """Layers whose weights are all 0 when they first run, embeddings with a twin, and frozen ones."""

    operators = _READERS

    def __init__(self, observation):
        super().__init__(observation)
        self._zero = {}
        self._tables = {}   # id -> (weak reference, name, where)
        self._heads = {}    # the same for layers
        self._frozen = {}   # the same for embeddings that need no gradient
        self._new = []      # tables and heads that were not compared yet
        self._twins = []
        self._tied = False  # a layer was the embedding itself
        self._steps = 0
        self._latest = []

    def operator(self, call):
        """Notes the weights of layers and embeddings."""
        if not call.is_forward():
            return
        for weight in (call.args[:2] if call.name in ("matmul", "mm") else (call.given(1, "weight"),)):
            if is_plain(weight, 4) and weight.dim() == 2:
                self._read(call, weight)

    def _read(self, call, weight):
        kept = self._tables if call.name == "embedding" else self._heads
        known = kept.get(id(weight))
        if known is not None and known[0]() is weight or len(kept) >= _MOST_NODES:
            return
        held = self.agent.graph.holder(weight)
        if held is None:
            return
        here_it_is = Ref(weight), held.name, call.where()
        kept[id(weight)] = here_it_is
        self._new.append(here_it_is)
        if call.name == "embedding":
            if not weight.requires_grad:
                self._frozen[id(weight)] = here_it_is
            return
        twin = self._tables.get(id(weight))
        self._tied = self._tied or twin is not None and twin[0]() is weight
        if not bool((weight != 0).any()):
            self._zero[id(weight)] = Ref(weight), held.name, dict(call.where(), **line_of_program())

    def before_step(self, _optimizer):
        """Compares embeddings and layers that run for the first time."""
        new, self._new = self._new, []
        for table, name, _ in self._tables.values() if new else ():
            for head, other, where in self._heads.values():
                if any(one[0] is table or one[0] is head for one in new) and len(self._twins) < _MOST_NODES:
                    self._compare(table, name, head, other, where)

    def _compare(self, table, name, head, other, where):
        first, second = table(), head()
        if first is None or second is None or first is second or first.shape != second.shape or \
                first.device != second.device:
            return
        apart = float((first.detach() - second.detach()).norm()) / max(1e-30, float(first.detach().norm()))
        # Made equal while no operator was observed, they have been apart for some steps.
        if apart == 0 or (apart < _CLOSE and self._steps >= 8):
            self._twins.append((table, name, head, other, where, shares(first, second), self._steps, apart))

    def ends(self, _step):
        """Counts, and remembers what is known while the model exists."""
        self._steps += 1
        if self.observation.observes:
            self._latest = self._look()

    def evidence(self):
        """One piece for layers that are still 0, for each twin, and for each frozen embedding."""
        return self._look() or self._latest

    def _look(self):
        found = self._without_effect() + self._frozen_tables()
        for table, name, head, other, where, memory, since, apart in self._twins:
            first, second = table(), head()
            if first is not None and second is not None:
                found.append(piece("twin", where, table=name, head=other, memory=memory, steps=self._steps - since,
                                   equal=bool(torch.equal(first.detach(), second.detach())), was_tied=self._tied,
                                   close=apart > 0, apart=100 * apart, since=since + 1, also=self._optimizers()))
        return found

    def _optimizers(self):
        optimizers = self.agent.optimizers
        return [one for one in (optimizers.made_at(optimizers.by_name(name)) for name in optimizers.names()) if one]

    def _without_effect(self):
        still = []
        for reference, name, where in self._zero.values():
            weight = reference()
            if weight is not None and self._steps >= 3 and not bool((weight != 0).any()):
                group = self.agent.optimizers.group_of(weight)
                if not weight.requires_grad or group is None:
                    still.append((name, where, not weight.requires_grad))
        if not still:
            return []
        return [piece("zero-layer", dict(still[0][1], node=still[0][0]), names=[one[0] for one in still[:3]],
                      more=max(0, len(still) - 3) or None, count=len(still), steps=self._steps,
                      frozen=all(one[2] for one in still), also=self._optimizers())]

    def _frozen_tables(self):
        """Embeddings that are the only frozen part of a model that is trained."""
        found, steps = [], self._steps
        tables = {number: one for number, one in self._frozen.items() if one[0]() is not None}
        for root in self.agent.modules.roots().values() if tables else ():
            own = list(root.parameters())
            frozen = [one for one in own if not one.requires_grad]
            if not frozen or len(frozen) == len(own) or any(id(one) not in tables for one in frozen):
                continue
            for one in frozen:
                table, name, where = tables.pop(id(one))
                if table() is one:
                    found.append(piece("frozen-table", where, node=name, rows=one.shape[0], width=one.shape[1],
                                       random=is_random(one), steps=steps,
                                       also=[only_line(r"from_pretrained\(|requires_grad")]))
            break
        return found


def is_random(table):
    """Whether the rows look like independent draws: no direction varies more than in random samples."""
    part = table.detach()[:_MOST_ROWS, :_MOST_ROWS // 4].to("cpu", torch.float64)
    rows, width = part.shape
    if rows < 16 or width < 4 or float((part != 0).double().mean()) < 0.8:
        return False
    part = part - part.mean(0)
    variance = float(part.var())
    largest = float(torch.linalg.eigvalsh(part.t() @ part / rows)[-1])
    return variance > 0 and largest < _EDGE * variance * (1 + (width / rows) ** 0.5) ** 2
