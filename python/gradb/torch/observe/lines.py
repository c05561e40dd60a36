# SPDX-License-Identifier: MIT
"""Finds a line of the user's source by what is written there, where no hook has seen it run."""
import linecache
import re
import sys

from .. import stack, variables


def only_line(pattern, after=None, before=None):
    """{"file", "line"} of the only line of the running user code's files that has the pattern; {} if there are several
    or none. after, before: places between which it is, in one file."""
    found = all_lines(pattern)
    if after and before:
        found = [one for one in found if one["file"] == after["file"] == before["file"]
                 and after["line"] < one["line"] < before["line"]]
    return found[0] if len(found) == 1 else {}


def all_lines(pattern):
    """{"file", "line"} of all lines of the running user code's files that have the pattern."""
    wanted, found = re.compile(pattern), []
    for name in dict.fromkeys(frame.f_code.co_filename for frame in stack.user_frames(2)):
        found += [{"file": name, "line": number} for number, text in enumerate(linecache.getlines(name), 1)
                  if wanted.search(text.split("#", 1)[0])]
    return found


def call_of(value, method):
    """The only line on which the user calls that method of an object, by the names that it has there; or {}."""
    names = []
    for frame in stack.user_frames(2):
        names += [name for name, held in variables.of_frame(frame) if held is value and "/" not in name]
    return only_line(r"\b(%s)\.%s\(" % ("|".join(map(re.escape, dict.fromkeys(names))), method)) if names else {}


def line_of_program():
    """{"file", "line"} of the innermost line that belongs to no installed package; {} where there is none."""
    for code, line, _ in stack.frames(2):
        if "site-packages" not in code.co_filename and "dist-packages" not in code.co_filename \
                and not stack.is_torch(code):
            return {"file": code.co_filename, "line": line}
    return {}


def frame_in(file):
    """Whether a function of a library's file (the end of its path) is on the stack."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith(file):
            return True
        frame = frame.f_back
    return False
