# SPDX-License-Identifier: MIT
"""What an operator does inside: the calls of ATen below each function, and in backward, as nodes of their own
under the function's name (`model/fc1/linear/aten.addmm`). Only while somebody asks: it costs several times what
the rest does.

In a backward pass the calls that were made since the hook of the node before belong to the node whose hook runs.
"""
from torch.utils._python_dispatch import TorchDispatchMode

from . import commands

_MAX_HELD = 4096  # calls whose results are held at a time


class Detail(TorchDispatchMode):
    """Collects calls (name, arguments, result) until somebody takes them."""

    def __init__(self, agent):
        super().__init__()
        self._agent = agent
        self._seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        looking, self._agent.looking = self._agent.looking, False  # it is no operator of the program's
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            self._agent.looking = looking and not self._agent.dead
        name = str(getattr(func, "overloadpacket", func))
        if len(self._seen) < _MAX_HELD and "empty" not in name:  # memory without a value
            self._seen.append((name, (args, kwargs), result))
        return result

    def run(self, func, args, kwargs):
        """Calls a function and collects what it does."""
        self._seen = []
        with self:
            return func(*args, **kwargs)

    def begin(self):
        """What runs from now on is collected. Returns what ends it."""
        self._seen = []
        self.__enter__()

        def end():
            self.__exit__(None, None, None)
            self._seen = []
        return end

    def take(self):
        """The calls since the last time, in order."""
        seen, self._seen = self._seen, []
        return seen


def _aten(agent, args, _node):
    word = args.strip()
    if word not in ("", "on", "off"):
        raise commands.CommandError("aten takes 'on' or 'off', not '%s'" % word)
    if word:
        agent.show_detail(word == "on")
    return {"aten": "on" if agent.detail is not None else "off"}


commands.register("aten", _aten, "the calls of ATen inside each operator as nodes: on, off", "[on|off]")
