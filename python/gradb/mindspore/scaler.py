# SPDX-License-Identifier: MIT
"""Loss scalers: the loss before it was scaled, the scale, and the steps that are skipped.

amp.DynamicLossScaler and amp.StaticLossScaler are objects whose methods the script calls, in Python or inside compiled
code. In Python, a loss is known to be scaled when scale() returned it. Of a gradient function that is compiled, it is
known when unscale() is given its gradients: value_and_grad's first output is what was differentiated. Of other compiled
code, a rehearsal shows it. TrainOneStepWithLossScaleCell returns the loss as it was."""
import functools
import math
import threading
import weakref

import mindspore
from mindspore import nn

from . import values
from .guard import guarded

_KINDS = ("DynamicLossScaler", "StaticLossScaler")  # of mindspore.amp
_CELL = getattr(nn, "TrainOneStepWithLossScaleCell", ())
_GRADIENT_FUNCTION = "_Grad.__call__.<locals>.after_grad"  # what value_and_grad compiles
_UNKNOWN = object()
_IN_DOUBT = ("loss is what the training step returns, which may be multiplied by the loss scale: gradb knows whether "
             "it is once a step has been looked into, as `agent operators on` does")


class _Calls:
    """scaled: (result, what it was made of) of calls of scale(); unscaled: results of unscale()."""

    def __init__(self):
        self.scaled = []
        self.unscaled = []

    def find(self, loss):
        """(what the loss was made of by scale(), or None; whether it is known that it is not scaled)."""
        if not self.scaled and not self.unscaled:
            return None, False
        given = next((given for made, given in self.scaled if _is_same(made, loss)), None)
        return given, any(_is_same(known, loss) for known in [given for _, given in self.scaled] + self.unscaled)


