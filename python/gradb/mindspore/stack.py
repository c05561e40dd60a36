# SPDX-License-Identifier: MIT
"""Where the user's code is: frames from sys._getframe, which need no source, and the names of its variables. Compiled
code has no frames: there the source of `construct` says where a cell is called.

Frames of MindSpore, the standard library and installed packages are marked as a library's, which hides them."""
import ast
import functools
import inspect
import os
import sys
import textwrap

import mindspore
from mindspore import nn

from ..frames import INSTALLED, MAX_FRAMES, OWN, STANDARD
from . import values

_LOOKED_AT = 256  # attributes of the user's object that are searched
_MAX_SITES = 4096

_library_roots = STANDARD + (os.path.dirname(os.path.abspath(mindspore.__file__)) + os.sep,)
_USER, _LIBRARY, _OURS = range(3)
_kinds = {}  # file name -> kind
_sites = {}  # (number of a code object, place in it)... -> (number, these code objects)


def _kind(code):
    name = code.co_filename
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
    return _kind(frame.f_code) == _USER


def is_ours(frame):
    """Whether a frame is gradb's."""
    return _kind(frame.f_code) == _OURS


def frames(depth=1):
    """The stack above the caller, innermost first: a tuple of (code, line, is_library), without our own frames."""
    found = []
    frame = sys._getframe(depth)
    while frame is not None and len(found) < MAX_FRAMES:
        kind = _kind(frame.f_code)
        if kind != _OURS:
            found.append((frame.f_code, frame.f_lineno, kind == _LIBRARY))
        frame = frame.f_back
    return tuple(found)


def running(depth=1):
    """The frames of the user's code, innermost first."""
    frame = sys._getframe(depth)
    while frame is not None:
        if _kind(frame.f_code) == _USER:
            yield frame
        frame = frame.f_back


def site(depth=1):
    """The number of the frames of the user's code on the stack, which is another where the same code is reached in
    another way. 0: there are none, or too many."""
    places, codes = [], []
    frame = sys._getframe(depth)
    while frame is not None:
        if _kind(frame.f_code) == _USER:
            codes.append(frame.f_code)
            places.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    key = tuple(places)
    if key not in _sites and (not places or len(_sites) >= _MAX_SITES):
        return 0
    return _sites.setdefault(key, (len(_sites) + 1, codes))[0]


def spot(stack):
    """FILE:LINE of the innermost of frames() that is the user's; "": there is none."""
    return next(("%s:%d" % (os.path.basename(code.co_filename), line) for code, line, library in stack
                 if not library), "")


def call_in(cell, name):
    """The frame in which a cell's `construct` calls its part of that name: its only call, else its first line; None
    when its source is unknown."""
    function = inspect.unwrap(type(cell).construct)
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    lines = _calls(function).get(name, ())
    return code, lines[0] if len(lines) == 1 else code.co_firstlineno, _kind(code) == _LIBRARY


@functools.lru_cache(maxsize=None)
def _calls(function):
    """Name -> lines of the calls of self.NAME in a function."""
    found = {}
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return found
    for item in ast.walk(tree):
        called = getattr(item, "func", None)
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self":
            found.setdefault(called.attr, []).append(first + item.lineno - 1)
    return found


def name_at(address, depth=1):
    """The user's variable whose tensor is at an address, from the innermost frame outwards; None: there is none."""
    frame = sys._getframe(depth)
    while frame is not None:
        if _kind(frame.f_code) == _USER:
            for name, value in list(frame.f_locals.items()):
                if isinstance(value, mindspore.Tensor) and not getattr(value, "has_init", False) \
                        and values.address_of(value) == address:
                    return name
        frame = frame.f_back
    return None


def in_a_line(error):
    """The type of an exception and the first words of its message, before which MindSpore may draw lines."""
    lines = (line.strip("- ").rstrip(":") for line in str(error).split("\n"))
    return "%s: %s" % (type(error).__name__, next(filter(None, lines), ""))


def raised_at(traceback):
    """The innermost line of the user's in a traceback, as FILE:LINE; "" when there is none."""
    found = ""
    while traceback is not None:
        if _kind(traceback.tb_frame.f_code) == _USER:
            found = "%s:%d" % (os.path.basename(traceback.tb_frame.f_code.co_filename), traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


def cells(depth=1):
    """(name, cell) of the user's variables that hold cells, from the innermost frame outwards; also of the attributes
    of `self`."""
    frame = sys._getframe(depth)
    while frame is not None:
        if _kind(frame.f_code) == _USER:
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


def live():
    """(frame, whether it is a library's) of the Python code that runs, innermost first, without our own frames."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return of_frames(found)


def of_frames(stack):
    """The same for frames, innermost first."""
    return [(frame, _kind(frame.f_code) == _LIBRARY) for frame in stack if _kind(frame.f_code) != _OURS]
