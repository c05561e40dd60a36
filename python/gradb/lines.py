# SPDX-License-Identifier: MIT
"""Stops at lines of the program's source, for the agents of all frameworks: the training thread waits before it
executes one of them, as it does at a node.

Python 3.12 and later report lines of single functions, at no cost elsewhere (sys.monitoring). Older versions trace the
thread (sys.settrace), which slows down all that it runs: 3.11 with the native module only while a frame with a wanted
line runs (frames.h), the others while there is a wanted line. A tracer of the program's own, a debugger or a coverage
tool, is called as before.

What the debugger asks for comes through struct gradb_source, at a stop or at a boundary of a step. A line whose source
is not loaded yet is looked for again when a module is imported."""
import ctypes
import os
import sys
import threading

from . import _hook, _lib, code_lines, native
from .commands import CommandError
from .frames import INSTALLED, MAX_FRAMES, OWN, STANDARD

_monitoring = getattr(sys, "monitoring", None)
_MOST_CALLS = 3000


class _Wish:
    """A line that the debugger wants. places: (file, line, function) of each place; pending: there are none yet."""

    def __init__(self, number, file, line, function):
        self.number = number
        self.file = file
        self.line = line
        self.function = function
        self.places = []
        self.pending = False


class Lines:
    """The lines of one agent, whose before_line is called before each stop, if it is not None. frame: that of the line
    at which the thread waits now, or None. A stop where a frame returns has the number of a wish, too, one without a
    line; then frame is the caller."""

    def __init__(self, agent):
        self.agent = agent
        self.frame = None
        self.callback = _lib.LINES(self._asked)
        self._wishes = []
        self._ending = None  # (frame, number): it is to stop where the frame returns
        self._files = {}   # co_filename -> its path in _places; "" for files without a line
        self._places = {}  # path -> line -> numbers of wishes
        self._thread = threading.get_ident()
        self._watcher = None
        self._is_late = False  # what is wanted has changed while the training thread waited for another one

    # ---- what is asked for ----

    def _asked(self, _ctx, lines, count):
        try:
            self.set([_Wish(line.id, os.fsdecode(line.file), line.line, line.function.decode("utf-8", "replace"))
                      for line in lines[:count]])
        except Exception as error:
            self.agent.fault(error)

    def set(self, wishes):
        """Replaces the lines. On the training thread, or where one runs for it."""
        if not self.agent.runs_aside():
            self._thread = threading.get_ident()
        self._wishes = [wish for wish in wishes if wish.line or wish.function]
        returns = [wish.number for wish in wishes if not wish.line and not wish.function]
        if self._ending is not None and self._ending[1] not in returns:
            self._ending = None
        loaded = _loaded() if self._wishes else {}
        for wish in self._wishes:
            self._look(wish, loaded)
        self._changed()

    def finish(self, number, place):
        """Stops where a frame returns, as the wish of that number: place counts in the stack of the line at which the
        thread waits. CommandError."""
        frame = self.frame
        for _ in range(place + 1):
            while frame is not None and self.agent.exceptions.is_ours(frame):
                frame = frame.f_back
            found, frame = frame, frame.f_back if frame is not None else None
        if found is None or frame is None:
            raise CommandError("the training does not wait in a function that returns")
        self._ending = (found, number)
        self._changed()

    def _look(self, wish, loaded):
        """Looks for a line in files (path -> name of the module), and reports it."""
        wish.places, why = _find(wish, loaded)
        wish.pending = not wish.places and not why
        self._report(wish, why)

    def _report(self, wish, why):
        found = getattr(self.agent.library, "gradb_line_found", None)
        if found is not None and self.agent.handle is not None:
            array = (_lib.Frame * (len(wish.places) or 1))()
            for i, (file, line, function) in enumerate(wish.places):
                array[i] = _lib.Frame(_lib.text(file), line, _lib.text(function), False)
            found(self.agent.handle, wish.number, array, len(wish.places), _lib.text(why))

    def _changed(self):
        """Watches for what is wanted now."""
        self._places, self._files = {}, {}
        for wish in self._wishes:
            for file, line, _ in wish.places:
                self._places.setdefault(file, {}).setdefault(line, []).append(wish.number)
        pending = any(wish.pending for wish in self._wishes)
        _hook.on_import(self.loads if pending else None)
        self._watch()

    def _watch(self):
        self._is_late = self.agent.runs_aside()
        if self._is_late and _monitoring is None:  # tracing belongs to the training thread, which waits
            if self._watcher is not None:
                self._watcher.renew()
            return
        for kind in _KINDS if self._places or self._ending is not None else ():
            if type(self._watcher) is not kind:
                self._leave()
                self._watcher = kind(self)
            if self._watcher.start():
                return
        self._leave()

    def catch_up(self):
        """The training thread continues, after one that ran for it."""
        if self._is_late:
            self._watch()

    def _leave(self):
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None

    def loads(self, path, module):
        """A module is about to run."""
        if self.agent.dead or threading.get_ident() != self._thread or not os.path.isabs(path or ""):
            return
        try:
            pending = [wish for wish in self._wishes if wish.pending]
            for wish in pending:
                places, why = _find(wish, {path: module})
                if places or why:
                    wish.places, wish.pending = places, False
                    self._report(wish, why)
            if not all(wish.pending for wish in pending):
                self._changed()
        except Exception as error:
            self.agent.fault(error)

    def forget(self):
        """Watches no more: the agent is off, or this is a forked child."""
        self._wishes, self._ending = [], None
        self._changed()

    # ---- what runs ----

    def of_code(self, code):
        """line -> numbers of wishes, of the lines at which this code object stops; None: none. Empty: one of its frames
        is to stop where it returns."""
        lines = self._lines_of(code)
        return {} if lines is None and self._ending is not None and self._ending[0].f_code is code else lines

    def _lines_of(self, code):
        path = self._path(code.co_filename)
        if not path:
            return None
        lines, table = self._places[path], code_lines.table(path)
        own = {line: lines[line] for line in lines if table is None or table.has(code, line)}
        return own or None

    def _path(self, name):
        path = self._files.get(name)
        if path is None:
            path = self._files[name] = _in(self._places, name)
        return path

    def has_file(self, name):
        """Whether a co_filename is that of a file with a line that is wanted."""
        return bool(self._path(name))

    def has_function(self, name):
        """Whether a line that is wanted is of a function of that name."""
        return any(name in function.split(".") for wish in self._wishes for _, _, function in wish.places)

    def runs(self, name):
        """Whether a file has code on the stack of the line at which the thread waits."""
        frame = self.frame
        while frame is not None and name not in (frame.f_code.co_filename, _path(frame.f_code.co_filename)):
            frame = frame.f_back
        return frame is not None

    def reached(self, frame):
        """A frame is about to execute a line that was wanted: stops, if it still is."""
        # A generator that waited keeps its trace function, which may know lines of before.
        if self._can_stop():
            self._stop(frame, (self.of_code(frame.f_code) or {}).get(frame.f_lineno))

    def leaves(self, frame):
        """A frame is about to return."""
        if self._ending is None or self._ending[0] is not frame or not self._can_stop():
            return
        number, self._ending = self._ending[1], None
        self._changed()
        self._stop(self._caller(frame), [number])

    def _caller(self, frame):
        """The nearest frame that called it of the program's own code, else its caller."""
        caller = own = frame.f_back
        while own is not None and (self.agent.exceptions.is_ours(own) or _is_library(_path(own.f_code.co_filename))):
            own = own.f_back
        return own or caller

    def awaits_return(self, code=None):
        """Whether a frame, of that code object if one is given, is to stop where it returns."""
        return self._ending is not None and (code is None or code is self._ending[0].f_code)

    def _can_stop(self):
        agent = self.agent
        return not (agent.dead or agent.handle is None or self.frame is not None
                    or threading.get_ident() != self._thread and not agent.runs_aside())

    def _stop(self, frame, numbers):
        agent = self.agent
        if not numbers or frame is None:
            return
        try:
            self.frame = frame
            stack = self._stack(frame)
            if agent.before_line is not None:
                agent.before_line()
            ids = (ctypes.c_uint * len(numbers))(*numbers)
            agent.timing.call_waiting(agent.library.gradb_line_reached, agent.handle, ids, len(numbers), stack,
                                      len(stack))
        except Exception as error:
            agent.fault(error)
        finally:
            self.frame = None

    def _stack(self, frame):
        found = []
        while frame is not None and len(found) < MAX_FRAMES:
            if not self.agent.exceptions.is_ours(frame):
                code = frame.f_code
                file = _path(code.co_filename)
                found.append(_lib.Frame(_lib.text(file), frame.f_lineno or 0, _lib.text(_function(code, file)),
                                        _is_library(file)))
            frame = frame.f_back or self._below(frame)
        return (_lib.Frame * len(found))(*found)

    def _below(self, frame):
        """The frame of the training thread that waits for the thread whose outermost one this is; None: it is its own.
        """
        inner = sys._current_frames().get(self._thread) if threading.get_ident() != self._thread else None
        outer = inner
        while outer is not None and outer is not frame:
            outer = outer.f_back
        return inner if outer is None else None


