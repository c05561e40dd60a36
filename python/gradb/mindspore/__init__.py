# SPDX-License-Identifier: MIT
"""Debug a MindSpore training, 2.7 and later. Under `gradb run` the script needs no change; by hand it is

    import gradb.mindspore
    gradb.mindspore.attach()

A fault of gradb's own never reaches the training: it is reported once, in one line on stderr, and the training
continues.
"""
# Where to find what: agent (the agent), hooks (wrappers of MindSpore's classes), steps (steps and metrics),
# parameters (networks, optimizers and their nodes), operators (what runs inside a step, and rehearsals), taps (inside
# compiled code), cells (as nodes), exceptions, graph (nodes), values (tensors), source (libgradb's questions),
# commands and words (`agent NAME`), stack (source lines, variables), ranks, guard (no fault reaches the training).
import functools
import os
import sys

from .. import _lib

_WAIT_SECONDS = 10.0
_agent = None  # of this process, or of the one that it was forked from
_pid = 0       # the process that _agent belongs to
_waiting = []  # (class, original, wrapper) of Optimizer.__init__, until one is made


def attach(wait=_WAIT_SECONDS):
    """Attaches this process to the debugger, or to one that connects later. When a debugger is there, the training
    stops before its first step. Returns whether a debugger is connected now."""
    _unwatch()
    if not is_attached():
        if not _open():
            return False
        _agent.wait(wait)
    return _agent.connected()


def detach():
    """Disconnects from the debugger and removes all hooks. attach() starts again."""
    global _agent
    _unwatch()
    if _agent is not None:
        agent, _agent = _agent, None
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
    """Reports a metric of the running step: a number, or a tensor of one element."""
    if is_attached():
        _agent.steps.log(name, value)


def watch():
    """Attaches this process when it makes its first optimizer: what `gradb run` does. A process that makes none
    (a launcher, an evaluation, a dataset's worker) is left alone. One that could not be attached later says so now."""
    if is_attached() or _waiting or _is_disabled() or _has_own_debugger():
        return
    why = _missing()
    if why:
        _say(why)
        return
    from . import hooks
    for kind in hooks.KINDS:
        original = kind.__init__
        wrapper = _first_made(original)
        _waiting.append((kind, original, wrapper))
        kind.__init__ = wrapper


def _first_made(original):
    @functools.wraps(original)
    def __init__(optimizer, *args, **kwargs):
        original(optimizer, *args, **kwargs)
        if _waiting and not is_attached():
            _unwatch()
            if _open():
                _agent.parameters.made(optimizer)
                _agent.wait(float(os.environ.get("GRADB_WAIT", _WAIT_SECONDS)))
    return __init__


def _is_disabled():
    return os.environ.get("GRADB_DISABLE", "0") not in ("", "0")


def _has_own_debugger():
    """Whether it is a MindSpore before 2.4, which connects to gradb by itself."""
    numbers = _version().split(".")
    return numbers[0] in ("0", "1") or numbers[:2] in (["2", "0"], ["2", "1"], ["2", "2"], ["2", "3"])


def _version():
    from mindspore import __version__
    return __version__


def _missing():
    """Why this process cannot be attached, known before it trains; "": it can be."""
    from mindspore import Model, nn
    try:
        from mindspore.graph import api
    except ImportError:  # before 2.9
        from mindspore.common import api
    native = getattr(api, "_PyNativeExecutor", None)
    needed = (("nn.Cell", nn), ("nn.Optimizer", nn), ("Model.train", Model), ("_JitExecutor", api),
              ("_PyNativeExecutor.end_graph", native), ("_PyNativeExecutor.grad", native))
    lacking = [name for name, holder in needed if not hasattr(holder, name.rpartition(".")[2])]
    try:
        from mindspore.experimental.optim import optimizer  # noqa: F401
    except ImportError:
        lacking.append("experimental.optim")
    if lacking:
        return "version %s lacks %s; gradb needs 2.7 or later" % (_version(), ", ".join(lacking))
    try:
        _lib.load()
    except OSError as error:
        return str(error).split("\n", 1)[0]
    return ""


def _say(why):
    print("gradb: cannot attach to MindSpore: %s" % why, file=sys.stderr, flush=True)


def _unwatch():
    for kind, original, wrapper in _waiting:
        if kind.__init__ is wrapper:
            kind.__init__ = original
    _waiting.clear()


def _open():
    """Makes the agent and installs its hooks. Returns whether it could."""
    global _agent, _pid
    if _is_disabled():
        return False
    agent = None
    try:
        from .agent import Agent
        agent = Agent(_lib.load())
        agent.install()
    except Exception as error:
        _say(str(error).split("\n", 1)[0])
        if agent is not None:
            agent.close("cannot attach")
        return False
    _agent, _pid = agent, os.getpid()
    return True
