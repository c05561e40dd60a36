# SPDX-License-Identifier: MIT
"""Which variable of the program keeps an object: upwards through the references that Python's garbage collector knows.
Nothing of the program runs for it, and the search is bounded."""
import collections
import gc
import os
import sys
import types

_MAX_LEVELS = 6
_MAX_REFERRERS = 24  # of one object, that are followed
_MAX_LOOKS = 48      # at all referrers of an object, in one search
_LISTED = (list, tuple, set, frozenset, collections.deque)


def of(thing, frames, ours):
    """"losses[...] (list of 57 items) in main (train.py:12)" for an object; "" when nothing is found. frames: the
    program's running frames, the innermost first; ours(frame): whether a frame is gradb's."""
    names = _names(frames)
    seen = {id(thing), id(names)}
    waiting = collections.deque([(thing, "", "", 0)])
    best, looks = "", 0
    while waiting:
        held, path, what, level = waiting.popleft()
        if level and id(held) in names:
            return _words(names[id(held)], path, what)
        if level >= _MAX_LEVELS or looks >= _MAX_LOOKS:
            continue
        looks += 1
        seen.add(id(waiting))
        referrers = gc.get_referrers(held)
        seen.add(id(referrers))
        followed = 0
        for referrer in referrers:
            if id(referrer) in seen or followed >= _MAX_REFERRERS or _is_own(referrer, ours):
                continue
            seen.add(id(referrer))
            found = _step(referrer, held)
            if found is None:
                continue
            followed += 1
            piece, root, size = found
            if root is not None:
                return _words(root, piece + path, what)
            what_now = what or size
            best = best or size
            waiting.append((referrer, piece + path, what_now, level + 1))
        del referrers
    return "a " + best if best else ""


def _names(frames):
    """id(value) -> (name, place), for the variables of the program's running functions."""
    found = {}
    for frame in frames:
        place = "%s (%s:%d)" % (frame.f_code.co_name, os.path.basename(frame.f_code.co_filename), frame.f_lineno)
        if frame.f_locals is not frame.f_globals:
            for name, value in list(frame.f_locals.items()):
                found.setdefault(id(value), (name, " in " + place))
        for name, value in list(frame.f_globals.items()):
            if not name.startswith("__"):
                found.setdefault(id(value), (name, " in " + os.path.basename(frame.f_code.co_filename)))
    return found


def _words(root, path, what):
    return "%s%s%s%s" % (root[0], path, " (%s)" % what if what else "", root[1])


def _is_own(referrer, ours):
    kind = type(referrer)
    if kind is types.FrameType:
        return True  # its variables are in _names
    return ours(referrer) or kind is types.ModuleType or kind is dict and \
        referrer.get("__name__", "") in ("gradb.holders", "builtins")


def _step(referrer, held):
    """(the piece of the path, (name, place) where the search ends or None, the container in words)."""
    kind = type(referrer)
    if kind in _LISTED:
        return "[...]", None, "%s of %d items" % (kind.__name__, len(referrer))
    if issubclass(kind, dict):
        key = next((key for key, value in list(dict.items(referrer)) if value is held), None)
        if key is None:
            return None
        spec = dict.get(referrer, "__spec__")
        if isinstance(spec, type(sys.__spec__)) or dict.__contains__(referrer, "__builtins__"):
            place = str(dict.get(referrer, "__file__") or dict.get(referrer, "__name__"))
            return "", (str(key), " in " + os.path.basename(place)), ""
        size = "" if _owner(referrer) else "dict of %d items" % dict.__len__(referrer)
        return _piece_of(referrer, key), None, size
    if kind is types.CellType:
        return "", None, ""
    if kind is types.FunctionType:
        for name, cell in zip(referrer.__code__.co_freevars, referrer.__closure__ or ()):
            if cell is held:
                return "", (name, " of the function %s (%s:%d)" % (
                    referrer.__name__, os.path.basename(referrer.__code__.co_filename),
                    referrer.__code__.co_firstlineno)), ""
        return "", None, ""
    table = _attributes_of(referrer)
    if type(table) is dict:
        if table is held:
            return "", None, ""
        key = next((key for key, value in list(table.items()) if value is held), None)
        return (".%s" % key, None, "") if key is not None else ("", None, "")
    return None


def _piece_of(table, key):
    return ".%s" % key if _owner(table) else "[%.40r]" % (key,) if type(key) in (str, int) else "[...]"


def _attributes_of(thing):
    """The dict with the attributes of an object, without running code of its class; None: it has none."""
    try:
        return object.__getattribute__(thing, "__dict__") if not issubclass(type(thing), type) else None
    except (AttributeError, TypeError):
        return None


def _owner(table):
    """Whether the dict has the attributes of an object."""
    return any(_attributes_of(referrer) is table for referrer in gc.get_referrers(table)[:_MAX_REFERRERS]
               if not isinstance(referrer, (dict, list, tuple, types.FrameType)))
