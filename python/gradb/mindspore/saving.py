# SPDX-License-Identifier: MIT
"""Notices that the script, or a callback, saves the state of its training with mindspore.save_checkpoint."""
import functools
import os
import sys
import threading

from mindspore.train import serialization

from ..wrappers import Wrappers

_NAME = "save_checkpoint"


class Saving(Wrappers):
    """Wraps the function wherever it was imported."""

    def __init__(self, agent):
        super().__init__()
        self.agent = agent
        self._thread = threading.get_ident()

    def install(self):
        """Installs the wrapper."""
        save, saving = getattr(serialization, _NAME), self

        @functools.wraps(save)
        def wrapper(save_obj, ckpt_file_name, *args, **kwargs):
            result = save(save_obj, ckpt_file_name, *args, **kwargs)
            agent = saving.agent
            if not agent.dead and agent.steps.begun() and threading.get_ident() == saving._thread:
                agent.tell("saved", os.fspath(ckpt_file_name) if isinstance(ckpt_file_name, (str, os.PathLike)) else "")
            return result
        for module in list(sys.modules.values()):
            if getattr(module, "__dict__", {}).get(_NAME) is save:
                self._wrap(module, _NAME, wrapper)
