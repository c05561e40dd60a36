# SPDX-License-Identifier: MIT
"""Python code that the user types at the debugger, run in a frame of the stopped program: `print EXPR`, `call`,
`interact`, `info locals`.

The code runs on the training thread, which is stopped inside the agent. What depends on the framework is asked of its
`Program` (torch/program.py, mindspore/program.py): the frames, tensors, random generators, and how to hide what the
code does from the agent's own hooks.

It runs only what the debugger's user typed, never what was read from a file, and nothing at all when the program was
started with GRADB_EVALUATE=off, when the debugger is not on this host, or when the debugger has said so."""
import ast
import base64
import contextlib
import ctypes
import io
import json
import linecache
import os
import sys
import _thread
import threading

from . import _lib
from .commands import CommandError

_MAX_TEXT = 16 << 10    # characters of a result
_MAX_OUTPUT = 64 << 10  # characters that the code prints
_MAX_SHORT = 120        # characters of a value in a list of variables
_MAX_NAMES = 500        # variables in that list
_PIECE = 384 << 10      # bytes of a tensor in one reply
_MOST_COPIED = 256 << 20  # bytes of a tensor that is copied; of a larger one the statistics are shown
_MOST_LISTED = 1 << 20    # the same for a variable that is only listed
_OPTIMIZED = 1            # CO_OPTIMIZED: set for functions, and not for modules and classes
_OURS = 3                 # references to a frame's dict of variables: the frame's, the local variable's, the call's
_FILE = "<gradb>"
_PATIENCE = 0.05        # seconds after which a hanging expression can be interrupted
_READING = ("print", "dprintf")  # modes in which code is an expression and assigns nothing
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_NAMES = {_lib.BOOL: "bool", _lib.INT8: "int8", _lib.INT16: "int16", _lib.INT32: "int32", _lib.INT64: "int64",
          _lib.UINT8: "uint8", _lib.UINT16: "uint16", _lib.UINT32: "uint32", _lib.UINT64: "uint64",
          _lib.FLOAT16: "float16", _lib.FLOAT32: "float32", _lib.FLOAT64: "float64", _lib.BFLOAT16: "bfloat16",
          _lib.COMPLEX64: "complex64", _lib.COMPLEX128: "complex128"}


class Values:
    """A tensor as it is shown. dtype: one of _lib's; read(offset, count): its bytes in C order; None: it is too large
    to be copied, and statistics is what `print` shows."""

    def __init__(self, dtype, shape, size, read, statistics=None):
        self.dtype, self.shape, self.size, self.read, self.statistics = dtype, tuple(shape), size, read, statistics

    def told(self):
        """As JSON."""
        reply = {"dtype": _NAMES[self.dtype], "shape": list(self.shape), "bytes": self.size}
        if self.read is None:
            return dict(reply, statistics=self.statistics)
        return dict(reply, data=self.piece(0))

    def piece(self, offset):
        """The bytes from there on that fit into one reply."""
        return base64.b64encode(self.read(offset, min(_PIECE, self.size - offset))).decode()


class _Output(io.TextIOBase):
    """What one thread prints goes here, bounded; other threads print as before."""

    def __init__(self, before):
        super().__init__()
        self._before = before
        self._thread = threading.get_ident()
        self._parts, self._room = [], _MAX_OUTPUT
        self.dropped = 0

    def writable(self):
        return True

    def write(self, text):
        if threading.get_ident() != self._thread:
            return self._before.write(text)
        kept = text[:self._room]
        self._room -= len(kept)
        self.dropped += len(text) - len(kept)
        if kept:
            self._parts.append(kept)
        return len(text)

    def flush(self):
        if threading.get_ident() != self._thread and self._before is not None:
            self._before.flush()

    def text(self):
        """What was printed."""
        return "".join(self._parts)


