# SPDX-License-Identifier: MIT
"""Debug a PyTorch training: `gradb.torch.attach()` before the loop, or nothing under `gradb run`."""
from .. import _lib

_agent = None


def attach(model=None, optimizer=None, name="model", wait=None):
    """Attaches this process to the debugger, once. model: its parameters become nodes at once, under `name`;
    optimizer: the one whose steps are the training's; wait: seconds to wait for a debugger, None: not at all."""
    global _agent
    if _agent is None:
        from .agent import Agent
        _agent = Agent(_lib.load())
        _agent.install()
    if model is not None:
        _agent.modules.add_root(model, name)
    if wait is not None:
        _agent.wait(wait)
    return _agent


def detach():
    """Takes all hooks off; the training goes on without the debugger."""
    global _agent
    if _agent is not None:
        agent, _agent = _agent, None
        agent.close("detached by the program")
