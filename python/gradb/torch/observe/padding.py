# SPDX-License-Identifier: MIT
"""Padding: sequences of different lengths that were filled up, and what reads the filling as if it were data."""
import torch

from . import Watcher, piece, trace

_PIECES = 16
_LENGTHS = 3      # different ones that make padding
_MOST = 1 << 18   # ids that are examined
_HIDES = frozenset(("masked_fill", "masked_fill_", "where", "mul", "mul_", "imul", "getitem", "setitem", "einsum",
                    "masked_select", "index_select", "gather"))
_SHORT = 12       # operators back from a mean that are examined for a mask


def tails(equal):
    """Where rows end in runs of true."""
    return equal.flip(1).long().cumprod(1).flip(1).bool()


def padding_of(ids):
    """(id, (rows, time): whether it is padding), of a table of ids that was filled up at one side; None: it was not.
    That id occurs nowhere else, and there are rows of at least three lengths."""
    if ids.dim() != 2 or ids.shape[0] < 4 or ids.shape[1] < 4 or ids.numel() > _MOST:
        return None
    for edge, turn in ((ids[:, -1], False), (ids[:, 0], True)):
        filler = edge.mode().values
        equal = ids == filler
        padded = tails(equal.flip(1)).flip(1) if turn else tails(equal)
        lengths = padded.sum(1)
        if len(lengths.unique()) >= _LENGTHS and bool((padded == equal).all()) and int(lengths.max()) > 1 \
                and not bool(padded.all(1).any()):
            return int(filler), padded
    return None


class Padding(Watcher):
    """Looks at attention, and at means over time, of padded sequences."""

    operators = frozenset(("embedding", "scaled_dot_product_attention", "multi_head_attention_forward", "softmax",
                           "mean", "getitem"))

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._found = {}
        self._known = []     # (id, padded, Made of the embedding, whether its vector is 0) of this step

    def begins(self, step):
        """Forgets the previous step."""
        self.trace.begins(step)
        self._known = []

    def operator(self, call):
        """Looks at what reads a sequence."""
        made = self.trace.see(call)
        if made is None or not call.is_forward():
            return
        if call.name == "embedding":
            self._embedded(call, made)
        elif not self._known or not made.grad:
            return
        elif call.name == "scaled_dot_product_attention":
            self._attends(call, made, call.given(1, "key"), call.given(3, "attn_mask"), call.given(5, "is_causal"))
        elif call.name == "multi_head_attention_forward":
            self._heads(call, made)
        elif call.name == "softmax":
            self._softmax(call, made)
        elif call.name == "mean":
            self._mean(call, made)
        elif call.name == "getitem":
            self._last(call, made)

    def _embedded(self, call, made):
        ids = call.given(0, "input")
        if len(self._known) >= 4 or not isinstance(ids, torch.Tensor) or ids.dim() != 2:
            return
        ids = trace.copied(ids, _MOST)
        found = padding_of(ids) if ids is not None else None
        if found is not None:
            self._known.append((*found, made, call.given(2, "padding_idx") == found[0]))

    def _of(self, rows, time):
        """What is known of sequences of that many rows and positions, if they are padded."""
        return next((one for one in self._known if tuple(one[1].shape) == (rows, time)), None)

    def _add(self, made, known, holds, what):
        where = made.where()
        key = where.get("file"), where.get("line"), what
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _PIECES:
                return
            found = self._found[key] = piece("padding", where, steps=0, held=0, what=what, also=[known[2].where()])
        found["steps"] += 1
        found["held"] += holds
        found.update(pad=known[0], share=float(known[1].double().mean()), length=known[1].shape[1])

    def _attends(self, call, made, key, mask, causal):
        if not isinstance(key, torch.Tensor) or key.dim() < 3:
            return
        known = self._of(key.shape[0], key.shape[-2])
        if known is not None:
            self._add(made, known, not causal and (mask is None or _sees(mask, known[1])), "attention")

    def _heads(self, call, made):
        key, mask = call.given(1, "key"), call.given(16, "attn_mask")
        known = self._of(key.shape[1], key.shape[0]) if isinstance(key, torch.Tensor) and key.dim() == 3 else None
        if known is not None:
            open_ = call.given(14, "key_padding_mask") is None and not call.kwargs.get("is_causal")
            self._add(made, known, open_ and (mask is None or _sees(mask, known[1])), "attention")

    def _softmax(self, call, made):
        """The weights of attention that is written by hand."""
        weights, dim = call.result, call.given(1, "dim")
        if weights.dim() not in (3, 4) or dim not in (-1, weights.dim() - 1) or weights.shape[-2] != weights.shape[-1]:
            return
        known = self._of(weights.shape[0], weights.shape[-1])
        part = trace.copied(weights) if known is not None else None
        if part is None:
            return
        padded = known[1].reshape(len(part), *([1] * (part.dim() - 2)), -1).expand_as(part)
        real = ~known[1].reshape(len(part), *([1] * (part.dim() - 3)), -1, 1).expand_as(part)
        self._add(made, known, bool((part[padded & real] > 0).any()), "attention")

    def _mean(self, call, made):
        """A mean over time, of which no operator before it hid a part."""
        given, dim = made.first(), call.given(1, "dim", call.given(1, "axis"))
        if given is None or dim not in (1, (1,), [1]) or len(given.shape) != 3:
            return
        known = self._of(*given.shape[:2])
        if known is None:
            return
        hidden, one, empty = False, given, False
        for _ in range(_SHORT):
            if one is None or one is known[2]:
                empty = one is not None and known[3]  # the vector of padding is 0
                break
            if one.name in ("linear", "layer_norm", "multi_head_attention_forward", "lstm", "gru"):
                break
            hidden = hidden or one.name in _HIDES and any(
                parent.shape[:2] == given.shape[:2] for parent in one.parents() if not parent.grad)
            one = one.first()
        self._add(made, known, not hidden and not empty, "mean over time")

    def _last(self, call, made):
        """The state after the last position, of a recurrence that has read the padding at the end."""
        rnn, index = made.first(), call.given(1, "index")
        if rnn is None or rnn.name not in ("lstm", "gru", "rnn_tanh", "rnn_relu") or rnn.args[-1] is not True or \
                rnn.args[7] is True or not isinstance(rnn.args[0], trace.Made):
            return
        known = self._of(*rnn.args[0].shape[:2])
        if known is None or not isinstance(index, tuple) or len(index) < 2 or not isinstance(index[0], slice):
            return
        if isinstance(index[1], int) and index[1] == -1 and index[0] == slice(None) and bool(known[1][:, -1].any()):
            self._add(made, known, True, "last state of the %s" % rnn.name)

    def evidence(self):
        """The pieces."""
        return list(self._found.values())


def _sees(mask, padded):
    """Whether a mask of attention lets a real position see one of padding."""
    part = trace.copied(mask) if isinstance(mask, torch.Tensor) else None
    if part is None or part.dim() < 2:
        return False
    rows, time = padded.shape
    kept = part if part.dtype == torch.bool else part.to(torch.float32) > -1e4
    if kept.shape[-1] != time:
        return False
    if kept.dim() == 4:
        kept = kept[:, 0]
    if kept.dim() == 2:
        kept = kept[None]
    if kept.shape[0] not in (1, rows):
        return False
    seen = kept & padded[:, None, :] & ~padded[:, -kept.shape[1]:, None] if kept.shape[1] in (1, time) else kept[:0]
    return bool(seen.any())
