# SPDX-License-Identifier: MIT
"""Steps and phases. A step of the training is a step of the main optimizer: the first one that steps, unless
the program or the debugger names another."""
from .. import _lib
from .guard import guarded


class Steps:
    """step: the one that runs, from 1; phase: of enum gradb_phase."""

    def __init__(self, agent):
        self.agent = agent
        self.step = 1
        self.phase = _lib.NO_PHASE
        self._begun = False
        self._main = None

    def use(self, optimizer):
        """The steps of this optimizer are the training's."""
        self._main = optimizer

    def begin(self):
        """A step begins."""
        agent = self.agent
        self._begun = True
        self.phase = _lib.NO_PHASE
        agent.telling.graph.begin_step()
        agent.library.gradb_step_begin(agent.handle, self.step)
        agent.step_began()

    def enter(self, phase):
        """The training goes over into another phase; it may stand here."""
        if phase != self.phase:
            self.agent.telling.flush()
            self.phase = phase
            self.agent.library.gradb_enter(self.agent.handle, phase)

    def operator_begins(self):
        """Whether an operator that runs now belongs into the graph: those of optimizers do not."""
        if not self._begun or self.phase == _lib.OPTIMIZER:
            return False
        if self.phase == _lib.NO_PHASE:
            self.enter(_lib.FORWARD)
        return True

    @guarded
    def backward_begins(self):
        """Whether the hooks of a backward pass are wanted."""
        if not self._begun:
            return False
        self.enter(_lib.BACKWARD)
        return self.agent.look_if_asked()

    @guarded
    def backward_ended(self):
        """The pass is over; what runs between two of them is forward again."""
        if self._begun:
            self.agent.telling.backward_ended()

    @guarded
    def optimizer_begins(self, optimizer):
        """Before Optimizer.step."""
        if self._main is None:
            self._main = optimizer
        if self._begun:
            self.enter(_lib.OPTIMIZER)

    @guarded
    def optimizer_ended(self, optimizer):
        """After Optimizer.step: that of the main one ends the training's step."""
        if not self._begun:
            return
        if optimizer is not self._main:
            self.enter(_lib.FORWARD)
            return
        agent = self.agent
        agent.looking = False
        agent.telling.flush()
        agent.step_ends()
        agent.library.gradb_step_end(agent.handle)
        self.step += 1
        self.begin()
