# SPDX-License-Identifier: MIT
"""Learning rates that the debugger reads and sets, for the agents of all frameworks: the command "set-lr".

    set-lr [OPTIMIZER]                    the rates that the next step will use
    set-lr [OPTIMIZER] GROUP=VALUE...     sets them

Without a name it is the main optimizer, whose steps are the steps of the training. A framework's Rates has names(),
main_name(), groups(name), put(name, group, value) and schedulers(name); see torch/rates.py. What schedulers would
compute the next rates from is changed in proportion, so that a schedule continues from the new rate."""
import functools
import math
import weakref

from . import wrappers
from .commands import CommandError

# Of a scheduler, and of the optimizer's groups under a scheduler that keeps its limits there.
_BASES, _IN_GROUPS = ("base_lrs", "max_lrs"), ("initial_lr", "max_lr", "min_lr")
_WRAPPERS = 4  # of an optimizer, around each other


class Schedulers(wrappers.Wrappers):
    """Knows the schedulers that were made since `install`, and where."""

    def __init__(self, place):
        """place(): FILE:LINE of the user's code that is running, or ""."""
        super().__init__()
        self._place = place
        self._made = {}  # id -> (weak reference, place)

    def install(self, *kinds):
        """Wraps the constructors of these classes."""
        for kind in kinds:
            if "__init__" in vars(kind):
                self._wrap(kind, "__init__", self._make(kind.__init__))

    def _make(self, original):
        schedulers = self

        @functools.wraps(original)
        def __init__(scheduler, *args, **kwargs):
            try:
                schedulers._made[id(scheduler)] = weakref.ref(scheduler), schedulers._place()
            except Exception:  # the place of a scheduler is never worth a fault in the training
                pass
            original(scheduler, *args, **kwargs)
        return __init__

    def of(self, optimizer):
        """(scheduler, place) of those that change the optimizer's rates, in the order in which they were made."""
        found = [(reference(), place) for reference, place in self._made.values()]
        return [(scheduler, place) for scheduler, place in found
                if scheduler is not None and _is_of(scheduler, optimizer)]


def _is_of(scheduler, optimizer):
    """Whether a scheduler changes that optimizer's rates; it may hold a wrapper of it, as accelerate's."""
    held = getattr(scheduler, "optimizer", None)
    for _ in range(_WRAPPERS):
        if held is optimizer or held is None:
            break
        held = vars(held).get("optimizer") if hasattr(held, "__dict__") else None
    return held is optimizer


def follow(scheduler, optimizer, ratios):
    """Changes what a scheduler computes its rates from. ratios: group -> new rate / old rate."""
    for name in _BASES:
        bases = vars(scheduler).get(name)
        for index, ratio in ratios.items():
            if isinstance(bases, list) and index < len(bases):
                bases[index] = bases[index] * ratio
    groups = getattr(optimizer, "param_groups", [])
    last = vars(scheduler).get("_last_lr")
    for index in ratios:
        if isinstance(last, list) and index < len(last) and isinstance(last[index], float):
            last[index] = float(groups[index]["lr"])


def follow_in_groups(optimizer, ratios):
    """The same for limits that the optimizer's groups hold for their schedulers."""
    groups = getattr(optimizer, "param_groups", None) or []
    for index, ratio in ratios.items():
        for name in _IN_GROUPS:
            if index < len(groups) and name in groups[index]:
                groups[index][name] = groups[index][name] * ratio


def command(agent, args):
    """Carries out the command."""
    rates = agent.rates
    words = args.split()
    changes = [word for word in words if "=" in word]
    chosen = " ".join(word for word in words if "=" not in word)
    name = _chosen(rates, chosen)
    groups = rates.groups(name)
    if changes:
        wanted = dict(_change(word, groups, name) for word in changes)
        back = _as_now(rates, name, groups)
        _set(rates, name, groups, wanted)
        groups = now = rates.groups(name)
        agent.changes.did("lr of %s" % name, None, 0, lambda: _back(rates, name, now, back))
    return {"step": agent.steps.computed(), "optimizer": name, "optimizers": rates.names(),
            "main": name == rates.main_name(), "schedulers": [
                {"name": type(scheduler).__name__, "place": place, "follows": _follows(scheduler, groups)}
                for scheduler, place in rates.schedulers(name)],
            "groups": [{"group": index, "lr": rate, "fixed": fixed} for index, (rate, fixed) in enumerate(groups)]}


def _as_now(rates, name, groups):
    """A function that puts the rates, and what schedulers compute the next ones from, back to what they are now."""
    held = [vars(scheduler) for scheduler, _ in rates.schedulers(name)]
    held = [(state, key, list(state[key])) for state in held for key in (*_BASES, "_last_lr")
            if isinstance(state.get(key), list)]
    in_groups = [(group, key, group[key]) for group in getattr(rates.optimizer(name), "param_groups", None) or []
                 for key in _IN_GROUPS if key in group]

    def back():
        for index, (rate, fixed) in enumerate(groups):
            if not fixed:
                rates.put(name, index, rate)
        for state, key, values in held:
            state[key][:] = values
        for group, key, value in in_groups:
            group[key] = value
    return back


def _back(rates, name, after, back):
    if rates.groups(name) != after:
        raise CommandError("lr of %s cannot be taken back: it has changed since, as by a scheduler" % name)
    back()


def _follows(scheduler, groups):
    """Whether the scheduler is known to compute its next rates from what was changed."""
    kind = type(scheduler)
    return kind.__module__.endswith("optim.lr_scheduler") and all(rate for rate, _ in groups)


def _chosen(rates, name):
    known = rates.names()
    if not known:
        raise CommandError("the training has no optimizer yet")
    if not name:
        return rates.main_name() or known[0]
    if name not in known:
        raise CommandError("no optimizer '%s': the optimizers are %s" % (name, ", ".join(known)))
    return name


def _change(word, groups, name):
    """(group, new rate) of GROUP=VALUE."""
    group, _, text = word.partition("=")
    try:
        index, value = int(group), float(text)
    except ValueError:
        raise CommandError("%s is not GROUP=NUMBER" % word) from None
    if not 0 <= index < len(groups):
        raise CommandError("%s has no group %d: its groups are 0 to %d" % (name, index, len(groups) - 1))
    if not math.isfinite(value) or value < 0:
        raise CommandError("%s is not a learning rate" % text)
    if groups[index][1]:
        raise CommandError(groups[index][1])
    return index, value


def _set(rates, name, groups, changes):
    optimizer = rates.optimizer(name)
    for index, value in changes.items():
        rates.put(name, index, value)
    ratios = {index: value / groups[index][0] for index, value in changes.items() if groups[index][0]}
    follow_in_groups(optimizer, ratios)
    for scheduler, _ in rates.schedulers(name):
        follow(scheduler, optimizer, ratios)
