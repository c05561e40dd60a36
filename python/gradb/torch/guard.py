# SPDX-License-Identifier: MIT
"""The one fault barrier: nothing of ours may break the training."""
import functools


def guarded(method):
    """For methods of what has an `agent`: a fault is told once and disarms the agent; None is returned then,
    and by every call after it."""
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        agent = self.agent
        if agent.dead:
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            agent.fault(error)
            return None
    return call


def contained(method):
    """The same for what must be done after a fault, too: so that what was begun is ended."""
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            getattr(self, "agent", self).fault(error)
            return None
    return call
