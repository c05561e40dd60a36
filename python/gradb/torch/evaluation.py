# SPDX-License-Identifier: MIT
"""Notices evaluations: forward passes of a model that is trained, outside its training steps.

That is a call in evaluation mode; or one without gradients, of a model in training mode, on the batch of a DataLoader
that does not feed the training. An evaluation is over with the last batch of its DataLoader, before the next training
step, before the script saves a state, and at the end."""
import torch

from .guard import guarded


class Evaluation:
    """Notices the outermost calls of modules in the training thread."""

    def __init__(self, agent):
        self.agent = agent
        self._module = None  # the last one that was called to be trained: a weak reference

    @guarded
    def called(self, module, known, begins):
        """A module is called outside all others; known: its members.Known; begins: a forward pass with gradients
        begins with it."""
        agent = self.agent
        if not agent.steps.begun() or not agent.is_training_thread():
            return
        if begins and module.training:
            self._module = known.ref
            agent.happenings.evaluation_ends()
            agent.events.loader.feeds()
        elif not agent.happenings.evaluates and self._is_evaluation(module, known):
            agent.happenings.evaluation_begins()
            agent.heed_next_pass()

    def _is_evaluation(self, module, known):
        agent = self.agent
        if module.training and not (not torch.is_grad_enabled() and agent.events.loader.is_apart()):
            return False
        return not agent.backward_depth() and not agent.steps.running and (known.trains or self._holds(module))

    def _holds(self, module):
        """Whether an optimizer trains it, though no step has yet."""
        parameter = next((parameter for parameter in module.parameters() if parameter.requires_grad), None)
        return parameter is not None and self.agent.optimizers.group_of(parameter) is not None

    def may_train(self):
        """Whether what follows can be training, rather than an evaluation on the data of the training."""
        module = self._module() if self._module is not None else None
        return torch.is_grad_enabled() and (module is None or module.training)
