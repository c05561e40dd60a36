# SPDX-License-Identifier: MIT
"""Checkpoints that the debugger asks for, for the agents of all frameworks: by the script's own function, or a file
with the state of the training."""
import contextlib
import os
import sys

from . import _lib

_functions = []  # the script's; the last one counts


def on_checkpoint(function):
    """Registers a function of the script: function(step) is called at the end of a step and returns what to show to the
    user, a path. Returns the function, so it works as a decorator."""
    _functions.append(function)
    return function


def save(agent, own, programs_moment=contextlib.nullcontext):
    """Saves a checkpoint at the end of a step, and reports by a log line and an event where it is or why it failed. No
    exception of the script's function reaches the training. own(agent): saves one where the script has no function, and
    returns its path; programs_moment: what the script's function runs in."""
    try:
        if _functions:
            with programs_moment():
                path = _functions[-1](agent.steps.step) or "by the script's own function"
        else:
            path = own(agent)
        text = "checkpoint of step %d: %s" % (agent.steps.step, path)
    except Exception as error:  # the training continues without a checkpoint
        text = "checkpoint of step %d failed: %s: %s" % (agent.steps.step, type(error).__name__, error)
    agent.library.gradb_log(agent.handle, _lib.text("gradb: " + text))
    agent.library.gradb_event(agent.handle, b"checkpoint", _lib.text(text), 0)


def write(step, rank, ending, write_to):
    """Calls write_to(path) for SCRIPT.stepN.ENDING in the current directory, or beside the script where that cannot be
    written. rank: of this process in a job of several, else None. Returns the path. OSError, RuntimeError."""
    script = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else os.path.join(os.getcwd(), "train")
    base = os.path.splitext(os.path.basename(script))[0]
    name = "%s.step%d%s.%s" % (base, step, "" if rank is None else ".rank%d" % rank, ending)
    failed = None
    for folder in (os.getcwd(), os.path.dirname(script)):
        path = os.path.join(folder, name)
        try:
            write_to(path)
            return path
        except (OSError, RuntimeError) as error:  # frameworks raise both for a folder that is not writable
            failed = error
    raise failed
