# SPDX-License-Identifier: MIT
"""Checkpoints that the debugger asks for: what MindSpore's files hold. See ../checkpoint.py."""
import os

import mindspore

from .. import checkpoint
from . import commands, ranks


class State:
    """The parameters of networks and optimizers, as mindspore.save_checkpoint writes those of a training network, with
    the numbers of the step and the epoch."""
    framework = "MindSpore"
    endings = ("ckpt", "safetensors")
    is_strict = True  # mindspore.load_checkpoint takes no others

    def __init__(self, agent):
        self.rank_part = checkpoint.rank_part(*ranks.rank_and_size())
        self._held = agent.parameters.to_save()
        self._optimizers = [known.name for known, _ in agent.parameters.living()]
        self._numbers = {"step_num": agent.steps.computed()}
        if agent.steps.place is not None:
            self._numbers["epoch_num"] = agent.steps.place[0]

    def record(self):
        """What is in the file."""
        return {"parameters": len(self._held), "optimizers": self._optimizers, "numbers": list(self._numbers)}

    def write(self, path):
        """Writes the file."""
        os.unlink(path)  # MindSpore makes the file itself
        numbers = {name: number for name, number in self._numbers.items() if name not in self._held}
        mindspore.save_checkpoint([{"name": name, "data": data} for name, data in self._held.items()], path,
                                  append_dict=numbers, format=os.path.splitext(path)[1][1:])


def save(agent):
    """Saves a checkpoint at the end of a step; see checkpoint.save."""
    checkpoint.save(agent, State)


def _checkpoint(agent, args, _node):
    return checkpoint.command(agent, args, State)


commands.register("checkpoint", _checkpoint, "save a checkpoint (the command checkpoint)", "[FILE]")
