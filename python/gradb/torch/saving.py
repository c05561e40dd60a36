# SPDX-License-Identifier: MIT
"""Notices that the script saves the state of its training: torch.save of a state dictionary, alone or in a dictionary
with other things, or of a module."""
import functools
import os
from collections.abc import Mapping

import torch

from ..wrappers import Wrappers
from .guard import guarded


class Saving(Wrappers):
    """Wraps torch.save."""

    def __init__(self, agent):
        super().__init__()
        self.agent = agent

    def install(self):
        """Installs the wrapper."""
        save, saving = torch.save, self

        @functools.wraps(save)
        def wrapper(*args, **kwargs):
            result = save(*args, **kwargs)
            saving._saved(args, kwargs)
            return result
        self._wrap(torch, "save", wrapper)

    @guarded
    def _saved(self, args, kwargs):
        agent = self.agent
        thing = args[0] if args else kwargs.get("obj")
        file = args[1] if len(args) > 1 else kwargs.get("f")
        if agent.is_training_thread() and agent.steps.begun() and _is_state(thing):
            agent.happenings.saved(_path_of(file))


def _is_state(thing):
    if isinstance(thing, torch.nn.Module):
        return True
    held = list(thing.values()) if isinstance(thing, Mapping) else []
    return any(isinstance(value, (torch.Tensor, torch.nn.Module)) or isinstance(value, Mapping) and any(
        isinstance(inner, torch.Tensor) for inner in value.values()) for value in held)


def _path_of(file):
    """The path of a file as torch.save takes it; "": it has none."""
    name = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", "")
    return os.fspath(name) if isinstance(name, (str, os.PathLike)) else ""
