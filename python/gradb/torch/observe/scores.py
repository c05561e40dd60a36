# SPDX-License-Identifier: MIT
"""The scores of attention before their softmax: how large they grow in each head, and how sharp the softmax is."""
import torch

from . import Watcher, piece
from .units import is_plain

_MOST_NODES = 64
_MOST_ROWS = 4      # of a batch
_MOST = 1 << 15     # scores, unless one row has more
_MOST_LENGTH = 256  # of a sequence
_MASKED = -1e4      # scores below are masked
_ONE = 0.999        # a weight that leaves nothing to the others


class Scores(Watcher):
    """Measures the scores of attention in each observed step."""

    operators = frozenset(("softmax", "scaled_dot_product_attention", "multi_head_attention_forward"))

    def __init__(self, observation):
        super().__init__(observation)
        self._found = {}
        self._step = 0

    def begins(self, step):
        """Remembers its number."""
        self._step = step

    def operator(self, call):
        """A softmax over a square of scores, or an attention that makes its own."""
        result = call.result[0] if isinstance(call.result, tuple) and call.result else call.result
        if not call.is_forward() or not isinstance(result, torch.Tensor) or not result.requires_grad:
            return
        if call.name == "softmax":
            scores = call.given(0, "input")
            if is_plain(scores) and scores.dim() >= 3 and scores.shape[-1] == scores.shape[-2] > 3 and \
                    call.given(1, "dim") in (-1, scores.dim() - 1):
                self._note(call, scores.detach()[:max(1, min(_MOST_ROWS, _MOST // scores[0].numel()))].float())
        elif call.name in _MAKES:
            scores = _MAKES[call.name](call)
            if scores is not None:
                self._note(call, scores)

    def _note(self, call, scores):
        key = call.node() or call.module()
        if key not in self._found and len(self._found) >= _MOST_NODES:
            return
        heads = scores.shape[1] if scores.dim() == 4 else 1
        seen = scores > _MASKED
        several = seen.sum(-1) > 2  # of one or two there is little to choose
        if not bool(several.any()):
            return
        size = scores.masked_fill(~seen, 0).abs().amax(-1)
        sharp = (scores.masked_fill(~seen, float("-inf")).softmax(-1).amax(-1) > _ONE) & several
        apart = (0, *range(2, size.dim())) if scores.dim() == 4 else tuple(range(size.dim()))
        peak = size.amax(apart).reshape(heads)
        share = sharp.float().sum(apart).reshape(heads) / several.float().sum(apart).reshape(heads).clamp(min=1)
        head = int(peak.argmax())
        known = self._found.setdefault(key, piece("attention-scores", dict(call.where(), node=key), looks=0,
                                                  first=float(peak.max()), first_step=self._step,
                                                  divided=call.name != "softmax" or None))
        known["looks"] += 1
        known.update(last=float(peak[head]), head=head, heads=heads, share=float(share[head]), step=self._step)

    def evidence(self):
        """One piece for each attention."""
        return list(self._found.values())


def _scores_of(call):
    """The scores that a scaled_dot_product_attention makes of some rows; None: unknown."""
    query, key = call.given(0, "query"), call.given(1, "key")
    if not is_plain(query) or not is_plain(key) or query.dim() < 3 or query.shape[:-2] != key.shape[:-2] or \
            not 3 < query.shape[-2] <= _MOST_LENGTH or key.shape[-2] != query.shape[-2]:
        return None
    scale = call.kwargs.get("scale") or query.shape[-1] ** -0.5
    scores = query.detach()[:_MOST_ROWS].float() @ key.detach()[:_MOST_ROWS].float().transpose(-1, -2) * scale
    mask = call.given(3, "attn_mask")
    if call.given(5, "is_causal", False):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    return _masked(scores, mask)


def _scores_of_module(call):
    """The same for the attention of PyTorch's layers, which get (time, batch, width); None: unknown."""
    query, key, heads = call.given(0, "query"), call.given(1, "key"), call.given(4, "num_heads")
    weight, bias = call.given(5, "in_proj_weight"), call.given(6, "in_proj_bias")
    if not is_plain(query) or query.dim() != 3 or query.shape != key.shape or not is_plain(weight) or \
            not 3 < query.shape[0] <= _MOST_LENGTH or weight.shape[0] != 3 * query.shape[2]:
        return None
    time, _, width = query.shape
    parts = []
    for place, data in enumerate((query, key)):
        own = slice(place * width, (place + 1) * width)
        made = data.detach()[:, :_MOST_ROWS].float() @ weight.detach()[own].float().t()
        made = made + bias.detach()[own].float() if bias is not None else made
        parts.append(made.reshape(time, -1, heads, width // heads).permute(1, 2, 0, 3))
    mask = call.given(16, "attn_mask")
    if isinstance(mask, torch.Tensor) and mask.dtype == torch.bool:
        mask = ~mask  # here True means: hidden
    return _masked(parts[0] @ parts[1].transpose(-1, -2) * (width // heads) ** -0.5, mask)


def _masked(scores, mask):
    """mask: True, or 0, where a position is seen; another one than of the positions is not applied."""
    if not isinstance(mask, torch.Tensor) or mask.dim() != 2:
        return scores
    return scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask.detach()


_MAKES = {"scaled_dot_product_attention": _scores_of, "multi_head_attention_forward": _scores_of_module}
