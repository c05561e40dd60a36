# SPDX-License-Identifier: MIT
"""Debug a PyTorch training: nothing is needed under `gradb run`; by hand it is

    import gradb.torch
    gradb.torch.attach(model, optimizer)

No function here raises into the training for a fault of gradb's own: it says so in one line on stderr, once, and
the training goes on.
"""
import os
import sys

from .. import _lib

_WAIT_SECONDS = 10.0
_agent = None  # of this process, or of the one that it was forked from
_pid = 0       # whose it is


def attach(model=None, optimizer=None, name=None, wait=_WAIT_SECONDS):
    """Attaches this process to the debugger that is there, or to one that comes later, and stands before the
    first step when one is there. Called again, it only takes what is new.

    model: a torch.nn.Module: its parameters become nodes below `name` (the variable that holds it when None).
    optimizer: the one whose steps are the training's; the first that steps when None.
    wait: seconds to wait for the debugger that GRADB_ADDRESS names; without that variable nothing is waited for.
    Returns whether a debugger is there now. With GRADB_DISABLE nothing is done. KeyboardInterrupt: the debugger
    ended the training."""
    from . import first
    first.unwatch()
    fresh = not is_attached()
    if fresh and not _open():
        return False
    agent = _agent
    try:
        if model is not None:
            from . import modules
            agent.modules.add_root(model, name or modules.variable_of(model) or "model")
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
    """Says goodbye to the debugger and takes all hooks off. attach() begins anew."""
    global _agent
    from . import first
    first.unwatch()
    if _agent is None:
        return
    agent, _agent = _agent, None
    try:
        if agent.handle:  # not so in a child of the process that is attached
            agent.library.gradb_log(agent.handle, b"gradb: the program has detached itself; it goes on")
        agent.close()
    except Exception as error:
        _say(error)


def is_attached():
    """Whether this process has an agent, with a debugger or without."""
    return _agent is not None and _pid == os.getpid()


def step():
    """A step of the training ends here. For programs whose steps are not those of an optimizer; from the first
    call on, these calls alone end steps. KeyboardInterrupt: the debugger ended the training."""
    if is_attached():
        _agent.steps.by_hand()


def log(name, value):
    """Tells a number of the running step: a Python number, or a tensor of one element. What is told under a name
    that is otherwise found (loss, lr, epoch, batch) is taken instead of that."""
    if is_attached():
        _agent.events.log(name, value)


def on_checkpoint(function):
    """function(step) does what `checkpoint` asks for, at the end of a step, and returns what to show of it, a path.
    A decorator: the function comes back."""
    from . import checkpoint
    return checkpoint.on_checkpoint(function)


def attach_here(optimizer, wait):
    """What `gradb run` does when the process begins to train, with `optimizer` when that is how. Whether there is
    an agent now."""
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


def _open():
    """Makes the agent and puts its hooks on. Whether that was done."""
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
            agent.close("it could not be attached")
        return False
    _agent, _pid = agent, os.getpid()
    return True


def _leave_parents():
    """In a forked child: the parent's hooks are here, and dead; they come off."""
    global _agent
    if _agent is not None:
        agent, _agent = _agent, None
        agent.close()


def _say(error):
    print("gradb: PyTorch will not be seen: %s" % error, file=sys.stderr)
