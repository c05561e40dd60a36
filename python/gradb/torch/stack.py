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
_USER, _LIBRARY, _OURS = range(3)
_MAX_CODES = 65536
_MAX_PLACES = 64
_codes = {}    # id of a code object -> (the code object, which is held so that the id lasts, its kind, its number)
_numbers = {}  # (file, code object) of the user's code -> its number: code that is compiled anew has the one it had
_sites = {}    # (number of code, place in it, ...), innermost first -> number of the site


def _known(code):
    """(code, kind, number) of a code object. The number is 0 where it is not the user's."""
    found = _codes.get(id(code))
    if found is None:
        kind = _kind_of(code.co_filename)
        number = 0
        if kind == _USER and len(_numbers) < _MAX_CODES:
            number = _numbers.setdefault((code.co_filename, code), len(_numbers) + 1)
        if len(_codes) >= _MAX_CODES:
            _codes.clear()
        found = _codes[id(code)] = (code, kind, number)
    return found


def _kind_of(name):
    if name.startswith(_own) or name == _dispatch:
        return _OURS
    if name.startswith(_library_roots) or name.startswith("<frozen") or _installed.search(name):
        return _LIBRARY
    return _USER


def _kind(code):
    return _known(code)[1]


def site(depth=1, outermost=None):
    """The number of the place in the user's code that runs: of all frames of the user's on the stack, so that the
    same line reached in two ways is two places. outermost: a code object, above whose last frame it is looked
    for. 0 when there is no such frame, or there are too many places."""
    places = []
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        known = _codes.get(id(code)) or _known(code)
        if code is outermost:
            places.clear()
        elif known[2] and len(places) < _MAX_PLACES:
            places.append(known[2])
            places.append(frame.f_lasti)
        frame = frame.f_back
    key = tuple(places)
    number = _sites.get(key)
    if number is None:
        if not places or len(_sites) >= _MAX_CODES:
            return 0
        number = _sites[key] = len(_sites) + 1
    return number


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
