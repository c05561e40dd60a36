# SPDX-License-Identifier: MIT
"""Checkpoints that the debugger asks for: by the script's own function, or a file with the full training state."""
import os
import random
import sys

import torch

from .. import checkpoint
from .guard import of_program

_MAX_NAMES = 1000  # tried for a new file


def save(agent):
    """Saves a checkpoint at the end of a step; see checkpoint.save."""
    checkpoint.save(agent, _save_all, of_program)


def _save_all(agent):
    """Saves models, optimizers and the states of the random generators, in the current directory if possible. Returns
    the path."""
    state = {"step": agent.steps.step,
             "models": {name: module.state_dict() for name, module in agent.modules.roots().items()},
             "optimizers": {name: agent.optimizers.by_name(name).state_dict()
                            for name in agent.optimizers.names()},
             "rng": _random_states()}
    rank = os.environ.get("RANK", "")
    rank = int(rank) if rank.isdigit() and int(os.environ.get("WORLD_SIZE", "1") or 1) > 1 else None

    def write(path):
        with agent.own_moment():
            _write(state, path)
    return checkpoint.write(agent.steps.step, rank, "pt", write)


def _write(state, path):
    """Writes the file completely or not at all; an existing file is only replaced by a complete one."""
    part, opened = _new_file(path)
    with opened as file:
        try:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise


def _new_file(path):
    """(name, file) of a new file next to `path`, under an unused name: a process that was killed while it wrote a
    checkpoint has left one, and the next may have its process id."""
    for count in range(_MAX_NAMES):
        part = "%s.%d-%d.part" % (path, os.getpid(), count)
        try:
            return part, open(part, "xb")
        except FileExistsError:
            pass
    raise FileExistsError("%s: all names for temporary files are used" % part)


def _random_states():
    states = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states["numpy"] = numpy.random.get_state()
    return states
