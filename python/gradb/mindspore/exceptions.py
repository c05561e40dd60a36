# SPDX-License-Identifier: MIT
"""Exceptions: the run stops a last time before an uncaught one ends the program, at the operator that raised it if its
operators were watched.

    agent exceptions [all | watched | uncaught | off]     all: operators are watched, and stop the run when they raise;
                                                          watched: the same as uncaught"""
from .. import _lib, exceptions, lines
from . import commands, stack
from .guard import guarded

_OWN_WORD = "__gradb_told__"


class Exceptions(exceptions.Exceptions):
    """Learns of exceptions."""
    is_ours = staticmethod(stack.is_ours)

    def __init__(self, agent):
        super().__init__(agent)
        self._raised = ("", None, 0)  # what the last error says that an operator raised, its node, and the step

    @guarded
    def raised(self, error, node):
        """An operator that is watched has raised; node: None, when it cannot be made."""
        told = _told(error)
        if told is not None and told.raised:
            return  # a cell around it
        told = told or _tell(error)
        told.raised, told.node = True, node
        self._raised = (stack.in_a_line(error), node, self.agent.steps.step)
        if self.mode == "all" and not told.stopped:
            self._stop(error, node)

    @guarded
    def uncaught(self, error, _traceback):
        """See the base."""
        told = _told(error) or _tell(error)
        if not told.stopped:
            self.agent.ooms.failed(error)
        if not (_told(error) or told).stopped:
            self._stop(error, told.node)

    def raised_now(self):
        """For `why`: {"node", "error"} of the operator that raised in this step; None: none did."""
        text, node, step = self._raised
        if node is None or step != self.agent.steps.step:
            return None
        return {"node": node.name, "error": text}

    def stop_at(self, error, node, text):
        """Stops the run at an exception, described by `text`."""
        self._stop(error, node, text)

    def _stop(self, error, node, text=""):
        agent = self.agent
        if not agent.connected() or not agent.steps.begun():
            return
        (_told(error) or _tell(error)).stopped = True
        place = stack.raised_at(error.__traceback__)
        text = text or stack.in_a_line(error) + (" (%s)" % place if place and node is None else "")
        agent.graph.publish()
        number = node.id if node is not None else 0
        agent.timing.call_waiting(agent.library.gradb_raised, agent.handle, number, _lib.text(text))
        if agent.looking is not None:
            agent.looking.forget()  # the program may try again in this step, with the memory that it has freed


class _Told:
    """What is known of an exception. It is kept in the exception: a reference to that would keep its frames alive."""
    __slots__ = "raised", "stopped", "node"

    def __init__(self):
        self.raised = self.stopped = False
        self.node = None


def _told(error):
    return getattr(error, _OWN_WORD, None)


def _tell(error):
    told = _Told()
    try:
        setattr(error, _OWN_WORD, told)
    except AttributeError:  # it takes no attribute: it will be reported again
        pass
    return told


lines.register(commands)
commands.register("exceptions", exceptions.command, "which exceptions stop the run",
                  "[all | watched | uncaught | off]")
