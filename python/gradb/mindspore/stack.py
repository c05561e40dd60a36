# SPDX-License-Identifier: MIT
"""Where the user's code is: frames from sys._getframe, without reading any source, and the names of its variables.

Frames of MindSpore, the standard library and installed packages are marked as a library's, which hides them."""
import os
import sys

import mindspore
from mindspore import nn

from ..frames import INSTALLED, MAX_FRAMES, OWN, STANDARD

_LOOKED_AT = 256  # attributes of the user's object that are searched

_library_roots = STANDARD + (os.path.dirname(os.path.abspath(mindspore.__file__)) + os.sep,)
_USER, _LIBRARY, _OURS = range(3)
_kinds = {}  # file name -> kind


def _kind(frame):
    name = frame.f_code.co_filename
    kind = _kinds.get(name)
    if kind is None:
        if name.startswith(OWN):
            kind = _OURS
        elif name.startswith(_library_roots) or name.startswith("<frozen") or INSTALLED.search(name):
            kind = _LIBRARY
        else:
            kind = _USER
        _kinds[name] = kind
    return kind


def is_users(frame):
    """Whether a frame runs the user's code."""
    return _kind(frame) == _USER


def is_ours(frame):
    """Whether a frame is gradb's."""
    return _kind(frame) == _OURS


def frames(depth=1):
    """The stack above the caller, innermost first: a tuple of (code, line, is_library), without our own frames."""
    found = []
    frame = sys._getframe(depth)
    while frame is not None and len(found) < MAX_FRAMES:
        kind = _kind(frame)
        if kind != _OURS:
            found.append((frame.f_code, frame.f_lineno, kind == _LIBRARY))
        frame = frame.f_back
    return tuple(found)


def spot(stack):
    """FILE:LINE of the innermost of frames() that is the user's; "": there is none."""
    return next(("%s:%d" % (os.path.basename(code.co_filename), line) for code, line, library in stack
                 if not library), "")


def raised_at(traceback):
    """The innermost line of the user's in a traceback, as FILE:LINE; "" when there is none."""
    found = ""
    while traceback is not None:
        if _kind(traceback.tb_frame) == _USER:
            found = "%s:%d" % (os.path.basename(traceback.tb_frame.f_code.co_filename), traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


def cells(depth=1):
    """(name, cell) of the user's variables that hold cells, from the innermost frame outwards; also of the attributes
    of `self`."""
    frame = sys._getframe(depth)
    while frame is not None:
        if _kind(frame) == _USER:
            for names in (frame.f_locals, frame.f_globals):
                for name, value in list(names.items()):
                    if name == "self":
                        yield from _attributes(value)
                    elif isinstance(value, nn.Cell) and not name.startswith("_"):
                        yield name, value
        frame = frame.f_back


def _attributes(value):
    held = getattr(value, "__dict__", None)
    for name, item in list(held.items())[:_LOOKED_AT] if isinstance(held, dict) else ():
        if isinstance(item, nn.Cell) and not name.startswith("_"):
            yield name, item
    if isinstance(value, nn.Cell):
        for name, item in list(value.name_cells().items()):
            yield name, item
