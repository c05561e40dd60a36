# SPDX-License-Identifier: MIT
"""Warnings keep the user's line: `stacklevel` does not count our frames.

A watched function of PyTorch's is called a second time from torch/overrides.py, or by gradb._native, so its frame is on
the stack twice; the outer one is not counted either. Modes of the program, such as the default device, are called from
torch/overrides.py as well; their frames count, as they do without us."""
import sys
import warnings

from .. import native
from . import scripted, stack


class Warnings:
    """Replaces warnings.warn while the process is attached."""

    def __init__(self):
        self._original = None
        self._wrapper = None

    def install(self):
        """Installs the replacement."""
        original = self._original = warnings.warn

        def warn(message, category=None, stacklevel=1, source=None, **more):
            unseen = 1 + _unseen(sys._getframe(1), stacklevel)
            if more.get("skip_file_prefixes"):
                more["skip_file_prefixes"] += stack.own_files()
            return original(message, category, stacklevel + unseen, source, **more)
        self._wrapper = warnings.warn = scripted.stands_for(warn, original)

    def remove(self):
        """Removes it, unless it was replaced itself."""
        if self._wrapper is not None and warnings.warn is self._wrapper:
            warnings.warn = self._original
            scripted.forget(self._wrapper)
        self._wrapper = None


def _unseen(frame, level):
    """How many of our frames are between that one and its caller `level - 1` further out."""
    count = 0
    handled = native.module.handled() if native.module is not None else ()
    twice = [getattr(function, "__code__", None) for function in handled]
    while level > 1 and frame is not None:
        code = frame.f_code
        again = code in twice
        frame = frame.f_back
        while frame is not None and (_is_added(frame, code, again) or again and frame.f_code is code):
            again = stack.is_ours(frame)
            count += 1
            frame = frame.f_back
        level -= 1
    return count


def _is_added(frame, code, again):
    """Whether a frame would not be there without us. code: of the last one that counts; again: the frame that it calls
    is ours."""
    if not stack.is_ours(frame):
        return False
    around = frame.f_back
    return again or not stack.is_between(frame) or around is not None and around.f_code is code
