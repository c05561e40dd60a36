# SPDX-License-Identifier: MIT
"""The learning rates of optimizers, which the debugger reads and sets. See ../rates.py.

A rate is a Parameter, which compiled code reads at each step: its value is changed in place. A rate that the optimizer
computes from the number of its step, by a schedule or from a list, is not one number and cannot be set."""
import ctypes
import sys

import mindspore
from mindspore import Parameter, Tensor, nn, ops

from .. import rates
from . import commands, stack, values

_MAX_RATES = 64  # of an optimizer's groups, which are read
_SCHEDULERS = "mindspore.experimental.optim.lr_scheduler"


class Rates(rates.Schedulers):
    """What ../rates.py asks for."""

    def __init__(self, agent):
        super().__init__(lambda: stack.spot(stack.frames(2)))
        self.agent = agent

    def hook(self):
        """Notes where schedulers are made. Those of MindSpore belong to optimizers of the same package."""
        module = sys.modules.get(_SCHEDULERS)
        if module is not None:
            self.install(*(kind for kind in vars(module).values() if isinstance(kind, type) and hasattr(kind, "step")))

    def names(self):
        """The names of all optimizers."""
        return [known.name for known, _ in self.agent.parameters.living()]

    def main_name(self):
        """The name of the main one; None: unknown yet."""
        known, _ = self.agent.steps.main()
        return known.name if known is not None else None

    def optimizer(self, name):
        """The optimizer of that name."""
        return next(optimizer for known, optimizer in self.agent.parameters.living() if known.name == name)

    def groups(self, name):
        """(rate or None, why it cannot be set or "") of its groups."""
        optimizer = self.optimizer(name)
        return list(zip(rates_at(optimizer), (_why_fixed(holder, name) for holder in _holders(optimizer))))

    def put(self, name, index, value):
        """Sets the rate of a group."""
        holder = _plain(_holders(self.optimizer(name))[index])
        # as MindSpore's own schedulers do: compiled code does not see what set_data replaces
        ops.assign(holder, Tensor([value] if holder.shape else value, holder.dtype))

    def schedulers(self, name):
        """(scheduler, FILE:LINE where it was made or "") of those that change its rates."""
        return self.of(self.optimizer(name))


def _holders(optimizer):
    """What holds the rate of each group: MindSpore's nn has one for each parameter, the same in a group."""
    groups = vars(optimizer).get("param_groups")
    if groups:
        return [group.get("lr") for group in groups]
    rate = getattr(optimizer, "learning_rate", None)
    if isinstance(rate, Parameter):
        return [rate]
    found = {}
    for item in rate if isinstance(rate, (tuple, list, nn.CellList)) else [rate]:
        found.setdefault(id(item), item)
    return list(found.values())[:_MAX_RATES]


def _plain(holder):
    """The Parameter of one number that holds a rate; None: there is none."""
    if isinstance(holder, nn.Cell):  # a constant among groups with schedules is inside a cell
        holder = vars(holder).get("_params", {}).get("learning_rate")
    return holder if isinstance(holder, Parameter) and holder.size == 1 else None


def _why_fixed(holder, name):
    if _plain(holder) is not None:
        return ""
    if not isinstance(holder, nn.Cell):
        return "%s has no rate of one number" % name
    kind = type(holder).__name__
    return "%s computes its rate from the step, by %s: it cannot be set" % (
        name, "a list" if kind.startswith("_Iterator") else "the schedule " + kind)


# ---- the present rates ----

def counter_of(optimizer):
    """How often an optimizer has stepped, by its own count; None: it has none."""
    counter = getattr(optimizer, "global_step", None)
    if counter is None:
        counter = getattr(optimizer, "state_step", None)
    try:
        address = values.address_of(counter)
        if address:
            return ctypes.c_int32.from_address(address).value
        return int(counter.asnumpy().reshape(-1)[0])
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None


def rates_at(optimizer, count=None):
    """The learning rates that an optimizer uses, one per group; None: unknown. count: its counter before the step,
    None: what it is now."""
    if count is None:
        count = counter_of(optimizer) or 0
    return [_rate(holder, count) for holder in _holders(optimizer)]


def _rate(rate, count):
    if isinstance(rate, Parameter):
        return values.number_of(rate)
    if _plain(rate) is not None:
        return values.number_of(_plain(rate))
    if isinstance(rate, nn.Cell):
        listed = getattr(rate, "learning_rate", None)
        if listed is not None and hasattr(listed, "asnumpy") and listed.size > 0 and len(listed.shape) == 1:
            return float(listed.asnumpy()[min(count, listed.size - 1)])
        return values.number_of(rate.construct(mindspore.Tensor(count, mindspore.int32)))
    return values.number_of(rate)


def _set_lr(agent, args, _node):
    return rates.command(agent, args)


commands.register("set-lr", _set_lr, "the learning rates of an optimizer; sets them (the command set lr)",
                  "[OPTIMIZER] [GROUP=VALUE...]")
