# SPDX-License-Identifier: MIT
"""Networks beside the one that is trained: a reference that is not a copy of it, a target that is never written."""
import re

import torch

from .. import stack, values, variables
from ..swapping import Ref
from . import Watcher, parameter_name, piece, trace
from .lines import only_line

_ROUNDING = 1e-5         # with gradients, other kernels may compute the same
_MOST_VALUES = 1 << 16   # that are compared
_MOST_MADE = 4096        # operators back from a tensor
_MOST_KEPT = 16          # places
_MOST_PENDING = 4096     # averages of a step
_SAMPLE = 16             # elements by which a parameter is seen to change


class References(Watcher):
    """Notices differences between two passes of the same parameters: they are 0 in each step."""

    operators = frozenset(("sub",))

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._equal = []    # of this step: (Made of the difference, Made of the second value)
        self._looked = []   # of this step: differences that were compared
        self._found = {}    # node -> piece
        self._names = None  # lines that give the network a second name

    def begins(self, step):
        """Forgets the previous step."""
        self.trace.begins(step)
        self._equal, self._looked = [], []

    def operator(self, call):
        """Compares the two sides of a difference."""
        made = self.trace.see(call)
        if made is None or not made.grad or not call.is_forward() or len(call.args) < 2:
            return
        first, second = call.args[:2]
        if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor) or first is second \
                or first.shape != second.shape or not 2 <= first.numel() <= _MOST_VALUES \
                or not first.is_floating_point() or len(self._looked) >= _MOST_KEPT:
            return
        one, other = made.args[:2]
        if one.source() is other.source() or not one.parents() or not other.parents():
            return
        self._looked.append(made)
        size = float(first.detach().abs().max())
        if size > 0 and float((first - second).detach().abs().max()) <= _ROUNDING * size:
            own = _parameters(one)
            if own and own == _parameters(other):
                self._equal.append((made, one if other.grad and not one.grad else other, one.grad and other.grad))

    def loss(self, tensor):
        """A pass begins: which of them the loss depends on, other than by exp() alone (a ratio of probabilities, whose
        gradient is wanted where it is 1)."""
        if not self._looked or not self.observation.observes or not isinstance(tensor, torch.Tensor):
            return
        users = _users(self.trace.of(tensor))
        for made in self._looked:
            where = made.where()
            key = made.node_name()
            found = self._found.get(key)
            equal = next((one for one in self._equal if one[0] is made), None)
            if made not in users or found is None and (equal is None or len(self._found) >= _MOST_KEPT):
                continue
            if found is None:
                found = self._found[key] = piece("same-network", where, steps=0, held=0)
            found["steps"] += 1
            if equal is not None and (equal[2] or _has_other_user(made, users)):
                found["held"] += 1
                found.update(both=equal[2], second=equal[1].node_name())
                if "also" not in found:
                    found["also"] = [*_lines(equal[1]), *self._second_names()]

    def _second_names(self):
        if self._names is None:
            self._names = []
            for name in _second_names(self.agent):
                line = only_line(r"\b%s\s*=[^=]" % re.escape(name))
                self._names += [line] if line else []
        return self._names[:2]

    def evidence(self):
        """One piece for each line."""
        held = [one for one in self._found.values() if one["held"]]
        return list({(one.get("file"), one.get("line")): one for one in reversed(held)}.values())[::-1]


def _lines(made):
    """The user's lines that computed it, the innermost first."""
    places = [(code.co_filename, line) for code, line, is_library in (made.node.stack if made.node else ())
              if not is_library]
    return [{"file": file, "line": line} for file, line in places[:3]]


def _parameters(made):
    """The Made of all parameters that it was computed from; None: too many operators."""
    above = trace.ancestors(made, _MOST_MADE, grads=False)
    return None if len(above) >= _MOST_MADE else {
        one for one in above if one.name == "parameter" or one.node is not None and one.node.operator == "Parameter"}


def _users(root):
    """Made -> what was made of it, of all that `root` depends on by its gradient."""
    users, waiting = {root: []}, [root]
    while waiting and len(users) < _MOST_MADE:
        one = waiting.pop()
        for parent in one.parents():
            if parent.grad:
                if parent not in users:
                    users[parent] = []
                    waiting.append(parent)
                users[parent].append(one)
    return users


def _has_other_user(made, users):
    """Whether anything but exp() reads it."""
    waiting, seen = [made], set()
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user.name in trace.SAME or user.name in ("clamp", "clip", "mul"):
                if user not in seen:
                    seen.add(user)
                    waiting.append(user)
            elif not user.name.startswith("exp"):
                return True
    return False