class _Interrupter:
    """Raises KeyboardInterrupt in the thread that made it when the debugger no longer waits for its answer. Without
    signals, which the program may have handlers for."""

    def __init__(self, agent):
        self._given_up, self._handle = getattr(agent.library, "gradb_given_up", None), agent.handle
        self._target = ctypes.c_ulong(threading.get_ident())
        self._lock, self._over, self._posted = threading.Lock(), threading.Event(), False

    def start(self):
        """From now on."""
        if self._given_up is not None:
            _thread.start_new_thread(self._watch, ())  # threading.Thread waits until it runs: half of an evaluation

    def _watch(self):
        while not self._over.wait(_PATIENCE):
            with self._lock:
                if not self._over.is_set() and self._given_up(self._handle):
                    self._posted = True
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(self._target, ctypes.py_object(KeyboardInterrupt))
                    return

    def end(self):
        """None comes after this. One that was posted may be raised in here."""
        with self._lock:
            self._over.set()

    def forget(self):
        """Takes back one that was posted and has not been raised."""
        if self._posted:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(self._target, None)


class Evaluator:
    """Evaluates for one agent. program: see the module."""

    def __init__(self, agent, program):
        self.agent, self.program = agent, program
        self.failed = None   # the traceback of the exception that ends the program, while it is stopped there
        self.refused = ""    # why nothing is evaluated; "": it is
        self._values = None  # of the last tensor, until the next one
        self._extra = {}     # names that the user's code has made at this stop: (code object) -> name -> value
        self._last = None    # the reply to the last evaluation, which the debugger may not have waited for

    # ---- may it ----

    def check(self):
        """CommandError: nothing may be evaluated."""
        if os.environ.get("GRADB_EVALUATE", "") in ("off", "0"):
            raise CommandError("the program was started with GRADB_EVALUATE=off: it evaluates nothing")
        address = os.environ.get("GRADB_ADDRESS", "")
        if not is_local(address):
            raise CommandError("the program evaluates nothing for a debugger at %.60s, which is not a local address"
                               % address)
        if self.refused:
            raise CommandError(self.refused)

    def refuse(self, args):
        """The command "evaluate-refuse": on, off."""
        self.refused = "the debugger has said `set evaluate-code off`" if args.strip() == "on" else ""
        return {"refused": bool(self.refused)}

    # ---- the commands ----

    def evaluate(self, args):
        """The command "evaluate": {"mode": "print" | "dprintf" | "call" | "interact", "code": TEXT, "frame": of _frame}
        Replies {"kind": "text" | "tensor" | "none" | "more" | "error", ...}; "more": the code is incomplete. "dprintf"
        is "print" often and fast: writes that the framework does not count are not looked for."""
        self.check()
        request = json.loads(args)
        frame, at = self._frame(request.get("frame"))
        try:
            self._last = reply = dict(self._run(request["mode"], request["code"], frame), frame=at)
        finally:
            _forget_variables(frame)
        return reply

    def last(self, _args):
        """The command "evaluate-last": the reply to the last evaluation, for a debugger that did not wait for it."""
        last = self._last
        if last is None:
            raise CommandError("nothing was evaluated")
        return last

    def piece(self, args):
        """The command "evaluate-bytes OFFSET": more of the last tensor."""
        offset = int(args)
        if self._values is None or self._values.read is None or not 0 <= offset < max(1, self._values.size):
            raise CommandError("the value is gone")
        return {"data": self._values.piece(offset)}

    def stack(self, _args):
        """The command "stack": the frames of the training thread, innermost first."""
        return {"frames": [dict(told(frame, number), library=library)
                           for number, (frame, library) in enumerate(self._frames())]}

    def variables(self, args):
        """The command "variables": the local variables or the arguments of a frame; with {"name": NAME} only that one,
        as the reply of "evaluate", with the elements of a tensor of at most _MOST_LISTED bytes. Runs none of the
        program's code: of objects of unknown classes it names the class alone."""
        request = json.loads(args)
        frame, at = self._frame(request.get("frame"))
        try:
            return dict(self._listed(frame, request), frame=at)
        finally:
            _forget_variables(frame)

    def _listed(self, frame, request):
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        held = frame.f_locals
        if "name" in request:
            return self._variable(held, request["name"], spot(frame))
        if request.get("arguments"):
            names = [name for name in code.co_varnames[:count] if name in held]
        else:
            names = [name for name in held if not (name.startswith("__") and name.endswith("__"))]
        listed = [dict(self._about(held[name]), name=name) for name in names[:_MAX_NAMES]]
        return {"variables": listed, "more": max(0, len(names) - _MAX_NAMES),
                "module": code.co_name == "<module>"}

    def _about(self, value):
        text = self.program.summary(value)
        if text is not None:
            return {"type": type(value).__name__, "value": text, "tensor": self.program.is_tensor(value)}
        return {"type": type(value).__name__, "value": short(value)}

    def _variable(self, held, name, where):
        if name not in held:
            raise CommandError("%s has no variable %.60s" % (where, name))
        value = held[name]
        if self.program.is_tensor(value):
            return self._told(value, _MOST_LISTED)
        about = self._about(value)
        return {"kind": "text", "text": about["value"], "type": about["type"]}

    # ---- frames ----

    def _frames(self):
        """(frame, whether it is a library's), innermost first: of an exception that nobody caught, those in which it
        was raised; at a line, those of the line, where an inner one may be about to return."""
        found, place, frame = [], self.failed, self.program.agent.lines.frame
        if place is None and frame is None:
            return self.program.frames()
        while place is None and frame is not None:
            found.append(frame)
            frame = frame.f_back
        while place is not None:
            found.insert(0, place.tb_frame)
            place = place.tb_next
        return self.program.own_frames(found)

    def _frame(self, wanted):
        """(frame, as JSON). wanted: None for the user's innermost one; {"number": N} among those of `stack`; or
        {"file", "line", "function", "nth"} of a frame that the debugger shows."""
        frames = self._frames()
        if not frames:
            raise CommandError("the training thread runs no Python code here")
        if wanted is None:
            number = next((i for i, (_, library) in enumerate(frames) if not library), 0)
        elif "number" in wanted:
            number = wanted["number"]
            if not isinstance(number, int) or not 0 <= number < len(frames):
                raise CommandError("there is no frame %s: the training thread has frames 0 to %d"
                                   % (number, len(frames) - 1))
        else:
            number = self._matching(frames, wanted)
        return frames[number][0], told(frames[number][0], number)

    @staticmethod
    def _matching(frames, wanted):
        name = wanted["function"].rpartition(".")[2]  # the stack of a line has "Net.forward"
        same = [i for i, (frame, _) in enumerate(frames)
                if (frame.f_code.co_filename, frame.f_code.co_name) == (wanted["file"], name)]
        exact = [i for i in same if frames[i][0].f_lineno == wanted["line"]]
        found = exact or same
        if not found:
            own = next((frame for frame, library in frames if not library), frames[0][0])
            raise CommandError("%s (%s:%d) has returned: the program is now in %s" % (
                wanted["function"], os.path.basename(wanted["file"]), wanted["line"], spot(own)))
        return found[min(wanted.get("nth", 0), len(found) - 1)]

    # ---- running ----

    def _run(self, mode, code, frame):
        try:
            tree, kind = _parse(code, mode)
        except _Incomplete:
            return {"kind": "more"}
        except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError) as error:
            return {"kind": "error", "text": _in_a_line(error)}
        interrupter = _Interrupter(self.agent)
        try:
            try:
                interrupter.start()
                reply = self._run_guarded(mode, tree, kind, frame)
            finally:
                interrupter.end()
        except KeyboardInterrupt:
            reply = {"kind": "error", "text": "KeyboardInterrupt", "interrupted": True}
        interrupter.forget()
        return reply

    def _run_guarded(self, mode, tree, kind, frame):
        reads = mode in _READING
        space = _Space(frame, self._extra.setdefault(frame.f_code, {}), reads)
        before = self.program.versions(frame, mode != "dprintf")
        out, error = _Output(sys.stdout), _Output(sys.stderr)
        reply, value = {"kind": "none"}, None
        try:
            with self.program.moment(reads):
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
                    if kind == "eval":
                        value = eval(compile(tree, _FILE, "eval"), space.names)  # what the user typed
                        reply = self._told(value)
                    else:
                        exec(compile(tree, _FILE, "exec"), space.names)
        except BaseException as failed:  # SystemExit too: the user's code must not end the training unasked
            reply = _error(failed)
        notes = space.write_back(tree) if not reads else []
        if kind == "eval" and not reads and reply["kind"] != "error":
            space.names["_"] = self._extra[frame.f_code]["_"] = value
        text = out.text() + error.text()
        if text:
            reply["output"] = text
        if out.dropped + error.dropped:
            reply["dropped"] = out.dropped + error.dropped
        changed = self.program.changed(before)
        if changed:
            reply["changed"] = changed
        return dict(reply, notes=notes) if notes else reply

    def _told(self, value, most=_MOST_COPIED):
        if value is None:
            return {"kind": "none"}
        if self.program.is_tensor(value):
            try:
                self._values = found = self.program.values(value, most)
            except Exception as error:  # of many kinds: it has no elements that can be read
                return {"kind": "text", "text": _cut(_text_of(value))[0], "note": str(error).split("\n", 1)[0]}
            return dict(found.told(), kind="tensor", about=self.program.about(value))
        text, length = _cut(_text_of(value))
        reply = {"kind": "text", "text": text, "type": type(value).__name__}
        if type(value) is str:
            reply["string"] = _cut(value)[0]
        return reply if length == len(text) else dict(reply, length=length)

    def resumed(self):
        """The training continues: names made at this stop are gone."""
        self._extra, self._values, self._last = {}, None, None


