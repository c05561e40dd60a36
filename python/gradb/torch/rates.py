# SPDX-License-Identifier: MIT
"""The learning rates of optimizers, which the debugger reads and sets. See ../rates.py."""
import torch
from torch.optim import lr_scheduler

from .. import rates
from . import commands, stack
from .values import is_opaque, outside_training

_KIND = getattr(lr_scheduler, "LRScheduler", None) or lr_scheduler._LRScheduler  # before 2.0


class Rates(rates.Schedulers):
    """What ../rates.py asks for."""

    def __init__(self, agent):
        super().__init__(lambda: stack.spot(stack.shown(stack.frames(2))))
        self.agent = agent

    def hook(self):
        """Notes where schedulers are made."""
        own = [kind for kind in vars(lr_scheduler).values() if isinstance(kind, type) and hasattr(kind, "step")
               and kind not in (_KIND, torch.optim.Optimizer) and not _passes_on(kind)]
        self.install(_KIND, *own)

    def names(self):
        """The names of all optimizers."""
        return self.agent.optimizers.names()

    def main_name(self):
        """The name of the main one; None: unknown yet."""
        main = self.agent.steps.main()
        return self.agent.optimizers.name_of(main) if main is not None else None

    def optimizer(self, name):
        """The optimizer of that name."""
        return self.agent.optimizers.by_name(name)

    def groups(self, name):
        """(rate or None, why it cannot be set or "") of its groups."""
        found = []
        for group in self.optimizer(name).param_groups:
            rate = group.get("lr")
            plain = isinstance(rate, (int, float)) or isinstance(rate, torch.Tensor) and rate.numel() == 1 \
                and not is_opaque(rate)
            found.append((float(rate), "") if plain else (None, "%s has no rate of one number" % name))
        return found

    def put(self, name, index, value):
        """Sets the rate of a group. A tensor stays the same one, for captured and compiled steps."""
        group = self.optimizer(name).param_groups[index]
        if isinstance(group["lr"], torch.Tensor):
            with outside_training(), torch.no_grad():
                group["lr"].fill_(value)
        else:
            group["lr"] = value

    def schedulers(self, name):
        """(scheduler, FILE:LINE where it was made or "") of those that change its rates."""
        return self.of(self.optimizer(name))

    def named_schedulers(self):
        """name -> scheduler, of all optimizers: named after their classes, the second of a class `StepLR_1`."""
        found = {}
        for name in self.names():
            for scheduler, _ in self.schedulers(name):
                base = key = type(scheduler).__name__
                count = 0
                while key in found:
                    count += 1
                    key = "%s_%d" % (base, count)
                found[key] = scheduler
        return found


def _passes_on(kind):
    """Whether the constructor of a kind of scheduler runs that of all of them."""
    code = getattr(vars(kind).get("__init__"), "__code__", None)
    return issubclass(kind, _KIND) and (code is None or "super" in code.co_names or "__init__" in code.co_names)


def _set_lr(agent, args, _node):
    return rates.command(agent, args)


commands.register("set-lr", _set_lr, "the learning rates of an optimizer; sets them (the command set lr)",
                  "[OPTIMIZER] [GROUP=VALUE...]")
