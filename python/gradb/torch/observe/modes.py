# SPDX-License-Identifier: MIT
"""Training and evaluation mode of dropout and batch normalisation, in the forward passes of steps."""
import weakref

import torch

from . import Watcher, here, piece
from .lines import frame_in, only_line

_PLACES = {"dropout": 2, "alpha_dropout": 2, "feature_dropout": 2, "dropout1d": 2, "dropout2d": 2, "dropout3d": 2,
           "feature_alpha_dropout": 2, "batch_norm": 5}  # of the argument `training`


_MOST_OPEN = 64


def _line(where):
    return where.get("file"), where.get("line")


def _statistics(kinds):
    """What an evaluation in training mode writes, of these kinds."""
    return "running statistics" if "batch normalization" in kinds else None


def _kind(module):
    """What of a module works differently in training mode; None: nothing."""
    if isinstance(module, torch.nn.modules.dropout._DropoutNd):
        return "dropout" if module.p > 0 else None
    return "batch normalization" if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) else None


def _kinds(module):
    """What of it and its parts is in training mode and works differently there."""
    return {_kind(one) for one in module.modules() if one.training} - {None} if module is not None else set()


class Modes(Watcher):
    """Counts calls in either mode in each observed step."""

    operators = frozenset(_PLACES)

    def __init__(self, observation):
        super().__init__(observation)
        self._trains = self._evaluates = 0   # calls of this step
        self._passed = False
        self._now = {}
        self._steps = []   # (step, calls in training mode, calls in evaluation mode)
        self._where = {}   # of the first call in evaluation mode after one in training mode
        self._first = {}   # of the first one at all
        self._off = set()  # what has run in evaluation mode
        self._seen = {}    # name -> whether it has run in training mode
        self._training = True
        self._partly = False    # some of its parameters are not trained
        self._modes = set()     # "eval": an evaluation has run in evaluation mode
        self._untold = set()    # what works differently in evaluations that ran in training mode
        self._calls = self._called_in = 0  # steps before which that happened; the last one
        self._called_at = {}
        self._open = []    # (where, model) of calls in training mode, with gradients, since the last pass
        self._differs = weakref.WeakKeyDictionary()  # module -> whether training mode makes a difference in it
        self._used = set()  # lines of those that a pass followed directly
        self._unused = {}  # line -> [passes before which others were called there, what works differently, place]
        self._passes = 0

    def begins(self, step):
        """Nothing has run yet."""
        self._trains = self._evaluates = 0
        self._passed = False

    def operator(self, call):
        """Counts it."""
        if not call.is_forward():
            return
        if call.given(_PLACES[call.name], "training", True):
            self._trains += 1
            self._seen[call.name] = True
        else:
            self._evaluates += 1
            self._off.add(call.name)
            self._first = self._first or only_line(r"\.eval\(\)") or here()
            if call.name in self._seen and not self._where:
                self._where = only_line(r"\.eval\(\)") or here()

    def called(self, module, grad):
        """An evaluation in training mode: between two steps, without gradients, of a model that is trained."""
        steps = self.agent.steps
        if grad:
            self._note_open(module)
            return
        if steps.forward or self.agent.events.has_passes() or steps.step < 2 or frame_in("swa_utils.py"):
            return
        if not module.training:
            self._modes.add("eval")
            return
        kinds = _kinds(module)
        owners = self.agent.optimizers.owners()
        if kinds and any(id(one) in owners for one in module.parameters()):
            self._untold |= kinds
            self._calls += self._called_in != steps.step
            self._called_in = steps.step
            self._called_at = self._called_at or here()

    def _note_open(self, module):
        """A call with gradients: an evaluation, if no pass follows it and its line is another one than in training."""
        if len(self._open) >= _MOST_OPEN or not module.training or len(self.agent.optimizers.names()) != 1:
            return
        differs = self._differs.get(module)
        if differs is None:
            differs = self._differs[module] = any(_kind(one) is not None for one in module.modules())
        if differs:
            self._open.append((here(), weakref.ref(module)))

    def passed(self):
        """What has run was a part of training."""
        self._passed = True
        self._passes += 1
        if self._open:
            self._used.add(_line(self._open[-1][0]))
            for where, module in {_line(one): (one, module()) for one, module in self._open[:-1]}.values():
                kinds = _kinds(module)
                if kinds:
                    self._unused.setdefault(_line(where), [0, kinds, where])[0] += 1
            self._open = []

    def ends(self, step):
        """Keeps the counts of a training step."""
        if self.observation.observes and self._passed and self._trains + self._evaluates:
            self._steps.append((step, self._trains, self._evaluates))
            owners = self.agent.optimizers.owners()
            trained = [root for root in self.agent.modules.roots().values()
                       if any(id(one) in owners for one in root.parameters())]
            self._training = any(root.training for root in trained)
            self._partly = any(id(one) not in owners for root in trained for one in root.parameters())

    def evidence(self):
        """One piece, if there is any such operator; one for evaluations in training mode."""
        found = [piece("evaluated-in-training", self._called_at, calls=self._calls, of=self.observation.steps,
                       names=sorted(self._untold), both="eval" in self._modes,
                       statistics=_statistics(self._untold))] if self._calls else []
        found += [piece("evaluated-in-training", where, calls=calls, of=self._passes, names=sorted(kinds),
                        both="eval" in self._modes, statistics=_statistics(kinds), grad=True)
                  for line, (calls, kinds, where) in self._unused.items() if line not in self._used]
        return found + self._of_training()

    def _of_training(self):
        if not self._steps:
            return []
        trained = [step for step, trains, _ in self._steps if trains]
        until = trained[-1] if trained else 0
        after = [step for step, _, _ in self._steps if step > until]
        return [piece("modes", self._where or self._first, steps=len(self._steps), trained=len(trained), until=until,
                      after=len(after), since=after[0] if after else None, training=self._training,
                      partly=self._partly, names=sorted(self._seen or self._off))]