class _Space:
    """The names of a frame for code that is not compiled into it: globals, then what the user has made, then locals.
    One dict, so that comprehensions and functions see the locals too."""

    def __init__(self, frame, extra, reads):
        self._frame, self._extra = frame, extra
        self._is_module = not reads and frame.f_locals is frame.f_globals
        self.names = frame.f_globals if self._is_module else dict(frame.f_globals)
        if not self._is_module:
            self.names.update(extra)
            self.names.update(frame.f_locals)
        self._before = dict(self.names)

    def write_back(self, tree):
        """Puts what was assigned into the program's frame. Returns notes about what could not be."""
        if self._is_module:
            return []
        code, frame, notes = self._frame.f_code, self._frame, []
        own = set(code.co_varnames) | set(code.co_cellvars) | set(code.co_freevars)
        declared = {name for item in ast.walk(tree) if isinstance(item, ast.Global) for name in item.names}
        missing = object()
        held, put = frame.f_locals, False
        for name, value in list(self.names.items()):
            if name == "__builtins__" or self._before.get(name, missing) is value:
                continue
            if name in declared:
                frame.f_globals[name] = value
            elif name in own:
                held[name] = value
                put = True
            else:
                self._extra[name] = value
        for name in set(self._before) - set(self.names):
            if name in self._extra and name not in own:
                del self._extra[name]
            else:
                notes.append("%s stays: a variable of a running function cannot be deleted from outside" % name)
        if put and sys.version_info < (3, 13):  # from 3.13 on, f_locals writes through
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
        return notes


