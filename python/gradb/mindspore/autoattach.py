# SPDX-License-Identifier: MIT
"""Attaches a process when it makes its first optimizer, and no other: a launcher, an evaluation and a dataset's worker
make none. A process that cannot be attached says so early: when it imports MindSpore, or when it has computed gradients
a few times without an optimizer of MindSpore's."""
import functools
import os
import sys

import mindspore

from .. import _lib
from ..lines import is_main_script
from ..wrappers import Wrappers

_WAIT_SECONDS = 10.0
_ENOUGH = 3  # gradients, before it is said that there is no optimizer
_NO_OPTIMIZER = ("gradients are computed, but there is no optimizer of MindSpore's: call gradb.mindspore.attach() "
                 "before the first step, and gradb.mindspore.step() after each")
_watch = None


def say(why):
    """Says why the process cannot be attached; gradb shows the line as a warning."""
    print("gradb: cannot attach to MindSpore: %s" % str(why).strip().split("\n", 1)[0], file=sys.stderr, flush=True)


def watch(attach):
    """Calls attach(optimizer, seconds to wait) when the first optimizer is made; or now, without an optimizer, where
    lines of the script are wanted that may run before. A second call does nothing."""
    global _watch
    if _watch is not None or _has_own_debugger():
        return
    why = missing()
    if why:
        say(why)
        return
    _watch = _Watch(attach)
    if is_main_script(os.environ.get("GRADB_LINES", "").split("\n")):
        attach(None, wait_seconds())
    else:
        _watch.install()


def wait_seconds():
    """How long to wait for the debugger."""
    return float(os.environ.get("GRADB_WAIT", _WAIT_SECONDS))


def unwatch():
    """Stops waiting and removes the wrappers."""
    global _watch
    if _watch is not None:
        _watch.remove()
        _watch = None


def _version():
    return str(getattr(mindspore, "__version__", "unknown"))


def _has_own_debugger():
    """Whether it is a MindSpore before 2.4, which connects to gradb by itself."""
    numbers = _version().split(".")
    return numbers[0] in ("0", "1") or numbers[:2] in (["2", "0"], ["2", "1"], ["2", "2"], ["2", "3"])


def _api():
    """The module of MindSpore's executors, or None."""
    for name in ("mindspore.graph.api", "mindspore.common.api"):  # the second before 2.9
        try:
            return __import__(name, fromlist=["api"])
        except ImportError:
            pass
    return None


def missing():
    """Why this process cannot be attached, known before it trains; "": it can be."""
    api, nn = _api(), getattr(mindspore, "nn", None)
    native = getattr(api, "_PyNativeExecutor", None)
    needed = (("nn.Cell", nn), ("nn.Optimizer", nn), ("Model.train", getattr(mindspore, "Model", None)),
              ("_JitExecutor", api), ("_PyNativeExecutor.end_graph", native), ("_PyNativeExecutor.grad", native))
    lacking = [name for name, holder in needed if not hasattr(holder, name.rpartition(".")[2])]
    try:
        from mindspore.experimental.optim import optimizer  # noqa: F401
    except ImportError:
        lacking.append("experimental.optim")
    if lacking:
        return "version %s lacks %s; gradb needs a complete MindSpore, 2.7 or later" % (_version(), ", ".join(lacking))
    try:
        _lib.load()
    except OSError as error:
        return str(error)
    return ""


class _Watch(Wrappers):
    """Wrappers of Optimizer.__init__, and of what computes gradients, until an optimizer is made."""

    def __init__(self, attach):
        super().__init__()
        self._attach = attach
        self._gradients = 0

    def install(self):
        """Installs the wrappers."""
        from . import hooks
        for kind in hooks.KINDS:
            self._wrap(kind, "__init__", self._optimizer(kind.__init__))
        native, jit = hooks.api._PyNativeExecutor, hooks.api._JitExecutor
        self._wrap(native, "grad", self._gradient(native.grad, lambda called: True))
        self._wrap(jit, "__call__", self._gradient(jit.__call__, hooks.takes_gradients))

    def _optimizer(self, original):
        @functools.wraps(original)
        def __init__(optimizer, *args, **kwargs):
            original(optimizer, *args, **kwargs)
            if self._wrapped:
                unwatch()
                self._attach(optimizer, wait_seconds())
        return __init__

    def _gradient(self, original, counts):
        @functools.wraps(original)
        def call(executor, *args, **kwargs):
            if self._gradients < _ENOUGH and self._wrapped and counts(executor):
                self._gradients += 1
                if self._gradients == _ENOUGH:
                    say(_NO_OPTIMIZER)
            return original(executor, *args, **kwargs)
        return call
