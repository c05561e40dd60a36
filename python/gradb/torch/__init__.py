# SPDX-License-Identifier: MIT
"""Debug a PyTorch training. Under `gradb run` the script needs no change; by hand it is

    import gradb.torch
    gradb.torch.attach(model, optimizer)

A fault of gradb's own never reaches the training: it is reported once, in one line on stderr, and the training
continues.
"""
# Where to find what:
#
# attaching        autoattach (when), agent (the agent itself: which hooks are active)
# hooks on torch   ops, aten (operators), modules (paths of modules), backward (passes), optim (optimizers),
#                  scaler (GradScaler), loader (DataLoader), exceptions (uncaught ones), regions (torch.compile, CUDA
#                  graphs), saving (torch.save), swapping (torch.utils.swap_tensors), warning_lines, scripted (what
#                  torch.jit.script makes of our wrappers)
# the graph        reporter (what ran, to libgradb), graph (nodes, names, edges), parameters, node_attributes, stack
#                  (source lines), variables (the user's names), members (what modules contain)
# values           values (what can be read), places (structs for libgradb), live (where a value is now), previous_step,
#                  device_stats, source (libgradb's questions)
# steps            steps (steps and phases), events (loss, learning rate, ...), timing, checkpoint, clearing (zeroed
#                  gradients), training (facts for `why`)
# failures         failures (what raised), bad_index, expression, oom (allocations that fail)
# memory           memory (`info memory`), storages, allocations (while `catch oom` is on)
# metrics, rates   metrics (at the losses), rates (`set lr`), evaluation (which forward passes evaluate), reducer (DDP)
# overflows        overflow_checker (finds them), nonfinite, overflow_store (keeps them; commands), calls, call_check,
#                  npy (their files), replay (repeats a call)
# ranks            digest
# below Python     libtorch (tensors), nodes (backward passes), functions (calls): what the C half may use
# foundations      guard (no fault reaches the training), commands (`agent NAME`), source_text
#
# Outside: ../_lib.py (libgradb by ctypes), ../native.py (the C half, python/native), ../_hook.py (waits for torch),
# ../rerun.py (repeats calls of a folder). Every file begins with what it is for.
import os
import sys

from .. import _lib

_WAIT_SECONDS = 10.0
_agent = None  # of this process, or of the one that it was forked from
_pid = 0       # the process that _agent belongs to


def attach(model=None, optimizer=None, name=None, wait=_WAIT_SECONDS):
    """Attaches this process to the debugger, or to one that connects later. When a debugger is there, the training
    stops before its first step. Called again, it only adds what is new.

    model: a torch.nn.Module, whose parameters become nodes below `name` (None: the name of the variable that holds it).
    optimizer: its steps are the steps of the training (None: those of the first optimizer that steps).
    wait: seconds to wait for the debugger that GRADB_ADDRESS names; without that variable it does not wait.
    Returns whether a debugger is connected now. With GRADB_DISABLE it does nothing. KeyboardInterrupt: the debugger
    ended the training."""
    from . import autoattach
    autoattach.unwatch()
    fresh = not is_attached()
    if fresh and not _open():
        return False
    agent = _agent
    try:
        if model is not None:
            from . import variables
            agent.modules.add_root(model, name or variables.name_of(model) or "model")
        if optimizer is not None:
            if model is None:
                agent.discover(optimizer)
            agent.steps.use(optimizer)
        if fresh:
            agent.wait(wait)
    except Exception as error:
        agent.fault(error)
    return agent.connected()


def detach():
    """Disconnects from the debugger and removes all hooks. attach() starts again."""
    global _agent
    from . import autoattach
    autoattach.unwatch()
    if _agent is None:
        return
    agent, _agent = _agent, None
    try:
        if agent.handle:  # not in a child of the attached process
            agent.library.gradb_log(agent.handle, b"gradb: the script called detach(); the training continues")
        agent.close()
    except Exception as error:
        _say(error)


def is_attached():
    """Whether this process has an agent, with or without a debugger."""
    return _agent is not None and _pid == os.getpid()


def step():
    """Ends a step of the training, for scripts whose steps are not those of an optimizer. From the first call on, only
    these calls end steps. KeyboardInterrupt: the debugger ended the training."""
    if is_attached():
        _agent.steps.by_hand()


def log(name, value):
    """Reports a metric of the running step, or between two steps of the one that has ended: a Python number, or a
    tensor of one element. It replaces a metric that gradb finds by itself under the same name (loss, lr, epoch, batch).
    """
    if is_attached():
        _agent.events.log(name, value)


def on_checkpoint(function):
    """Registers function(step) to save the checkpoints that `checkpoint` asks for. It is called at the end of a step
    and returns the path to show. Returns the function, so it works as a decorator."""
    from .. import checkpoint
    return checkpoint.on_checkpoint(function)


def _attach_training(optimizer, wait):
    """Attaches when the process begins to train, by making `optimizer` or (None) otherwise. Returns whether there is an
    agent now."""
    if is_attached():
        return True
    if not _open():
        return False
    try:
        if optimizer is not None:
            _agent.optimizers.made(optimizer)
        _agent.wait(wait)
    except Exception as error:
        _agent.fault(error)
    return True


def watch():
    """Attaches this process when it begins to train: what `gradb run` does."""
    from . import autoattach
    if not is_attached():
        autoattach.watch(_attach_training)


def _open():
    """Makes the agent and installs its hooks. Returns whether it could."""
    global _agent, _pid
    if os.environ.get("GRADB_DISABLE", "0") not in ("", "0"):
        return False
    _leave_parents()
    agent = None
    try:
        from .agent import Agent
        agent = Agent(_lib.load())
        agent.install()
    except Exception as error:
        _say(error)
        if agent is not None:
            agent.close("cannot attach")
        return False
    _agent, _pid = agent, os.getpid()
    return True


def _leave_parents():
    """Removes the parent's hooks in a forked child, where they no longer work."""
    global _agent
    if _agent is not None:
        agent, _agent = _agent, None
        agent.close()


def _say(error):
    print("gradb: cannot attach to PyTorch: %s" % error, file=sys.stderr)