# ---- finding --------------------------------------------------------------------------------------


def _path(name):
    """The path of a code object's file."""
    return name if os.path.isabs(name) or name.startswith("<") else os.path.abspath(name)


def _in(paths, name):
    """The one of `paths` that a co_filename means, or ""."""
    path = _path(name)
    if path in paths:
        return path
    base = os.path.basename(path)
    return next((other for other in paths if os.path.basename(other) == base
                 and os.path.realpath(other) == os.path.realpath(path)), "")


def _function(code, file):
    name = getattr(code, "co_qualname", None)
    if name is not None:
        return name.replace("<locals>.", "")
    table = code_lines.table(file) if not _is_library(file) else None
    return table.name_of(code) if table is not None else code.co_name


def _is_library(path):
    return path.startswith(("<", OWN) + STANDARD) or INSTALLED.search(path) is not None


def _loaded():
    """path -> name, of the modules that are loaded, and of the files whose code runs on this thread; those first."""
    found = {}
    frame = sys._getframe(1)
    while frame is not None:
        path = _path(frame.f_code.co_filename)
        if not path.startswith("<"):
            found.setdefault(path, frame.f_globals.get("__name__") or "")
        frame = frame.f_back
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(path, str) and path.endswith((".py", ".pyw")):
            found.setdefault(_path(path), name)
    return {path: name for path, name in found.items() if not path.startswith(OWN)}