class Scaler:
    """skipped: (step, optimizer's name, scaler's class) of the last step that was skipped, or None."""

    def __init__(self, agent):
        self.agent = agent
        self.skipped = None
        self._last = lambda: None  # weak reference to the scaler that was made or used last
        self._of_cell = None    # (class, scale) that a TrainOneStepWithLossScaleCell uses
        self._skips = False     # the outermost call that runs has found that the step is to be skipped
        self._before = None     # the scale before the compiled call that runs
        self._thread = threading.get_ident()
        self._calls = weakref.WeakKeyDictionary()  # compiled function or cell -> whether its loss is scaled
        self._forget()

    def _forget(self):
        self._own, self._trial = _Calls(), _Calls()  # of this step, and of its rehearsals
        self._of_gradient = None  # (function, gradients) of the last compiled gradient function
        self._divisor = _UNKNOWN  # of the loss of the last compiled call

    def wrap(self, wrap):
        """Installs the wrappers: wrap(kind, name, wrapper)."""
        for kind in filter(None, (getattr(mindspore.amp, name, None) for name in _KINDS)):
            for name, then in (("__init__", self._made), ("scale", self._has_scaled), ("unscale", self._has_unscaled),
                               ("adjust", self._adjusted)):
                wrap(kind, name, self._wrapper(vars(kind)[name], then))

    def _wrapper(self, original, then):
        """Calls then(scaler, argument, result) after a method. The parser of compiled functions reads the original."""
        scaling = self

        @functools.wraps(original)
        def method(scaler, *args, **kwargs):
            result = original(scaler, *args, **kwargs)
            if not scaling.agent.dead and threading.get_ident() == scaling._thread:
                then(scaler, args[0] if args else next(iter(kwargs.values()), None), result)
            return result
        return method

    # ---- what the script calls ----

    @guarded
    def _made(self, scaler, _value, _result):
        self._last = weakref.ref(scaler)

    @guarded
    def _has_scaled(self, scaler, given, result):
        self._last = weakref.ref(scaler)
        if self.agent.connected() and values.is_number(given):
            self._here().scaled.append((result, given))

    @guarded
    def _has_unscaled(self, scaler, given, result):
        self._last = weakref.ref(scaler)
        if not self.agent.connected():
            return
        self._here().unscaled.append(result)
        if self._of_gradient is not None and isinstance(given, (tuple, list)) and not self._rehearses():
            function, gradients = self._of_gradient
            if any(tensor is gradient for tensor in given for gradient in gradients):
                self._calls[function] = True
                self._divisor = self.scale()

    @guarded
    def _adjusted(self, scaler, finite, _result):
        self._last = weakref.ref(scaler)
        if self._rehearses() or _is_true(finite):
            return
        if self.agent.hooks.inside:
            self._skips = True
        else:
            self.agent.steps.skipped()

    def _here(self):
        return self._trial if self._rehearses() else self._own

    def _rehearses(self):
        return bool(self.agent.looking and self.agent.looking.rehearses)

    def scale(self):
        """What losses are multiplied by, or None."""
        scale = values.number_of(getattr(self._last(), "scale_value", None))
        return self._of_cell[1] if scale is None and self._of_cell else scale

    def scale_now(self):
        """What the gradients of this step are multiplied by, as far as Python has called scale(); 1.0: nothing."""
        return self.scale() or 1.0 if self._here().scaled else 1.0

    def name(self):
        """The class of the script's scaler."""
        return self._of_cell[0] if self._last() is None and self._of_cell else type(self._last()).__name__

    def lowers(self):
        """Whether the script's scaler lowers its scale when it skips a step."""
        return any(kind.__name__ == "DynamicLossScaler" for kind in type(self._last()).__mro__)

    # ---- compiled code ----

    def compiled_begins(self):
        """Compiled code is about to run."""
        self._before = values.number_of(getattr(self._last(), "scale_value", None))

    def rehearsed(self, called, result):
        """A compiled call has run uncompiled."""
        loss = values.find_number(result)
        scaled, plain = self._trial.find(loss)
        if scaled is not None or plain or not self._trial.scaled:
            self._calls[_key(called)] = scaled is not None
        self._trial = _Calls()

    def call_ended(self, called, result, has_loss):
        """An outermost call returned; has_loss: it was compiled, and its result has the loss."""
        if _CELL and isinstance(called, _CELL) and isinstance(result, (tuple, list)) and len(result) == 3:
            self._of_cell = type(called).__name__, values.number_of(result[2])
            self._divisor = 1.0
            self._skips = _is_true(result[1])
        elif has_loss:
            function = _key(called)
            scaled = self._calls.get(function)
            self._divisor = _UNKNOWN if scaled is None else (self._before or 1.0) if scaled else 1.0
            if getattr(function, "__qualname__", "") == _GRADIENT_FUNCTION:
                self._of_gradient = function, _tensors(result)

    def skips(self, compiled):
        """Whether the outermost call that has returned, and in which no optimizer stepped, is a step that is skipped:
        inside compiled code the scale fell then."""
        skips, self._skips = self._skips, False
        after = self.scale() if compiled and not skips else None
        return skips or after is not None and self._before is not None and after < self._before

    # ---- the loss ----

    def read(self, loss):
        """(name, number) of the loss of this step, unscaled where it is certain that it was scaled."""
        given, plain = self._own.find(loss)
        if given is not None or plain:
            return "loss", values.number_of(given if given is not None else loss)
        number = values.number_of(loss)
        if self._divisor is _UNKNOWN or number is None:
            used = self._own.scaled or self._before is not None
            if number is not None and used and self.scale() not in (None, 1.0):
                self.agent.say_once(_IN_DOUBT)
            return "loss", number
        if self._divisor != 1.0 and not math.isfinite(number):
            return "scaled_loss", number
        return "loss", number / self._divisor

    def step_ended(self):
        """The step is over."""
        self._forget()
        self._before = None


def _key(called):
    """What identifies compiled code from step to step: a cell, or the function of an executor."""
    return called if isinstance(called, nn.Cell) else called.fn


def _is_same(one, other):
    """Whether both are the same tensor; both are held."""
    if one is other:
        return True
    if not isinstance(one, mindspore.Tensor) or not isinstance(other, mindspore.Tensor):
        return False
    address = values.address_of(one) if one.size == 1 and other.size == 1 else 0
    return bool(address) and address == values.address_of(other)


def _is_true(value):
    return bool(value.asnumpy().all()) if hasattr(value, "asnumpy") else bool(value)


def _tensors(result):
    """All tensors in a result."""
    if isinstance(result, mindspore.Tensor):
        return [result]
    return [tensor for item in result for tensor in _tensors(item)] if isinstance(result, (tuple, list)) else []
