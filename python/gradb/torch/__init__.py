# SPDX-License-Identifier: MIT
"""Debug a PyTorch training: `gradb.torch.attach()` before the loop, or nothing under `gradb run`."""
import functools
import os
import sys

from .. import _lib

_agent = None
_WAIT_SECONDS = 10.0


def attach(model=None, optimizer=None, name="model", wait=_WAIT_SECONDS):
    """Attaches this process to the debugger, once. model: its parameters become nodes, under `name`;
    optimizer: the one whose steps are the training's (the first that steps when None); wait: seconds to wait
    for a debugger that GRADB_ADDRESS names. Returns whether a debugger is there now.

    OSError: libgradb cannot be loaded."""
    global _agent
    fresh = _agent is None
    if fresh:
        from .agent import Agent
        agent = Agent(_lib.load())
        agent.install()
        _agent = agent
    if model is not None:
        _agent.modules.add_root(model, name)
    if optimizer is not None:
        _agent.steps.use(optimizer)
    if fresh:
        _agent.wait(wait)
    return _agent.connected()


def detach():
    """Takes all hooks off; the training goes on without the debugger."""
    global _agent
    if _agent is not None:
        agent, _agent = _agent, None
        agent.close("detached by the program")


def attach_when_training():
    """Attaches when the process calls its first module or makes its first optimizer: what only imports
    torch, such as a launcher or a worker that loads data, is left alone."""
    import torch
    from . import modules
    watcher = _FirstUse(torch, modules)
    watcher.install()


class _FirstUse:
    """Wraps Optimizer.__init__ and Module.__call__ until one of them is used."""

    def __init__(self, torch, modules):
        self._torch = torch
        self._modules = modules
        self._call = None
        self._init = None

    def install(self):
        """Puts the two wrappers on."""
        module_type, optimizer_type = self._torch.nn.Module, self._torch.optim.Optimizer
        original_call, original_init = module_type.__call__, optimizer_type.__init__
        first_use = self

        def __call__(module, *args, **kwargs):
            if first_use.used(None):
                return module(*args, **kwargs)  # by the agent's own wrapper
            return original_call(module, *args, **kwargs)

        @functools.wraps(original_init)
        def __init__(optimizer, *args, **kwargs):
            original_init(optimizer, *args, **kwargs)
            first_use.used(optimizer)
        self._call = (original_call, __call__)
        self._init = (original_init, __init__)
        module_type.__call__ = __call__
        optimizer_type.__init__ = __init__

    def used(self, optimizer):
        """The process trains: the agent takes over. False when it is a DataLoader's worker."""
        if self._torch.utils.data.get_worker_info() is not None:
            return False
        module_type, optimizer_type = self._torch.nn.Module, self._torch.optim.Optimizer
        if module_type.__call__ is not self._call[1] or optimizer_type.__init__ is not self._init[1]:
            return False  # somebody wrapped after us: later
        module_type.__call__ = self._call[0]
        optimizer_type.__init__ = self._init[0]
        try:
            _attach_here(optimizer)
        except Exception as error:  # never into the user's code
            print("gradb: PyTorch will not be seen: %s" % error, file=sys.stderr)
        return True


def _attach_here(optimizer):
    global _agent
    if _agent is not None:
        return
    from .agent import Agent
    agent = Agent(_lib.load())
    agent.install()
    _agent = agent
    if optimizer is not None:
        agent.discover(optimizer)
    agent.wait(float(os.environ.get("GRADB_WAIT", _WAIT_SECONDS)))
