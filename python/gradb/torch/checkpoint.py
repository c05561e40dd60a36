# SPDX-License-Identifier: MIT
"""Checkpoints that the debugger asks for: what PyTorch's files hold. See ../checkpoint.py."""
import random
import sys

import torch

from .. import checkpoint
from . import commands, devices
from .guard import of_program


class State:
    """Models, optimizers, their schedulers, the gradient scaler and the states of the random generators: only
    tensors, numbers and texts where the script's own classes do not add others, so that torch.load needs no trust."""
    framework = "PyTorch"
    endings = ("pt",)
    is_strict = False  # any other ending is fine

    def __init__(self, agent):
        self.agent = agent
        self.rank_part = checkpoint.rank_part(*agent.rank_and_size())
        self._models = agent.modules.roots()
        self._optimizers = {name: agent.optimizers.by_name(name) for name in agent.optimizers.names()}
        self._schedulers = agent.rates.named_schedulers()
        self._scaler = agent.scaler.current()

    def record(self):
        """What is in the file."""
        return {"models": list(self._models), "optimizers": list(self._optimizers),
                "schedulers": list(self._schedulers), "scaler": self._scaler is not None}

    def write(self, path):
        """Writes the file."""
        with self.agent.own_moment():
            torch.save(self._state(), path)

    def _state(self):
        state = {"step": self.agent.steps.computed()}
        state.update(self.agent.events.loader.numbers())
        for name, held in (("models", self._models), ("optimizers", self._optimizers),
                           ("schedulers", self._schedulers)):
            state[name] = {key: thing.state_dict() for key, thing in held.items()}
        if self._scaler is not None:
            state["scaler"] = self._scaler.state_dict()
        state["rng"] = _random_states()
        return state


def save(agent):
    """Saves a checkpoint at the end of a step; see checkpoint.save."""
    checkpoint.save(agent, State, of_program)


def _checkpoint(agent, args, _node):
    return checkpoint.command(agent, args, State, of_program)


def _random_states():
    states = {"python": random.getstate(), "torch": torch.get_rng_state()}
    device = devices.used()
    if device is not None:
        states[device.name] = [state for _, state in device.random_states()]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        states["numpy"] = (kind, [int(key) for key in keys], *rest)  # no array, which torch.load would not trust
    return states


commands.register("checkpoint", _checkpoint, "save a checkpoint (the command checkpoint)", "[FILE]")
