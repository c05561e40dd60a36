# SPDX-License-Identifier: MIT
"""Training and evaluation mode of dropout and batch normalisation, in the forward passes of steps."""
from . import Watcher, here, piece
from .lines import only_line

_PLACES = {"dropout": 2, "alpha_dropout": 2, "feature_dropout": 2, "dropout1d": 2, "dropout2d": 2, "dropout3d": 2,
           "feature_alpha_dropout": 2, "batch_norm": 5}  # of the argument `training`


class Modes(Watcher):
    """Counts calls in either mode in each observed step."""

    def __init__(self, observation):
        super().__init__(observation)
        self._trains = self._evaluates = 0   # calls of this step
        self._passed = False
        self._now = {}
        self._steps = []   # (step, calls in training mode, calls in evaluation mode)
        self._where = {}   # of the first call in evaluation mode after one in training mode
        self._seen = {}    # name -> whether it has run in training mode
        self._training = True

    def begins(self, step):
        """Nothing has run yet."""
        self._trains = self._evaluates = 0
        self._passed = False

    def operator(self, call):
        """Counts it."""
        place = _PLACES.get(call.name)
        if place is None or not call.is_forward():
            return
        if call.given(place, "training", True):
            self._trains += 1
            self._seen[call.name] = True
        else:
            self._evaluates += 1
            if call.name in self._seen and not self._where:
                self._where = only_line(r"\.eval\(\)") or here()

    def passed(self):
        """What has run was a part of training."""
        self._passed = True

    def ends(self, step):
        """Keeps the counts of a training step."""
        if self.observation.observes and self._passed and self._trains + self._evaluates:
            self._steps.append((step, self._trains, self._evaluates))
            owners = self.agent.optimizers.owners()
            self._training = any(root.training for root in self.agent.modules.roots().values()
                                 if any(id(one) in owners for one in root.parameters()))

    def evidence(self):
        """One piece, if there is any such operator."""
        if not self._steps:
            return []
        trained = [step for step, trains, _ in self._steps if trains]
        until = trained[-1] if trained else 0
        after = [step for step, _, _ in self._steps if step > until]
        return [piece("modes", self._where, steps=len(self._steps), trained=len(trained), until=until, after=len(after),
                      since=after[0] if after else None, training=self._training, names=sorted(self._seen))]
