# SPDX-License-Identifier: MIT
"""GradScaler: the steps that it skips, its scale, and the loss before it was scaled.

A step of a scaled optimizer is over when update() has run, even if it was skipped: the training loop has continued."""
import functools
import weakref

import torch

from .. import native
from .guard import guarded
from .swapping import Ref

try:
    _KIND = torch.amp.GradScaler  # torch.cuda.amp.GradScaler inherits from it
except AttributeError:  # before 2.3
    _KIND = torch.cuda.amp.GradScaler

try:
    from torch.amp.grad_scaler import OptState as _OptState
except ImportError:  # before 2.3
    from torch.cuda.amp.grad_scaler import OptState as _OptState

_READY = _OptState.READY
_MAX_KEPT = 8  # scaled losses whose unscaled ones are known


class Scaler(native.base("Scaler")):
    """Wraps scale, step and update. stepping: the optimizer inside scaler.step(); scaling: something may be scaled now.
    """

    def __init__(self, agent):
        self.agent = agent
        self.stepping = None
        self.scaling = False
        self._wrapped = []   # (name, original, wrapper)
        self._kept = []      # (weak reference to a scaled loss, the loss)
        self._scaling = weakref.WeakKeyDictionary()  # scaler -> its scale, from scale() to update()
        self._owners = None  # id(parameter) -> id(optimizer), if asked for since the last scale()
        self._scales = weakref.WeakKeyDictionary()  # scaler -> its scale when it was last read

    def install(self):
        """Wraps the methods."""
        for name, make in (("scale", self._make_scale), ("step", self._make_step), ("update", self._make_update)):
            original = getattr(_KIND, name)
            wrapper = functools.wraps(original)(make(original))
            setattr(_KIND, name, wrapper)
            self._wrapped.append((name, original, wrapper))

    def remove(self):
        """Removes the wrappers, unless they were wrapped themselves."""
        for name, original, wrapper in self._wrapped:
            if vars(_KIND).get(name) is wrapper:
                setattr(_KIND, name, original)
        self._wrapped = []

    def _make_scale(self, original):
        def scale(scaler, outputs):
            result = original(scaler, outputs)
            self._scaled(scaler, outputs, result)
            return result
        return scale

    def _make_step(self, original):
        def step(scaler, optimizer, *args, **kwargs):
            if self.agent.dead or not scaler.is_enabled():
                return original(scaler, optimizer, *args, **kwargs)
            self._step_begins(optimizer)
            result = original(scaler, optimizer, *args, **kwargs)
            self._step_ended(scaler, optimizer)
            return result
        return step

    def _make_update(self, original):
        def update(scaler, *args, **kwargs):
            with self.agent.own_moment():
                result = original(scaler, *args, **kwargs)
            if not self.agent.dead and scaler.is_enabled():
                self._updated(scaler)
            return result
        return update

    # ---- the loss ----

    @guarded
    def _scaled(self, scaler, outputs, result):
        if scaler.is_enabled() and self.agent.connected():
            with self.agent.own_moment():
                self._scaling[scaler] = self.agent.live.scale = self._known_scale(scaler)
                self.scaling = True
            self._owners = None
        if isinstance(outputs, torch.Tensor) and result is not outputs and self.agent.connected():
            with self.agent.own_moment():
                self._kept.append((Ref(result), outputs.detach()))
            del self._kept[:-_MAX_KEPT]

    def unscaled(self, loss):
        """The loss that scale() was given, where `loss` is its result; else `loss`."""
        for reference, original in self._kept:
            if reference() is loss:
                return original
        return loss

    def scale_of(self, parameter):
        """What the gradient of a parameter is multiplied by now; 1.0: nothing."""
        if self._scaling and self._owners is None:
            self._owners = self.agent.optimizers.owners()
        for scaler, scale in self._scaling.items():
            state = scaler._per_optimizer_states.get(self._owners.get(id(parameter)))
            if state is None or state["stage"] is _READY:
                return scale
        return 1.0

    def scale_now(self):
        """What the loss of the running step is multiplied by; 1.0: nothing."""
        return next(iter(self._scaling.values()), 1.0)

    def current(self):
        """A GradScaler that is in use; None: there is none, or it has not been used under a debugger."""
        return next(iter(self._scales), None)

    def _known_scale(self, scaler):
        """The scale, read from the device only when it may have changed."""
        if scaler not in self._scales:
            self._scales[scaler] = scaler.get_scale()
        return self._scales[scaler]

    # ---- steps ----

    @guarded
    def _step_begins(self, optimizer):
        self.stepping = optimizer
        self.agent.steps.scaled_step_begins()

    @guarded
    def _step_ended(self, scaler, optimizer):
        self.stepping = None
        if scaler not in self._scales and self.agent.connected():
            with self.agent.own_moment():
                self._scales[scaler] = scaler.get_scale()
        if not self.agent.steps.was_stepped() or self._found_inf(scaler, optimizer):
            self.agent.steps.skipped(optimizer)

    def _found_inf(self, scaler, optimizer):
        """Whether an optimizer that skips by itself (fused ones do) has skipped. Reads from the device, so only when a
        debugger is connected."""
        if not getattr(optimizer, "_step_supports_amp_scaling", False) or not self.agent.connected():
            return False
        with self.agent.own_moment():
            return any(found.item() for found in scaler._found_inf_per_device(optimizer).values())

    @guarded
    def _updated(self, scaler):
        self._kept.clear()
        self._scaling.pop(scaler, None)
        self.scaling = bool(self._scaling)
        self.agent.live.scale = 1.0
        if self.agent.connected():
            with self.agent.own_moment():
                scale = scaler.get_scale()
            before = self._scales.get(scaler)
            self._scales[scaler] = scale
            self.agent.events.note("loss_scale", scale)
            if before is not None and before != scale:
                self.agent.events.happened("loss-scale", "%g -> %g" % (before, scale))
        else:
            self._scales.pop(scaler, None)
        self.agent.steps.scaler_updated()
