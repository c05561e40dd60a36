# SPDX-License-Identifier: MIT
"""Where the user's code stands: frames by sys._getframe, without reading any source.

A frame is kept as (code object, line); whether a code object belongs to a library is worked out once.
"""
import os
import re
import sys
import sysconfig

import torch

MAX_FRAMES = 64

_own = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_torch = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_library_roots = tuple({_torch, sysconfig.get_paths()["stdlib"] + os.sep, sysconfig.get_paths()["platstdlib"] + os.sep,
                        os.path.dirname(os.path.abspath(os.__file__)) + os.sep})
_installed = re.compile(r"[/\\](site|dist)-packages[/\\]")
_dispatch = os.path.join(_torch, "overrides.py")  # stands between the user and us, and says nothing
_kinds = {}  # code object -> _USER, _LIBRARY, _OURS
_USER, _LIBRARY, _OURS = range(3)


def _kind(code):
    kind = _kinds.get(code)
    if kind is None:
        name = code.co_filename
        if name.startswith(_own) or name == _dispatch:
            kind = _OURS
        elif name.startswith(_library_roots) or name.startswith("<frozen") or _installed.search(name):
            kind = _LIBRARY
        else:
            kind = _USER
        if len(_kinds) > 65536:
            _kinds.clear()
        _kinds[code] = kind
    return kind


def frames(depth=1):
    """The stack above the caller, innermost first: a tuple of (code, line, is_library). Our own frames
    are left out."""
    found = []
    frame = sys._getframe(depth)
    while frame is not None and len(found) < MAX_FRAMES:
        code = frame.f_code
        kind = _kind(code)
        if kind != _OURS:
            found.append((code, frame.f_lineno, kind == _LIBRARY))
        frame = frame.f_back
    return tuple(found)


def user_frame(depth=1):
    """The innermost frame of the user's own code, or None."""
    frame = sys._getframe(depth)
    while frame is not None and _kind(frame.f_code) != _USER:
        frame = frame.f_back
    return frame


def user_frames(depth=1):
    """The frames of the user's own code, innermost first."""
    frame = sys._getframe(depth)
    while frame is not None:
        if _kind(frame.f_code) == _USER:
            yield frame
        frame = frame.f_back


def is_user(code):
    """Whether a code object is of the user's own code."""
    return _kind(code) == _USER


def is_torch(code):
    """Whether a code object is of torch."""
    return code.co_filename.startswith(_torch)


def library_function(names, depth=1):
    """The name of the first function of torch between here and the user's code that is one of `names`; None
    when none of them runs."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if _kind(code) == _USER:
            return None
        if code.co_name in names and code.co_filename.startswith(_torch):
            return code.co_name
        frame = frame.f_back
    return None


def runs_in(file, depth=1):
    """Whether a function of that file of torch (a path below its directory) is on the stack."""
    path = _torch + file
    frame = sys._getframe(depth)
    while frame is not None:
        if frame.f_code.co_filename == path:
            return True
        frame = frame.f_back
    return False
