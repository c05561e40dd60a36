# SPDX-License-Identifier: MIT
"""Weights that something else than their optimizer writes between its steps: set back, or initialized again."""
import weakref

import torch

from .. import devices, values
from ..swapping import Ref
from . import Watcher, here, parameter_name, piece
from .lines import all_lines

_SAMPLE = 64   # elements of the parameter that is compared
_LEAST = 8     # elements: a bias of a few may be equal by chance
_FAR = 0.7     # of its norm: two random starts are 1.4 apart
_MOST = 256    # writes that are kept of an optimizer
_WIDE = (torch.float32, torch.float64)
_CALLS = r"^\s+(?!def ).*(\.apply\(|reset_parameters\(|\b_?init\w*_weights\w*\()"  # in a loop or function
_WRITES = r"\binit\.\w+_\(|\.(normal|uniform)_\("


class _Of:
    """What is known of one optimizer."""

    def __init__(self, parameter):
        self.ref = Ref(parameter)
        self.name = ""
        self.left = None    # the sample, as the optimizer has left it (devices.Later)
        self.late = []      # (left, the sample before the next step, the line of a load_state_dict() between them)
        self.steps = 0
        self.found = []     # of each write: how far it moved the sample, in units of its norm
        self.values = {}    # sample after a write -> how often it was written
        self.at = {}


class Overwritten(Watcher):
    """Compares some elements of one parameter before each step with what the previous step left."""

    def __init__(self, observation):
        super().__init__(observation)
        self._known = weakref.WeakKeyDictionary()
        self._loaded_at = {}

    def loads(self, module, state_dict):
        """Remembers the line."""
        self._loaded_at = here()

    def before_step(self, optimizer):
        """Whether the parameter is what it was."""
        known = self._known.get(optimizer)
        if known is None:
            parameter = next((one for group in optimizer.param_groups for one in group["params"]
                              if one.requires_grad and one.numel() >= _LEAST and type(one) is torch.nn.Parameter), None)
            if parameter is not None:
                self._known[optimizer] = _Of(parameter)
            return
        now = _sample(known.ref())
        if now is not None and known.left is not None:
            known.late.append((known.left, now, self._loaded_at))
            self._compare(known, waits=False)
        self._loaded_at = {}

    def _compare(self, known, waits):
        """Of the samples that have come from their device, or of all."""
        while known.late and (waits or devices.are_there(known.late[0][:2])):
            left, now, loaded_at = known.late.pop(0)
            left, now = left.tensor().to(torch.float64), now.tensor().to(torch.float64)
            if now.shape != left.shape:
                continue
            known.steps += 1
            if len(known.found) < _MOST and not torch.equal(now, left):
                known.found.append(float((now - left).norm()) / max(float(left.norm()), 1e-30))
                key = tuple(now.tolist())
                known.values[key] = known.values.get(key, 0) + 1
                known.at = loaded_at or known.at or (all_lines(_CALLS) + all_lines(_WRITES) + [{}])[0]
                known.name = known.name or parameter_name(self.agent, known.ref())

    def after_step(self, optimizer):
        """What it leaves."""
        known = self._known.get(optimizer)
        if known is not None:
            known.left = _sample(known.ref())

    def evidence(self):
        """A piece for each optimizer whose weights were written."""
        for known in list(self._known.values()):
            self._compare(known, waits=True)
        return [piece("overwritten", known.at, node=known.name, optimizer=self.agent.optimizers.name_of(optimizer),
                      steps=known.steps, times=len(known.found), values=len(known.values),
                      same=max(known.values.values()), far=sum(one > _FAR for one in known.found),
                      moved=min((one for one in known.found if one > _FAR), default=None))
                for optimizer, known in list(self._known.items()) if known.found]


def _sample(parameter):
    """Some elements, as devices.Later; None: they cannot be read."""
    if type(parameter) is torch.nn.Parameter and parameter.device.type == "cpu" and parameter.is_contiguous() and \
            parameter.dtype in _WIDE:
        return devices.copied(parameter.detach().view(-1)[:_SAMPLE])  # the usual case: cheaper
    try:
        return devices.copied(values.readable(parameter).reshape(-1)[:_SAMPLE]) if parameter is not None else None
    except (values.NoValue, RuntimeError):
        return None
