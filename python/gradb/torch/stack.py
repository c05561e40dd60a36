# SPDX-License-Identifier: MIT
"""Where the user's code is: frames from sys._getframe, without reading any source.

A frame is kept as (code object, line); whether a code object belongs to a library is determined once.

Shown by default are the frames of the user's own code, and those of modules of packages other than PyTorch that it
calls: the lines of a model that comes with a package say more than the line that trains it. The rest of the package
(its training loop, its helpers) is left out, as are PyTorch and the standard library."""
import os
import sys
import threading
import types

import torch

from ..frames import INSTALLED, MAX_FRAMES, OWN, STANDARD

_torch = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_torch_roots = tuple(os.path.join(os.path.dirname(os.path.dirname(_torch)), name) + os.sep
                     for name in ("torch", "functorch", "torchgen"))
_dispatch = os.path.join(_torch, "overrides.py")  # between the user and us, without meaning
_calls_modules = torch.nn.Module.register_forward_hook.__code__.co_filename
_USER, _PACKAGE, _LIBRARY, _OURS = range(4)  # a package: installed, but not PyTorch
_MAX_CODES = 65536
_MAX_PLACES = 64
_codes = {}    # id of a code object -> (the code object, held so that the id stays valid, its kind, its number)
_numbers = {}  # (file, code object) of the user's code -> its number; recompiled code keeps its number
_stand_ins = {}  # (code, line) of a frame, or the id of its replacement -> the code that calls in its place
_sites = {}    # (number of code, instruction, ...), innermost first, or (site, micro-batch, None) -> number of the site
_batches = {}  # number of a site of one micro-batch -> the number of that micro-batch
uncaught = None  # the traceback of the exception that ends the program, while the run is stopped there


def _known(frame):
    """(code, kind, number) of the code object of a frame. The number is 0 unless it is the user's."""
    code = frame.f_code
    found = _codes.get(id(code))
    if found is None:
        kind = _OURS if id(code) in _stand_ins else _kind_of(_file_of(frame))
        number = 0
        if kind == _USER and len(_numbers) < _MAX_CODES:
            number = _numbers.setdefault((code.co_filename, code), len(_numbers) + 1)
        if len(_codes) >= _MAX_CODES:
            _codes.clear()
        found = _codes[id(code)] = (code, kind, number)
    return found


def _file_of(frame):
    """The file of a frame; for code made at run time (`<string>`), the file of its module."""
    name = frame.f_code.co_filename
    if name.startswith("<") and not name.startswith("<frozen"):
        name = frame.f_globals.get("__file__") or name
    return name if isinstance(name, str) else ""


def _kind_of(name):
    if name.startswith(OWN) or name == _dispatch:
        return _OURS
    if name.startswith(_torch_roots):
        return _LIBRARY
    if INSTALLED.search(name):  # which may be below the standard library
        return _PACKAGE
    return _LIBRARY if name.startswith(STANDARD) or name.startswith("<frozen") else _USER


def _kind(frame):
    return _known(frame)[1]


def is_ours(frame):
    """Whether a frame is gradb's, or one that PyTorch puts between the program and gradb."""
    return _kind(frame) == _OURS


def is_between(frame):
    """Whether it is one that PyTorch puts between the program and a mode: gradb's, or another one."""
    return frame.f_code.co_filename == _dispatch


def own_files():
    """The path prefixes of those files."""
    return OWN, _dispatch


def call_from(frame, function, args, kwargs):
    """Calls a function as if the innermost frame from `frame` on that is not ours did. For functions in C, whose
    warnings name their caller."""
    while frame is not None and _kind(frame) == _OURS:
        frame = frame.f_back
    if frame is None:
        return function(*args, **kwargs)
    place = frame.f_code, frame.f_lineno
    code = _stand_ins.get(place)
    if code is None:
        if len(_stand_ins) >= _MAX_CODES:
            _stand_ins.clear()
        code = _call.__code__.replace(co_filename=place[0].co_filename, co_name=place[0].co_name,
                                      co_firstlineno=place[1] or place[0].co_firstlineno)
        _stand_ins[place] = code
        _stand_ins[id(code)] = code
    return types.FunctionType(code, frame.f_globals)(function, args, kwargs)


def inside(traceback):
    """A traceback without our frames at its beginning; None when no others remain."""
    while traceback is not None and _kind(traceback.tb_frame) == _OURS:
        traceback = traceback.tb_next
    return traceback


_call = lambda function, args, kwargs: function(*args, **kwargs)  # noqa: E731: its only line must be its first


def site(depth=1, outermost=None):
    """The number of the site: of the frames of the user's code on the stack, so that one line reached in two ways is
    two sites. outermost: a code object; the site is looked for above its last frame. 0 when there is no such frame, or
    there are too many sites."""
    places = []
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        known = _codes.get(id(code)) or _known(frame)
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


def site_in(number, batch):
    """The number of a site in the forward pass of one micro-batch: what that place runs there. 0 for the site 0."""
    found = _sites.get((number, batch, None))
    if found is None:
        if not number or len(_sites) >= _MAX_CODES:
            return number
        found = _sites[(number, batch, None)] = len(_sites) + 1
        _batches[found] = batch
    return found


def batch_of(number):
    """The micro-batch of a site, from 1; 0: it is not of one."""
    return _batches.get(number, 0)


def caller(depth=1):
    """The code of the innermost frame that is not ours."""
    frame = sys._getframe(depth)
    while _kind(frame) == _OURS:
        frame = frame.f_back
    return frame.f_code


