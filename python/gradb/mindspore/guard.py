# SPDX-License-Identifier: MIT
"""The one barrier for faults: nothing of ours may break the training."""
import functools


def guarded(method):
    """For methods of a class with an `agent`: a fault is reported once and turns the agent off. The method returns None
    then, and is not run any more."""
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
