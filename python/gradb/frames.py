# SPDX-License-Identifier: MIT
"""Whose a stack frame is, for all frameworks: what their modules `stack` share."""
import os
import re
import sysconfig

MAX_FRAMES = 64
OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep  # path prefix of gradb's files
STANDARD = tuple({sysconfig.get_paths()["stdlib"] + os.sep, sysconfig.get_paths()["platstdlib"] + os.sep,
                  os.path.dirname(os.path.abspath(os.__file__)) + os.sep})
INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")


def hide(error, is_ours):
    """Removes the frames for which is_ours is true from the traceback of an error, and from those of its causes."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        place = error.__traceback__
        while place is not None:
            while place.tb_next is not None and is_ours(place.tb_next.tb_frame):
                place.tb_next = place.tb_next.tb_next
            place = place.tb_next
        error = error.__cause__ or error.__context__
