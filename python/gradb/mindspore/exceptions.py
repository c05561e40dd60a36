# SPDX-License-Identifier: MIT
"""Exceptions: the run stops a last time before an uncaught one ends the program, at the operator that raised it if its
operators were watched.

    agent exceptions [all | uncaught | off]     all: operators are watched, and stop the run when they raise"""
from .. import _lib, exceptions
from . import commands, stack
from .guard import guarded


class Exceptions(exceptions.Exceptions):
    """Learns of exceptions."""
    is_ours = staticmethod(stack.is_ours)

    def __init__(self, agent):
        super().__init__(agent)
        self._raised = (None, None, 0)  # the last error that an operator raised, its node, and the step
        self._stopped = None         # the last error that stopped the run

    @guarded
    def raised(self, error, node):
        """An operator that is watched has raised; node: None, when it cannot be made."""
        if error is self._raised[0]:
            return  # a cell around it
        self._raised = (error, node, self.agent.steps.step)
        if self.mode == "all" and error is not self._stopped:
            self._stop(error, node)

    @guarded
    def uncaught(self, error, _traceback):
        """See the base."""
        if error is not self._stopped:
            self.agent.ooms.failed(error)
        if error is not self._stopped:
            self._stop(error, self._raised[1] if self._raised[0] is error else None)

    def raised_now(self):
        """For `why`: {"node", "error"} of the operator that raised in this step; None: none did."""
        error, node, step = self._raised
        if node is None or step != self.agent.steps.step:
            return None
        return {"node": node.name, "error": stack.in_a_line(error)}

    def stop_at(self, error, node, text):
        """Stops the run at an exception, described by `text`."""
        self._stop(error, node, text)

    def _stop(self, error, node, text=""):
        agent = self.agent
        if not agent.connected() or not agent.steps.begun():
            return
        self._stopped = error
        place = stack.raised_at(error.__traceback__)
        text = text or stack.in_a_line(error) + (" (%s)" % place if place and node is None else "")
        agent.graph.publish()
        number = node.id if node is not None else 0
        agent.timing.call_waiting(agent.library.gradb_raised, agent.handle, number, _lib.text(text))


commands.register("exceptions", exceptions.command, "which exceptions stop the run", "[all | uncaught | off]")
