# SPDX-License-Identifier: MIT
"""Checkpoints that the debugger asks for: by the script's own function, or a file with the full training state."""
import os
import random
import sys

import torch

from .. import _lib
from .guard import of_program

_MAX_NAMES = 1000  # tried for a new file
_functions = []  # the script's; the last one counts


def on_checkpoint(function):
    """Registers a function of the script: function(step) is called at the end of a step and returns what to show to the
    user, a path. Returns the function, so it works as a decorator."""
    _functions.append(function)
    return function


def save(agent):
    """Saves a checkpoint at the end of a step, and reports by a log line and an event where it is or why it failed. No
    exception of the script's function reaches the training."""
    try:
        if _functions:
            with of_program():
                path = _functions[-1](agent.steps.step) or "by the script's own function"
        else:
            path = _save_all(agent)
        text = "checkpoint of step %d: %s" % (agent.steps.step, path)
    except Exception as error:  # the training continues without a checkpoint
        text = "checkpoint of step %d failed: %s: %s" % (agent.steps.step, type(error).__name__, error)
    agent.library.gradb_log(agent.handle, _lib.text("gradb: " + text))
    agent.events.happened("checkpoint", text)


def _save_all(agent):
    """Saves models, optimizers and the states of the random generators, in the current directory if possible. Returns
    the path."""
    state = {"step": agent.steps.step,
             "models": {name: module.state_dict() for name, module in agent.modules.roots().items()},
             "optimizers": {name: agent.optimizers.by_name(name).state_dict()
                            for name in agent.optimizers.names()},
             "rng": _random_states()}
    script = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else os.path.join(os.getcwd(), "train")
    base = os.path.splitext(os.path.basename(script))[0]
    rank = os.environ.get("RANK", "")
    rank = ".rank" + rank if rank.isdigit() and int(os.environ.get("WORLD_SIZE", "1") or 1) > 1 else ""
    name = "%s.step%d%s.pt" % (base, agent.steps.step, rank)
    failed = None
    for folder in (os.getcwd(), os.path.dirname(script)):
        path = os.path.join(folder, name)
        try:
            with agent.own_moment():
                _write(state, path)
            return path
        except OSError as error:
            failed = error
        except RuntimeError as error:  # PyTorch's error for a folder that is not writable
            failed = error
    raise failed


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
