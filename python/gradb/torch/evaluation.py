# SPDX-License-Identifier: MIT
"""Notices evaluations: forward passes of a model that is trained, outside its training steps.

That is a call in evaluation mode, unless the model is trained in that mode; or one without gradients, of a model in
training mode, on the batch of a DataLoader that does not feed the training. An evaluation is over with the last batch
of its DataLoader, before the next training step, before the script saves a state, and at the end."""
import torch

from .guard import guarded


class Evaluation:
    """Notices the outermost calls of modules in the training thread."""

    def __init__(self, agent):
        self.agent = agent
        self._module = None  # the last one that was called to be trained: a weak reference
        self._called = set()  # ids of the modules that were called in this pass of the evaluation
        self._known = None   # the members.Known of the evaluation that runs, if a backward pass could follow

    @guarded
    def called(self, module, known, begins):
        """A module is called outside all others; known: its members.Known; begins: a forward pass with gradients
        begins with it."""
        agent = self.agent
        if not agent.steps.begun() or not agent.is_training_thread():
            return
        if agent.observation.on:
            agent.observation.tell("called", module, torch.is_grad_enabled())
        if begins and module.training:
            self._module = known.ref
            agent.happenings.evaluation_ends(True)
            agent.events.loader.feeds()
        elif not agent.happenings.evaluates and self._is_evaluation(module, known, begins):
            self._known = known if begins else None
            agent.happenings.evaluation_begins(agent.steps.passed_before() if begins else agent.steps.passed())
            agent.heed_next_pass()
            self._called.clear()
            self._passes(module)
        elif agent.happenings.evaluates:
            self._passes(module)

    def _passes(self, module):
        """A module that is called again begins a pass with another batch: it runs the same nodes."""
        if not self._called or id(module) in self._called:
            self._called.clear()
            self.agent.reporter.new_pass()
        self._called.add(id(module))

    def pass_begins(self):
        """A backward pass begins: the evaluation, if there was one, was the forward pass of a training step."""
        known, self._known = self._known, None
        if known is not None and self.agent.happenings.evaluates:
            known.learns = True
        self.agent.happenings.evaluation_ends(True)

    def _is_evaluation(self, module, known, begins):
        agent = self.agent
        if torch.is_grad_enabled() and (not begins or known.learns or not known.trains):
            return False  # it may be a part of a forward pass, or be trained in this mode
        if module.training and not (not torch.is_grad_enabled() and agent.events.loader.is_apart()):
            return False
        return not agent.backward_depth() and not agent.steps.running and (known.trains or self._holds(module, known))

    def _holds(self, module, known):
        """Whether an optimizer trains it, though no step has yet. A frozen one is searched again when there are other
        optimizers."""
        optimizers = self.agent.optimizers
        count = len(optimizers.names())
        if known.frozen == count:
            return False
        parameter = next((parameter for parameter in module.parameters() if parameter.requires_grad), None)
        if parameter is not None and optimizers.group_of(parameter) is not None:
            return True
        known.frozen = count
        return False

    def may_train(self):
        """Whether what follows can be training, rather than an evaluation on the data of the training."""
        module = self._module() if self._module is not None else None
        return torch.is_grad_enabled() and (module is None or module.training)