def _matches(path, wanted):
    wanted = os.path.normpath(wanted)
    if os.path.isabs(wanted):
        return path == wanted or os.path.realpath(path) == os.path.realpath(wanted)
    return path.endswith(os.sep + wanted)


def _find(wish, loaded):
    """(places of a wish in those files, why there are none although its file is loaded)."""
    if wish.line:
        return _find_line(wish, _preferred([path for path in loaded if _matches(path, wish.file)]))
    if wish.file:
        paths = [path for path in loaded if _matches(path, wish.file)]
    else:
        module = wish.function.rpartition(".")[0]
        paths = [path for path, name in loaded.items() if not _is_library(path)
                 or (module and (name == module or module.startswith(name + ".")))]
    found = []
    for path in _preferred(paths):
        table = code_lines.table(path)
        if table is None:
            continue
        stem, name = os.path.splitext(os.path.basename(path))[0], loaded[path]
        names = table.functions(wish.function, stem) or table.functions(wish.function, name)
        found += [(path, line, function) for line, function in names]
    if not found and wish.file and paths:
        return [], "%s has no function %s" % (wish.file, wish.function)
    return found, ""


def _preferred(paths):
    """Those of the program's own, or all where there are none."""
    return [path for path in paths if not _is_library(path)] or paths


def _find_line(wish, paths):
    found, why = [], ""
    for path in paths:
        table = code_lines.table(path)
        place = table.at(wish.line) if table is not None else None
        if place is not None:
            found.append((path,) + place)
        elif table is None:
            why = why or "%s cannot be read as Python" % path
        else:
            why = why or "%s has no code at or after line %d" % (wish.file, wish.line)
    return found, "" if found else why


