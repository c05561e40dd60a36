# SPDX-License-Identifier: MIT
"""The one barrier for faults: nothing of ours may break the training.

MindSpore computes asynchronously: an error of the script's is raised once, to the code that waits for a value next,
which may be gradb's. It is not a fault of ours, and is passed on to the script, which would have met it at its own next
wait."""
import functools
import os

import mindspore

_MINDSPORE = os.path.dirname(os.path.abspath(mindspore.__file__)) + os.sep


def is_of_script(error):
    """Whether an error that our code met comes from MindSpore's computation."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    within = place is not None and place.tb_frame.f_code.co_filename.startswith(_MINDSPORE)
    return isinstance(error, (RuntimeError, ValueError, IndexError)) and (within or "C++ Call Stack" in str(error))


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
            if is_of_script(error):
                raise
            agent.fault(error)
            return None
    return call