# ---- code ----

class _Incomplete(Exception):
    """More lines belong to the code."""


def _parse(code, mode):
    """(tree, "eval" or "exec"). SyntaxError; _Incomplete, in `interact` only."""
    if mode == "interact" and _is_incomplete(code):
        raise _Incomplete
    try:
        return ast.parse(code.strip(), _FILE, "eval"), "eval"
    except SyntaxError:
        if mode in _READING:
            raise
    return ast.parse(code if "\n" in code else code.strip(), _FILE, "exec"), "exec"


def _is_incomplete(code):
    """Whether a line is to follow, as at Python's own prompt: a statement with a body ends with an empty line."""
    import codeop
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return codeop.CommandCompiler()(code, _FILE, "single") is None


def _in_a_line(error):
    """NAME: MESSAGE"""
    text = error.msg if isinstance(error, SyntaxError) and error.msg else None
    if text is None:
        try:
            text = str(error)
        except BaseException:  # of the program's own
            text = "(its message cannot be made)"
    text = " ".join(text.split())
    name = type(error).__name__
    return _cut("%s: %s" % (name, text) if text else name, 2000)[0]


def _error(failed):
    """What the code raised, with the line of the program in which it did."""
    reply = {"kind": "error", "text": _in_a_line(failed)}
    place, inner = failed.__traceback__, None
    while place is not None:
        if place.tb_frame.f_code.co_filename not in (_FILE, __file__):
            inner = place
        place = place.tb_next
    if isinstance(failed, KeyboardInterrupt):
        reply["interrupted"] = True
    if inner is not None:
        reply["where"] = "%s:%d in %s" % (os.path.basename(inner.tb_frame.f_code.co_filename), inner.tb_lineno,
                                          inner.tb_frame.f_code.co_name)
    return reply