def is_main_script(files):
    """Whether one of the files is the script that this process runs, or lies in its folder, or is ":" with a function
    of the script. Launchers and workers have other scripts."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if not isinstance(script, str) or not script.endswith(".py"):
        return False
    script = os.path.abspath(script)
    functions = [file[1:] for file in files if file.startswith(":")]
    table = code_lines.table(script) if functions else None
    stem = os.path.splitext(os.path.basename(script))[0]
    if table is not None and any(table.functions(function, stem) for function in functions):
        return True
    folder = os.path.dirname(script)
    return any(file and file[0] != ":" and (_matches(script, file) or os.path.isfile(os.path.join(folder, file)))
               for file in files)


def register(table):
    """Adds the command that `info line` of the debugger is built on."""
    table.register("line-places", _places, "where a source line is (the command info line)", "FILE:LINE")
    table.register("finish-frame", _finish, None)


def _places(_agent, args, _node):
    file, _, rest = args.strip().rpartition(":")
    number = int(rest) if rest.isdigit() and len(rest) < 10 else 0
    places, why = _find(_Wish(0, file, number, "" if number else rest), _loaded())
    return {"places": [{"file": path, "line": line, "function": function} for path, line, function in places],
            "why": why}


def _finish(agent, args, _node):
    number, place = args.split()
    agent.lines.finish(int(number), int(place))
    return {}


# ---- watching -------------------------------------------------------------------------------------


class _Monitor:
    """sys.monitoring: LINE events of single code objects."""

    def __init__(self, lines):
        self._lines = lines
        self._tool = None
        self._codes = {}  # id -> (code, its lines)

    def start(self):
        """Watches for the lines that are wanted now. True: it can."""
        events = _monitoring.events
        if self._tool is None:
            self._tool = next((tool for tool in (4, 3, 0, 1, 2, 5) if _monitoring.get_tool(tool) is None), None)
            if self._tool is None:
                raise RuntimeError("all tools of sys.monitoring are in use: gradb cannot stop at lines")
            _monitoring.use_tool_id(self._tool, "gradb")
            _monitoring.register_callback(self._tool, events.PY_START, self._started)
            _monitoring.register_callback(self._tool, events.PY_RESUME, self._started)
            _monitoring.register_callback(self._tool, events.LINE, self._line)
            for event in (events.PY_RETURN, events.PY_YIELD, events.PY_UNWIND):
                _monitoring.register_callback(self._tool, event, self._returns)
        self._leave()
        frame = sys._getframe(1)
        while frame is not None:
            self._started(frame.f_code, 0)
            frame = frame.f_back
        unwinds = events.PY_UNWIND if self._lines.awaits_return() else 0  # cannot be watched for one code object
        _monitoring.set_events(self._tool, events.PY_START | events.PY_RESUME | unwinds)
        _monitoring.restart_events()
        return True

    def _leave(self):
        for code, _ in self._codes.values():
            _monitoring.set_local_events(self._tool, code, 0)
        self._codes = {}

    def stop(self):
        """Watches no more."""
        if self._tool is not None:
            self._leave()
            _monitoring.set_events(self._tool, 0)
            events = _monitoring.events
            for event in (events.PY_START, events.PY_RESUME, events.LINE, events.PY_RETURN, events.PY_YIELD,
                          events.PY_UNWIND):
                _monitoring.register_callback(self._tool, event, None)
            _monitoring.free_tool_id(self._tool)
            self._tool = None

    def _started(self, code, _offset):
        if id(code) not in self._codes:
            lines = self._lines.of_code(code)
            if lines is not None:
                self._codes[id(code)] = (code, lines)
                events = _monitoring.events
                returns = events.PY_RETURN | events.PY_YIELD if self._lines.awaits_return(code) else 0
                _monitoring.set_local_events(self._tool, code, returns | (events.LINE if lines else 0))
        return _monitoring.DISABLE

    def _returns(self, _code, _offset, _value):
        self._lines.leaves(sys._getframe(1))

    def _line(self, code, line):
        known = self._codes.get(id(code))
        if known is None or line not in known[1]:
            return _monitoring.DISABLE
        self._lines.reached(sys._getframe(1))
        return None


class _Local:
    """The trace function of a frame with lines that are wanted. left: called when it returns, or None."""
    __slots__ = ("lines", "theirs", "owner", "left")

    def __init__(self, lines, theirs, owner, left=None):
        self.lines = lines
        self.theirs = theirs
        self.owner = owner
        self.left = left

    def __call__(self, frame, event, arg):
        if self.theirs is not None:
            self.theirs = self.theirs(frame, event, arg)
        if event == "line":
            if frame.f_lineno in self.lines:
                self.owner.reached(frame)
        elif event == "return":
            self.owner.leaves(frame)
            if self.left is not None:
                self.left(frame)
        if frame.f_trace is not self and isinstance(frame.f_trace, _Local):
            return None  # it was replaced meanwhile
        return self if self.lines or self.theirs is not None else None


class _Tracer:
    """sys.settrace, which belongs to a thread."""

    def __init__(self, lines):
        self._lines = lines
        self._ours = None    # the function that is set
        self._theirs = None  # the one that it replaced
        self._known = {}     # co_filename -> whether it has a line
        self._codes = {}     # id -> (code, its lines)

    def start(self):
        """Watches for the lines that are wanted now. False: it cannot."""
        before = sys.gettrace()
        if self._ours is None or before is not self._ours:
            self._theirs = before
        self._ours = self._make(self._theirs)
        sys.settrace(self._ours)
        self._mark(self._lines.of_code)
        return True

    def _mark(self, of_code, left=None):
        """Sets the trace functions of the frames that run already, or takes them away. Returns whether there are any
        frames with wanted lines."""
        frame, found = sys._getframe(1), False
        while frame is not None:
            lines, local = of_code(frame.f_code), frame.f_trace
            found = found or lines is not None
            if isinstance(local, _Local):  # it may be running now: then it is set again when it returns
                local.lines, local.left = lines or {}, left
                if lines is None:
                    frame.f_trace = local.theirs
            elif lines is not None:
                frame.f_trace = _Local(lines, local, self._lines, left)
            frame = frame.f_back
        return found

    def stop(self):
        """Watches no more."""
        self._mark(lambda code: None)
        if sys.gettrace() is self._ours:
            sys.settrace(self._theirs)
        self._ours = None

    def renew(self):
        """What is wanted has changed, and it cannot start again now."""
        self._known.clear()
        self._codes.clear()

    def _make(self, theirs):
        known, codes, lines = {}, {}, self._lines
        self._known, self._codes = known, codes

        def trace(frame, event, arg):
            code = frame.f_code
            if known.get(code.co_filename) is False:
                return theirs(frame, event, arg) if theirs is not None else None
            own = theirs(frame, event, arg) if theirs is not None else None
            found = codes.get(id(code))
            if found is None:
                found = codes[id(code)] = (code, lines.of_code(code))
                known[code.co_filename] = lines.has_file(code.co_filename)
            return _Local(found[1], own, lines) if found[1] is not None else own
        return trace


class _Frames(_Tracer):
    """sys.settrace, which the native module calls only for frames with a line that is wanted."""

    def start(self):
        module = native.module
        if module is None or not hasattr(module, "frames_begin"):
            return False
        module.frames_trace(False)
        # Python 3.11.2 does not announce the call of a[i]. Each call takes some of the C stack, which is too small for
        # a very deep recursion. A tracer of the program's own slows everything down already.
        if (self._lines.has_function("__getitem__") or sys.getrecursionlimit() > _MOST_CALLS
                or sys.gettrace() is not None):
            return False
        trace = self._make(None)
        tracers = (trace.__code__, _Local.__call__.__code__)

        def decide(code):
            if code in tracers:
                return 2
            return int(code is not None and self._lines.of_code(code) is not None)
        if not module.frames_begin(decide, trace, self._make, self._lines.agent.runs_aside):
            return False
        module.frames_trace(self._mark(self._lines.of_code, self._left))
        return True

    def _left(self, frame):
        """One of the frames returns that ran when the lines were set: are there more?"""
        frame = frame.f_back
        while frame is not None and self._lines.of_code(frame.f_code) is None:
            frame = frame.f_back
        native.module.frames_trace(frame is not None)

    def stop(self):
        if native.module is not None and hasattr(native.module, "frames_end"):
            native.module.frames_end()
        self._mark(lambda code: None)


_KINDS = (_Monitor,) if _monitoring is not None else (_Frames, _Tracer)
