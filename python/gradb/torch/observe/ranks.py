# SPDX-License-Identifier: MIT
"""What each rank of a job computes with, as digests that the debugger compares."""
import gc

import torch
from torch.nn.parallel import DistributedDataParallel

from .. import digest, stack, values
from . import Watcher, here, piece

_MOST_LOOKS = 16
_MOST_DIRECTION = 8  # gradients of which some elements are kept
_MOST_INPUTS = 32  # of a step: the first ones may be masks or positions, which are the same on all ranks


class Ranks(Watcher):
    """In observed steps: digests of the parameters, the gradients before the update, and the inputs."""

    def __init__(self, observation):
        super().__init__(observation)
        self._looks = []
        self._now = None
        self._wrapped = self._sharded = False
        self._exists = None
        self._where = {}
        self._called = {}
        self._stepped = {}

    def _is_job(self):
        group = torch.distributed
        return group.is_available() and group.is_initialized() and group.get_world_size() > 1

    def begins(self, step):
        """A new look."""
        self._now = {"step": step} if self._is_job() and len(self._looks) < _MOST_LOOKS else None

    def operator(self, call):
        """Notes the inputs, and whether the wrapper runs."""
        if self._now is None or not call.is_forward():
            return
        self._wrapped |= getattr(DistributedDataParallel, "_active_ddp_module", None) is not None
        inputs = self._now.setdefault("inputs", {})
        for tensor in call.args if len(inputs) < _MOST_INPUTS else ():
            if isinstance(tensor, torch.Tensor) and type(tensor) in values.PLAIN and not tensor.requires_grad \
                    and tensor.numel() > 1 and id(tensor) not in inputs and self.agent.graph.holder(tensor) is None:
                inputs[id(tensor)] = _digest((tensor,))
                self._called = self._called or _call_of_model()

    def loss(self, _tensor):
        """Notes the line."""
        self._where = self._where or here()

    def before_step(self, optimizer):
        """The first update of the step is about to be made."""
        if self._now is None or "gradients" in self._now:
            return
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        self._sharded |= any(type(one) not in values.PLAIN or hasattr(one, "_sharded_size") for one in parameters)
        self._now["start"] = _digest(parameters)
        gradients = [one.grad for one in parameters if one.grad is not None]
        self._now["gradients"] = _digest(gradients)
        self._now["norm"], self._now["direction"] = _direction(gradients)
        self._stepped = self._stepped or here()

    def after_step(self, optimizer):
        """It has been made."""
        if self._now is not None and "after" not in self._now:
            self._now["after"] = _digest([one for group in optimizer.param_groups for one in group["params"]])

    def ends(self, _step):
        """Keeps it."""
        if self._now is not None and "after" in self._now:
            inputs = self._now.pop("inputs", None)
            if inputs:
                self._now["input"] = " ".join(inputs.values())
            self._looks.append(self._now)
        self._now = None

    def evidence(self):
        """One piece for this rank."""
        if not self._looks or self._sharded:
            return []
        if self._exists is None:
            self._exists = any(type(one) is DistributedDataParallel for one in gc.get_objects())
        return [piece("rank-state", self._called or self._where, world=torch.distributed.get_world_size()
                      if self._is_job() else 1, wrapped=self._wrapped, wrapper=self._exists, looks=list(self._looks),
                      also=[one for one in (self._where, self._stepped) if one])]


def _call_of_model():
    """{"file", "line"} of the user's line that called the outermost module."""
    frames = stack.frames(2)
    last = max((place for place, (code, _, _) in enumerate(frames)
                if code.co_filename.endswith("module.py") and stack.is_torch(code)), default=-1)
    found = stack.shown(frames[last + 1:])
    return {} if found is None else {"file": found[0].co_filename, "line": found[1]}


def _direction(gradients):
    """Their norm, and some elements divided by it: what clipping and scaling leave as it is."""
    dense = [one.detach().float().reshape(-1) for one in gradients
             if type(one) in values.PLAIN and one.layout is torch.strided]
    norm = float(sum(float(one.pow(2).sum()) for one in dense)) ** 0.5
    taken = [float(value) for one in dense[:_MOST_DIRECTION]
             for value in one[::max(1, one.numel() // 4)][:4].tolist()] if norm > 0 else []
    return norm, [value / norm for value in taken]


def _digest(tensors):
    """One number for all of them, as text."""
    total = 0
    for place, tensor in enumerate(tensors):
        try:
            total = (total * 1000003 + digest.digest(tensor) + place) & (1 << 64) - 1
        except (RuntimeError, NotImplementedError):  # it has no bytes to read
            continue
    return "%016x" % total