def _text_of(value):
    """repr(value). It may run for long and raise."""
    try:
        return repr(value)
    except Exception as error:  # of the program's own
        return "<%s: its repr() raises %s>" % (type(value).__name__, type(error).__name__)


def _cut(text, most=_MAX_TEXT):
    """(the first characters, how many there were)"""
    return text[:most], len(text)


def short(value, depth=0):
    """A value in a few words, without running code of the program's."""
    kind = type(value)
    if kind in _PLAIN:
        if kind in (str, bytes):
            return repr(value if len(value) <= _MAX_SHORT else value[:_MAX_SHORT - 3]) + (
                "..." if len(value) > _MAX_SHORT else "")
        if kind is int and value.bit_length() > 400:
            return "an integer of %d bits" % value.bit_length()
        return repr(value)
    if kind in (list, tuple, set, frozenset, dict):
        name = "%d element%s" % (len(value), "" if len(value) == 1 else "s")
        if depth >= 2 or not value:
            return repr(kind()) if not value else "%s of %s" % (kind.__name__, name)
        items = [(short(key, depth + 1) + ": " + short(item, depth + 1))
                 for key, item in list(value.items())[:6]] if kind is dict else \
                [short(item, depth + 1) for item in list(value)[:6]]
        marks = {list: "[]", tuple: "()"}.get(kind, "{}")
        text = marks[0] + ", ".join(items) + (", ..." if len(value) > 6 else "") + marks[1]
        return text if len(text) <= _MAX_SHORT else "%s of %s" % (kind.__name__, name)
    if isinstance(value, type):
        return "class %s" % value.__name__
    name = getattr(value, "__name__", None) if kind.__module__ == "builtins" else None
    if isinstance(name, str):
        return "%s %s" % (kind.__name__, name)
    return "<%s.%s>" % (kind.__module__, kind.__qualname__)


# ---- places ----

def told(frame, number):
    """A frame as JSON."""
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno or 0, frame.f_globals).strip()
    return {"number": number, "file": code.co_filename, "line": frame.f_lineno or 0, "function": code.co_name,
            "code": line[:200]}


def _forget_variables(frame):
    """Before 3.13, f_locals is a dict that the frame keeps: after a look at it, it would hold tensors of this step
    until the function returns. It is emptied if nobody else has it, and if no tracing function is set: after one,
    Python copies the dict back."""
    if sys.version_info >= (3, 13) or frame.f_trace is not None or not frame.f_code.co_flags & _OPTIMIZED:
        return
    held = frame.f_locals
    if sys.getrefcount(held) <= _OURS:
        held.clear()


def spot(frame):
    """FUNCTION (FILE:LINE)"""
    return "%s (%s:%d)" % (frame.f_code.co_name, os.path.basename(frame.f_code.co_filename), frame.f_lineno or 0)


def is_local(address):
    """Whether an address of a debugger is on this host: "", unix:PATH, or a loopback address."""
    if not address or address.startswith("unix:"):
        return True
    host = address.rsplit(":", 1)[0].strip("[]")
    return host in ("", "localhost", "::1") or host.startswith("127.")


def register(table):
    """Adds the commands to the table of a framework. They are not listed: the debugger's own commands send them."""
    def add(name, method):
        table.register(name, lambda agent, args, _node: method(agent.evaluator, args), None)
    add("evaluate", Evaluator.evaluate)
    add("evaluate-last", Evaluator.last)
    add("evaluate-bytes", Evaluator.piece)
    add("evaluate-refuse", Evaluator.refuse)
    add("variables", Evaluator.variables)
    add("stack", Evaluator.stack)
