# SPDX-License-Identifier: MIT
"""Layers as objects, and what passes between them: one that is at several places, one that is made again in each pass,
states that are cut off at each time step or come from other examples, and operators whose derivative is 0."""
import itertools
import linecache
import re

import torch

from .. import stack, values
from ..optim import parameters_of
from ..swapping import Ref
from . import Watcher, here, parameter_name, piece, trace
from .source_lines import sources_of

_FLAT = frozenset(("round", "round_", "floor", "floor_", "ceil", "ceil_", "trunc", "sign", "sgn", "floor_divide"))
_MOST = 4096     # parameters, and operators back from a loss
_PIECES = 8
_STATES = 8      # of the last recurrences, whose end is remembered
_SHOWN = 8       # values of a state that are compared
# Where a recurrence is given its state: (position, keyword).
_RECURRENT = {"lstm": 1, "gru": 1, "rnn_tanh": 1, "rnn_relu": 1, "lstm_cell": 1, "gru_cell": 1, "rnn_tanh_cell": 1,
              "rnn_relu_cell": 1}
_MADE = re.compile(r"\b(nn\.[A-Z]\w*|Parameter|Linear|Conv\dd|Embedding|\w*Norm\w*)\(")


class Layers(Watcher):
    """Follows parameters by their identity, and gradients that are 0."""

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._seen = {}        # id of a parameter -> weak reference
        self._fresh = {}       # (file, line) -> [where, steps in which one was read that is new, and in no optimizer]
        self._first = self._step = 0
        self._flats = []       # Made of this step
        self._reaching = []    # of them, those that the loss depends on
        self._still = {}       # (file, line) -> piece
        self._cuts = {}        # (file, line) -> [where, times in this step, steps]
        self._same = None      # pieces on layers at several places
        self._batches = 0      # that loaders have returned
        self._states = []      # (values, batch) of the last states that recurrences returned
        self._follows = False  # the previous step was observed, too
        self._carried = {}     # (file, line) -> piece

    def begins(self, step):
        """Forgets the previous step."""
        self.trace.begins(step)
        self._first = self._first or step
        if step != self._step + 1:  # the state with which the previous step ended was not seen
            self._states, self._follows = [], False
        else:
            self._follows = True
        self._step = step
        self._flats, self._reaching = [], []

    def operator(self, call):
        """Notes parameters that are new, flat operators, and states that come back without a gradient."""
        made = self.trace.see(call)
        if made is None or not call.is_forward() or not made.grad:
            return
        for one in call.args:
            if type(one) is torch.nn.Parameter:
                self._reads(one)
        if call.name in _RECURRENT:
            self._recurs(call, made)
        if call.name in _FLAT and len(self._flats) < 16:
            self._flats.append(made)
        for one in made.parents():
            before = one.first() if one.name == "detach" else None
            if before is not None and before.grad and made.module and before.module == made.module:
                self._comes_back(one)

    def _reads(self, parameter):
        known = self._seen.get(id(parameter))
        if known is not None and known() is parameter or len(self._seen) >= _MOST:
            return
        self._seen[id(parameter)] = Ref(parameter)
        if self._step > self._first and parameter.requires_grad and id(parameter) not in self.agent.optimizers.owners():
            at = here()
            entry = self._fresh.setdefault((at.get("file"), at.get("line")), [at, set()])
            entry[1].add(self._step)

    def batch(self, batch):
        """Counts those that are fed to the training."""
        self._batches += not self.agent.events.loader.is_apart()

    def _recurs(self, call, made):
        """A recurrence begins with the state with which it ended in an earlier batch, of shuffled examples."""
        data, state = call.args[0], call.given(_RECURRENT[call.name], "hx")
        packed = call.name[-4:] != "cell" and isinstance(state, torch.Tensor) and state.dtype == torch.long
        state = call.given(2, "hx") if packed else state
        begun, ended = _some_of(state), _some_of(call.result)
        _, _, shuffled = self.agent.events.loader.position()
        if self._follows and begun is not None and any(begun):
            where = made.where()
            found = self._carried.setdefault((where.get("file"), where.get("line")), piece(
                "carried-state", where, steps=0, held=0, operator=call.name, rows=data.shape[0], also=_callers()))
            before = next((batch for one, batch in self._states if one == begun), None)
            found["steps"] += before != self._batches
            found["held"] += shuffled and before is not None and before < self._batches
        if ended is not None:
            self._states = (self._states + [(ended, self._batches)])[-_STATES:]

    def _comes_back(self, detached):
        where = detached.where()
        entry = self._cuts.setdefault((where.get("file"), where.get("line")), [where, 0, 0])
        entry[1] += 1

    # ---- gradients ----

    def loss(self, tensor):
        """A pass begins: which flat operators are on its way."""
        if not self.observation.observes or not self._flats:
            return
        above = trace.ancestors(self.trace.of(tensor), _MOST)
        self._reaching = [one for one in self._flats if one in above]

    def passed(self):
        """Parameters whose gradient is 0 in each element, where a flat operator is on the way."""
        main = self.agent.steps.main()
        if not self._reaching or main is None or not self.observation.observes:
            return
        own = [one for one in parameters_of(main) if one.grad is not None][:256]
        still = [one for one in own if not bool(one.grad.any())]
        flat = self._reaching[0]
        where = flat.where()
        found = self._still.setdefault((where.get("file"), where.get("line")), piece(
            "flat-operator", where, steps=0, held=0, operator=flat.name.rstrip("_")))
        found["steps"] += 1
        found["held"] += bool(still) and len(still) < len(own)
        if still:
            found.update(parameter=parameter_name(self.agent, still[0]), count=len(still), of=len(own))

    def ends(self, step):
        """Counts states that were cut off, and looks for layers at several places."""
        if not self.observation.observes:
            return
        for entry in self._cuts.values():
            entry[2] += entry[1] >= 3
            entry[1] = 0
        if self._same is None:
            self._same = self._repeated()

    def _repeated(self):
        found = []
        for name, root in self.agent.modules.roots().items():
            for path, module in list(root.named_modules())[:_MOST]:
                if isinstance(module, (torch.nn.Sequential, torch.nn.ModuleList)):
                    held = list(module._modules.values())
                    for one in dict.fromkeys(held):
                        if one is not None and held.count(one) > 1 and any(True for _ in one.parameters()):
                            whole = "/".join([name, *path.split(".")]) if path else name
                            made = sources_of(self.observation).module_made(whole)
                            found.append(piece("same-layer", made, node=whole, count=held.count(one),
                                               kind_of=type(one).__name__))
        return found[:_PIECES]

    # ---- evidence ----

    def evidence(self):
        """What was seen."""
        found = list(self._still.values()) + (self._same or []) + list(self._carried.values())[:1]
        found += [piece("cut-in-time", where, steps=steps) for where, _, steps in self._cuts.values() if steps]
        for where, steps in self._fresh.values():
            if len(steps) >= 3 and sum(one["kind"] == "made-in-pass" for one in found) < _PIECES:
                found.append(piece("made-in-pass", where, steps=len(steps), also=_line_that_makes(where)))
        return found


def _line_that_makes(where):
    """[{"file", "line"}] of the nearest line above, in the same function, that makes a layer."""
    if "file" not in where:
        return None
    lines = linecache.getlines(where["file"])
    for number in range(where["line"], max(0, where["line"] - 40), -1):
        text = lines[number - 1] if number <= len(lines) else ""
        if _MADE.search(text):
            return [{"file": where["file"], "line": number}]
        if text.lstrip().startswith("def "):
            break
    return None


def _callers():
    """The lines of the user's functions that have called the one that runs."""
    frames = list(itertools.islice(stack.user_frames(2), 1, 4))
    return [{"file": one.f_code.co_filename, "line": one.f_lineno} for one in frames]


def _some_of(state):
    """The first values of a state, or of the last one that a recurrence returned; None: unreadable."""
    while isinstance(state, (tuple, list)) and state:
        state = state[-1]
    if not isinstance(state, torch.Tensor) or not state.is_floating_point():
        return None
    try:
        return values.readable(state).reshape(-1)[:_SHOWN].tolist()
    except (values.NoValue, RuntimeError):
        return None
