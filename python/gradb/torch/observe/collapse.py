# SPDX-License-Identifier: MIT
"""Weights that cannot become different, and networks that are not copies."""
import torch

from .. import loading, values
from . import Watcher, here, parameter_name, piece
from .lines import all_lines
from .source_lines import sources_of

_MOST_ROWS = 256         # of a weight that are examined
_MOST_COLUMNS = 65536
_MOST_PARAMETERS = 4096  # of all optimizers
_NAMES = 3               # in a piece
_COPIES = frozenset(("copy_", "add_", "lerp_"))


def rows_of(parameter):
    """A weight as rows (one for each unit) of numbers, without those above the limits; None: it has none to look at."""
    if type(parameter) not in values.PLAIN or not parameter.is_floating_point() or parameter.numel() < 2 \
            or parameter.layout is not torch.strided or parameter.device.type == "meta":
        return None
    tensor = parameter.detach()
    rows = tensor.reshape(tensor.shape[0], -1) if tensor.dim() > 1 else tensor.reshape(1, -1)
    return rows[:_MOST_ROWS, :_MOST_COLUMNS]


class _Same:
    """A weight whose rows were equal when its optimizer first stepped, or that was constant."""
    __slots__ = ("parameter", "name", "shape", "first", "constant", "value", "apart", "moved", "gradients", "nonzero")

    def __init__(self, parameter, name, rows):
        self.parameter = parameter
        self.name = name
        self.shape = tuple(parameter.shape)
        self.first = rows[:1].clone()
        low, high = float(rows.min()), float(rows.max())
        self.constant = low == high
        self.value = low
        self.apart = self.moved = 0.0
        self.gradients = self.nonzero = 0  # steps with a gradient, and with one that is not all 0


class Weights(Watcher):
    """Follows the weights that start with equal rows: units with equal weights compute the same."""

    def __init__(self, observation):
        super().__init__(observation)
        self._optimizers = {}  # id -> steps
        self._same = {}        # id of the parameter -> _Same
        self._seen = set()
        self._matrices = self._equal = 0  # with two axes or more; and of them with equal rows
        self._zero = 0
        self._looks = self._last = 0

    def before_step(self, optimizer):
        """Looks at new parameters, and at the gradients of those that are followed."""
        count = self._optimizers[id(optimizer)] = self._optimizers.get(id(optimizer), 0) + 1
        if count & (count - 1) and count > 8:
            return
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) not in self._seen and len(self._seen) < _MOST_PARAMETERS:
                    self._seen.add(id(parameter))
                    self._begin(parameter)
                same = self._same.get(id(parameter))
                if same is not None and parameter.grad is not None and type(parameter.grad) in values.PLAIN \
                        and parameter.grad.layout is torch.strided:
                    same.gradients += 1
                    same.nonzero += bool((parameter.grad != 0).any())

    def _begin(self, parameter):
        rows = rows_of(parameter)
        if rows is None or not parameter.requires_grad:
            return
        wide = rows.shape[0] > 1 and rows.shape[1] > 1
        self._matrices += wide
        if not bool((rows == rows[:1]).all()) or (not wide and float(rows.min()) != float(rows.max())):
            return
        same = _Same(parameter, parameter_name(self.agent, parameter), rows)
        self._equal += wide
        self._zero += wide and same.constant and same.value == 0
        self._same[id(parameter)] = same

    def after_step(self, optimizer):
        """Measures how far the rows have come apart, and how far they have moved."""
        count = self._optimizers.get(id(optimizer), 0)
        if count & (count - 1) and count > 8:
            return
        self._looks = max(self._looks, count)
        held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        for key, same in self._same.items():
            if key in held:
                rows = rows_of(same.parameter)
                same.apart = float((rows - rows[:1]).abs().max())
                same.moved = float((rows - same.first).abs().max())

    def evidence(self):
        """One piece about weights with equal rows that moved, one about those that never had a gradient but 0."""
        matrices = [one for one in self._same.values()
                    if len(one.shape) > 1 and min(one.shape[0], one.first.shape[1]) > 1]
        moved = [one for one in matrices if one.moved > 0 and one.nonzero]
        stuck = [one for one in matrices if one.gradients >= 2 and not one.nonzero]
        found = []
        if moved:  # the one that shows it most clearly
            best = min(moved, key=lambda one: one.apart / one.moved)
            alike = [one for one in moved if one.apart <= 1e-3 * one.moved]
            found.append(self._piece("equal-rows", best, alike or [best]))
        if stuck:
            found.append(self._piece("never-a-gradient", stuck[0], stuck))
        return found

    def _piece(self, kind, best, all_of_them):
        names = [one.name for one in all_of_them if one.name]
        return piece(kind, sources_of(self.observation).parameter_set(best.name), node=best.name, names=names[:_NAMES],
                     more=max(0, len(all_of_them) - _NAMES) or None, count=len(all_of_them), rows=best.shape[0],
                     apart=best.apart, moved=best.moved, constant=best.constant, value=best.value, steps=self._looks,
                     gradients=min(one.gradients for one in all_of_them), matrices=self._matrices, equal=self._equal,
                     zero=self._zero)