def _second_names(agent):
    """Names of the program's variables that hold a trained network which has another name, too."""
    names = {}
    owners = agent.optimizers.owners()
    for frame in stack.user_frames(2):
        for name, held in variables.of_frame(frame):
            if isinstance(held, torch.nn.Module) and "/" not in name and any(
                    id(one) in owners for one in held.parameters()):
                names.setdefault(id(held), []).append(name)
    return [name for known in names.values() for name in list(dict.fromkeys(known))[1:]]


class LostAverages(Watcher):
    """Notices averages of a target network and the trained one that nobody reads or writes back."""

    def __init__(self, observation):
        super().__init__(observation)
        self._forget()
        self._found = {}  # (file, line) -> piece
        self._before = {}  # id of a target's parameter -> (weak reference, some elements)

    def _forget(self):
        self._places = None  # address -> parameter
        self._scaled = {}    # id of a product -> (weak reference, parameter)
        self._pending = {}   # id of an average -> (weak reference, target, trained, where)

    def begins(self, step):
        """Forgets the previous step."""
        self._forget()

    def operator(self, call):
        """A parameter is scaled, or an average made or read."""
        if self._pending:
            for one in (*call.args, *call.kwargs.values()):
                for part in one if isinstance(one, (tuple, list)) else (one,):
                    self._pending.pop(id(part), None)
        if self.agent.in_backward or self.agent.steps.is_updating() or not isinstance(call.result, torch.Tensor):
            return
        if call.name in ("mul", "rmul") and not call.writes:
            given = [one for one in call.args[:2] if isinstance(one, torch.Tensor)]
            held = self._parameter(given[0]) if len(given) == 1 else None
            if held is not None and len(self._scaled) < _MOST_PENDING:
                self._scaled[id(call.result)] = Ref(call.result), held
        elif call.name in ("add", "radd", "lerp", "add_") and len(call.args) > 1:
            self._adds(call)

    def _adds(self, call):
        parts = [self._of(one) for one in call.args[:2]]
        if None in parts or parts[0] is parts[1] or parts[0].shape != parts[1].shape \
                or self._parameter(call.result) is not None or len(self._pending) >= _MOST_PENDING:
            return
        owners = self.agent.optimizers.owners()
        trained = [id(one) in owners for one in parts]
        if trained.count(True) != 1:
            return
        target = parts[trained.index(False)]
        if id(target) not in self._before and len(self._before) < _MOST_PENDING:
            self._before[id(target)] = Ref(target), _some(target)
        self._pending[id(call.result)] = Ref(call.result), target, parts[trained.index(True)], call.where()

    def _of(self, value):
        """The parameter that a value is, or a multiple of which it is; None: another one."""
        if not isinstance(value, torch.Tensor):
            return None
        scaled = self._scaled.get(id(value))
        if scaled is not None and scaled[0]() is value:
            return scaled[1]
        return self._parameter(value)

    def _parameter(self, tensor):
        """The parameter whose memory a tensor has."""
        if self._places is None:
            self._places = {}
            for root in self.agent.modules.roots().values():
                for one in root.parameters():
                    if type(one) in values.PLAIN and one.layout is torch.strided and one.device.type != "meta":
                        self._places[one.data_ptr()] = one
        if type(tensor) not in values.PLAIN or tensor.layout is not torch.strided or tensor.device.type == "meta":
            return None
        held = self._places.get(tensor.data_ptr())
        return held if held is not None and held.shape == tensor.shape else None

    def ends(self, step):
        """Counts those that are gone: no operator has read them, and nobody holds them."""
        lost = {}
        for reference, target, trained, where in self._pending.values():
            if reference() is None:
                lost.setdefault((where.get("file"), where.get("line")), []).append((target, trained, where))
        for key, averages in lost.items():
            target, trained, where = averages[0]
            if key not in self._found and len(self._found) >= _MOST_KEPT:
                continue
            where = {name: value for name, value in where.items() if name != "node"}
            found = self._found.setdefault(key, piece("average-lost", where, steps=0))
            found["steps"] += 1
            found.update(node=parameter_name(self.agent, target), trained=parameter_name(self.agent, trained),
                         count=len(averages))
        self._forget()

    def evidence(self):
        """One piece for each line, and whether the targets have changed since."""
        moved = any(one() is not None and _some(one()) != before for one, before in self._before.values())
        return [dict(one, moved=moved) for one in self._found.values()]


def _some(tensor):
    flat = tensor.detach().reshape(-1)
    return flat[::max(1, flat.numel() // _SAMPLE)][:_SAMPLE].tolist()
