# SPDX-License-Identifier: MIT
"""The inside of operators: the ATen calls below each function, and in backward passes, as nodes of their own under the
function's name (`model/fc1/linear/aten.addmm`). Only while `agent aten on` asks for it: it costs several times what
everything else does.

In a backward pass, the calls since the previous node's hook belong to the node whose hook runs."""
from torch.utils._python_dispatch import TorchDispatchMode

from . import commands

_MAX_HELD = 4096  # calls whose results are held at one time


class Detail(TorchDispatchMode):
    """Collects calls (name, arguments, result) until they are taken."""

    def __init__(self, agent):
        super().__init__()
        self._agent = agent
        self._seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        watching, self._agent.watching_now = self._agent.watching_now, False  # not an operator of the program
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            self._agent.watching_now = watching and not self._agent.dead
        name = str(getattr(func, "overloadpacket", func))
        if len(self._seen) < _MAX_HELD and "empty" not in name:  # not "empty": memory without a value
            self._seen.append((name, (args, kwargs), result))
        return result

    def run(self, func, args, kwargs):
        """Calls a function and collects the calls inside."""
        self._seen = []
        with self:
            return func(*args, **kwargs)

    def begin(self):
        """Begins to collect. Returns a function that ends it."""
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
    wanted = commands.switch_of("aten", args)
    if wanted is not None:
        agent.show_detail(wanted)
    return {"aten": "on" if agent.detail is not None else "off"}


commands.register("aten", _aten, "ATen calls inside each operator as nodes: on, off", "[on|off]")