class Copies(Watcher):
    """Notices that a network is given its own tensors (what should be a copy is an alias), or a state that does not
    fit it."""

    operators = _COPIES

    def __init__(self, observation):
        super().__init__(observation)
        self._found = {}
        self._loaded = {}  # place -> piece
        self._steps = 0
        self._original = None
        self._watch()

    def _watch(self):
        """Looks at what load_state_dict is given, from now on until observation ends."""
        original = torch.nn.Module.load_state_dict
        watcher = self

        def load_state_dict(module, state_dict, *args, **kwargs):
            watches = watcher.observation.on and watcher.agent.is_training_thread()
            if watches:
                watcher.observation.tell("loads", module, state_dict)
            keys = original(module, state_dict, *args, **kwargs)
            if watches and getattr(keys, "missing_keys", None):
                watcher.observation.tell_one(watcher, "misses", module, state_dict, keys)
            return keys

        load_state_dict.__wrapped__ = original
        load_state_dict.__doc__ = original.__doc__
        self._original, self._wrapper = original, load_state_dict
        torch.nn.Module.load_state_dict = load_state_dict

    def closes(self):
        """Observation ends."""
        if torch.nn.Module.load_state_dict is self._wrapper:
            torch.nn.Module.load_state_dict = self._original

    def ends(self, step):
        """Counts."""
        self._steps += 1

    def loads(self, module, state_dict):
        """A module is about to be given a state: whether all of it is its own memory."""
        own = loading.own_tensors(module, state_dict)
        if own:
            self._note("load_state_dict()", type(module).__name__, own, loading.is_fresh(module))

    def misses(self, module, state_dict, keys):
        """A module was given a state (strict=False) in which some of its keys are missing."""
        where, unfit = here(), loading.misfit(module, state_dict, keys)
        key = where.get("file"), where.get("line")
        if unfit and "file" in where and (key in self._loaded or len(self._loaded) < _NAMES):
            self._loaded[key] = piece("loaded-state", where, **unfit)

    def operator(self, call):
        """An update in place whose source is its own target."""
        if not call.writes or len(call.args) < 2:
            return
        target, source = call.args[0], call.args[1]
        if isinstance(source, torch.Tensor) and isinstance(target, torch.Tensor) and not self.agent.in_backward \
                and not self.agent.steps.is_updating() and loading.shares(target, source) and self._is_trained(target):
            self._note(call.name + "()", "", 1)

    def _is_trained(self, tensor):
        held = self.agent.graph.holder(tensor)
        if held is not None:
            return held.operator == "Parameter"
        return any(loading.shares(parameter, tensor) for name in self.agent.optimizers.names()
                   for group in self.agent.optimizers.by_name(name).param_groups for parameter in group["params"])

    def _note(self, how, module, tensors, fresh=False):
        where = here()
        key = (where.get("file"), where.get("line"))
        found = self._found.setdefault(key, {"where": where, "how": how, "module": module, "tensors": tensors,
                                             "fresh": fresh, "times": 0, "also": [] if fresh else all_lines(
                                                 r"=\s*[\w.]+\.state_dict\(\)\s*$")[:_NAMES]})
        found["times"] += 1
        found["last_step"] = self._steps + 1

    def evidence(self):
        """One piece for each line."""
        return [piece("own-copy", one["where"], how=one["how"], module=one["module"] or None, tensors=one["tensors"],
                      times=one["times"], step=one["last_step"], fresh=one["fresh"] or None, also=one.get("also"))
                for one in self._found.values()] + list(self._loaded.values()) + [
                    piece(kind, where, **numbers) for kind, where, numbers in loading.earlier]