def tables():
    """What site() knows: code objects, and sites."""
    return _codes, _sites


def scope_name(code):
    """The scope that a function is: its name; "" for the script itself. None: it is a part of another function."""
    name = code.co_name
    if name[0] != "<":
        return name
    return "" if name == "<module>" else None


def function(depth=1, outermost=None):
    """The scope of the innermost function of the user's code, `train_step`, or of a package that it uses, other than
    PyTorch: `transformers/training_step`. "" when that is the script itself. outermost: a file; only functions that it
    has called count."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if outermost is not None and code.co_filename == outermost:
            break
        kind, name = _kind(frame), scope_name(code)
        if kind in (_USER, _PACKAGE) and name is not None:
            package = str(frame.f_globals.get("__name__")).split(".", 1)[0] if kind == _PACKAGE else ""
            return "/".join(part for part in (package, name) if part)
        frame = frame.f_back
    return ""


def frames(depth=1, thread=None):
    """The stack above the caller, innermost first: a tuple of (code, line, is_library), without our own frames. On
    another thread than the one with this identifier, that one's are below: on a device, backward passes run on a thread
    of PyTorch's, for which the training's waits."""
    found = _frames_from(sys._getframe(depth))
    if thread is not None and thread != threading.get_ident():
        found = (found + _frames_from(sys._current_frames().get(thread)))[:MAX_FRAMES]
    return tuple((code, line, kind != _USER) for code, line, kind in _with_models(found))


def _frames_from(frame):
    found = []
    while frame is not None and len(found) < MAX_FRAMES:
        kind = _kind(frame)
        if kind != _OURS:
            found.append((frame.f_code, frame.f_lineno, kind))
        frame = frame.f_back
    return found


def _with_models(stack):
    """(code, line, kind) of a stack, innermost first; frames inside a package's module that is called from outside
    count as the user's."""
    inside = 0  # number of such frames
    for place, (code, _, kind) in enumerate(stack):
        if kind == _USER:
            break
        if place > 0 and stack[place - 1][2] == _PACKAGE and code.co_filename == _calls_modules:
            inside = place
    return [(code, line, _USER if kind == _PACKAGE and place < inside else kind)
            for place, (code, line, kind) in enumerate(stack)]


def shown(stack):
    """(code, line) of the innermost frame of frames() that is shown, or None."""
    return next(((code, line) for code, line, is_library in stack if not is_library), None)


def spot(place):
    """A (code, line) as FILE:LINE; "" for None."""
    return "" if place is None else "%s:%d" % (os.path.basename(place[0].co_filename), place[1])


def words(place):
    """A (code, line) as " (FILE:LINE in FUNCTION)"; "" for None."""
    return "" if place is None else " (%s in %s)" % (spot(place), place[0].co_name)


def raised_at(traceback):
    """((code, line) of the innermost frame that is shown, or None; the frames of PyTorch's functions inside it)."""
    raised = []
    while traceback is not None:
        if _kind(traceback.tb_frame) != _OURS:
            raised.insert(0, (traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    stack = _with_models([(frame.f_code, line, _kind(frame)) for frame, line in raised])
    kinds = [kind for _, _, kind in stack]
    place = kinds.index(_USER) if _USER in kinds else len(stack)
    called = [frame for frame, _ in raised[:place]
              if is_torch(frame.f_code) and not frame.f_code.co_name.startswith("_")]
    return stack[place][:2] if place < len(stack) else None, called[::-1]


def user_frame(depth=1):
    """The innermost frame of the user's own code, or None."""
    frame = sys._getframe(depth)
    while frame is not None and _kind(frame) != _USER:
        frame = frame.f_back
    return frame


def user_frames(depth=1):
    """The frames of the user's own code, innermost first; at an exception that ends the program, those in which it was
    raised."""
    frame = sys._getframe(depth)
    while frame is not None:
        if _kind(frame) == _USER:
            yield frame
        frame = frame.f_back
    found, place = [], uncaught
    while place is not None:
        found.insert(0, place.tb_frame)
        place = place.tb_next
    yield from (frame for frame in found if _kind(frame) == _USER)


def is_torch(code):
    """Whether a code object is PyTorch's."""
    return code.co_filename.startswith(_torch)


def library_function(names, depth=1):
    """The name of the first function of PyTorch between here and the user's code that is one of `names`; None when none
    of them runs."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if _kind(frame) == _USER:
            return None
        if code.co_name in names and code.co_filename.startswith(_torch):
            return code.co_name
        frame = frame.f_back
    return None


def runs_in(file, depth=1):
    """Whether a function in that file of PyTorch (a path below its directory) is on the stack."""
    path = _torch + file
    frame = sys._getframe(depth)
    while frame is not None:
        if frame.f_code.co_filename == path:
            return True
        frame = frame.f_back
    return False


def live(thread=None):
    """(frame, whether it is a library's) of the Python code that runs, innermost first, without our own frames. thread:
    as of frames()."""
    found = _callers(sys._getframe(1))
    if thread is not None and thread != threading.get_ident():
        found += _callers(sys._current_frames().get(thread))
    return of_frames(found)


def of_frames(stack):
    """The same for frames, innermost first."""
    own = [frame for frame in stack if _kind(frame) != _OURS]
    kinds = _with_models([(frame.f_code, frame.f_lineno, _kind(frame)) for frame in own])
    return [(frame, kind != _USER) for frame, (_, _, kind) in zip(own, kinds)]


def _callers(frame):
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return [frame for frame in found if _kind(frame) != _OURS]
