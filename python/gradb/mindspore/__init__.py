# SPDX-License-Identifier: MIT
"""Debug a MindSpore training, 2.7 and later. Under `gradb run` the script needs no change; by hand it is

    import gradb.mindspore
    gradb.mindspore.attach()

A fault of gradb's own never reaches the training: it is reported once, in one line on stderr, and the training
continues.
"""
# Where to find what: autoattach (when), agent (the agent), hooks (wrappers of MindSpore's classes), steps (steps and
# metrics), scaler (loss scaling), parameters (networks, optimizers and their nodes), operators (what runs inside a
# step), outside (what they read that none of them made), rehearsal and taps (inside compiled code), compiled (graphs
# of compiled code), cells (as nodes), overflow, nonfinite (numbers that are not finite), exceptions, graph (nodes),
# values (tensors), source (libgradb's questions), commands and words (`agent NAME`), stack (source lines, variables),
# timing, compiles and pipeline (where the time goes), ranks, guard (no fault reaches the training).
import os

from .. import _lib

_WAIT_SECONDS = 10.0
_agent = None  # of this process, or of the one that it was forked from
_pid = 0       # the process that _agent belongs to


def attach(network=None, optimizer=None, name=None, wait=_WAIT_SECONDS):
    """Attaches this process to the debugger, or to one that connects later. When a debugger is there, the training
    stops before its first step. Called again, it only adds what is new.

    network: a mindspore.nn.Cell, whose parameters become nodes below `name` (None: the name of the variable that holds
    it). optimizer: its steps are the steps of the training (None: those of the first optimizer that steps).
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
        if network is not None:
            agent.parameters.add_root(network, name or agent.parameters.variable_of(network))
        if optimizer is not None:
            agent.parameters.made(optimizer)
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
    if _agent is not None:
        agent, _agent = _agent, None
        if agent.handle:  # not in a child of the attached process
            agent.library.gradb_log(agent.handle, b"gradb: the script called detach(); the training continues")
        agent.close()


def is_attached():
    """Whether this process has an agent, with or without a debugger."""
    return _agent is not None and _pid == os.getpid()


def step():
    """Ends a step of the training, for scripts whose steps are not those of an optimizer. From the first call on, only
    these calls end steps."""
    if is_attached():
        _agent.steps.by_hand()


def log(name, value):
    """Reports a metric of the running step, or between two steps of the one that has ended: a number, or a tensor
    of one element."""
    if is_attached():
        _agent.steps.log(name, value)


def on_checkpoint(function):
    """Registers function(step) to save the checkpoints that `checkpoint` asks for. It is called at the end of a step
    and returns the path to show. Returns the function, so it works as a decorator."""
    from .. import checkpoint
    return checkpoint.on_checkpoint(function)


def watch():
    """Attaches this process when it makes its first optimizer: what `gradb run` does. One that could not be attached
    later says so now."""
    from . import autoattach
    if not is_attached() and not _is_disabled():
        autoattach.watch(_attach_training)


def _attach_training(optimizer, wait):
    """Attaches when the process has made its first optimizer, or before (None)."""
    if not is_attached() and _open():
        if optimizer is not None:
            _agent.parameters.made(optimizer)
        _agent.wait(wait)


def _is_disabled():
    return os.environ.get("GRADB_DISABLE", "0") not in ("", "0")


def _open():
    """Makes the agent and installs its hooks. Returns whether it could."""
    global _agent, _pid
    if _is_disabled():
        return False
    if _agent is not None:  # the parent's, in a forked child: its hooks do not work here
        _agent.close()
        _agent = None
    agent = None
    try:
        from .agent import Agent
        agent = Agent(_lib.load())
        agent.install()
    except Exception as error:
        from . import autoattach
        autoattach.say(error)
        if agent is not None:
            agent.close("cannot attach")
        return False
    _agent, _pid = agent, os.getpid()
    return True
