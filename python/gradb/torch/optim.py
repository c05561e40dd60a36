# SPDX-License-Identifier: MIT
"""Optimizers: a step of the training is a step of the first one that is seen."""
import functools

import torch

try:
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
except ImportError:  # before 2.0
    register_optimizer_step_post_hook = register_optimizer_step_pre_hook = None


class Optimizers:
    """Tells the agent before and after each Optimizer.step."""

    def __init__(self, agent):
        self._agent = agent
        self._handles = []
        self._wrapped = []  # (class, original, wrapper), before 2.0
        self._init = None

    def install(self):
        """Hooks all optimizers, those made already included."""
        if register_optimizer_step_post_hook is not None:
            self._handles = [
                register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: self._before(optimizer)),
                register_optimizer_step_post_hook(lambda optimizer, args, kwargs: self._after(optimizer))]
            return
        original = torch.optim.Optimizer.__init__
        optimizers = self

        @functools.wraps(original)
        def __init__(optimizer, *args, **kwargs):
            original(optimizer, *args, **kwargs)
            optimizers.wrap(type(optimizer))
        self._init = (original, __init__)
        torch.optim.Optimizer.__init__ = __init__
        for kind in _subclasses(torch.optim.Optimizer):
            if "step" in vars(kind):
                self.wrap(kind)

    def wrap(self, kind):
        """Wraps the step of a class, once."""
        original = kind.step
        if getattr(original, "__gradb__", False):
            return
        optimizers = self

        @functools.wraps(original)
        def step(optimizer, *args, **kwargs):
            optimizers._before(optimizer)
            result = original(optimizer, *args, **kwargs)
            optimizers._after(optimizer)
            return result
        step.__gradb__ = True
        kind.step = step
        self._wrapped.append((kind, original, step))

    def remove(self):
        """Takes all hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._init is not None and torch.optim.Optimizer.__init__ is self._init[1]:
            torch.optim.Optimizer.__init__ = self._init[0]
        for kind, original, wrapper in self._wrapped:
            if kind.step is wrapper:
                kind.step = original
        self._wrapped = []

    def _before(self, optimizer):
        self._agent.steps.optimizer_begins(optimizer)

    def _after(self, optimizer):
        self._agent.steps.optimizer_ended(optimizer)


def _subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)
