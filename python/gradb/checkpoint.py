# SPDX-License-Identifier: MIT
"""Checkpoints that the debugger asks for, for the agents of all frameworks: by the script's own function, or a file
with the state of the training.

A framework's state(agent) has `endings`, the suffixes that its files may have, the usual one first; write(path), which
writes a whole file; and record(), what is in it. The debugger asks with the command "checkpoint":

    checkpoint                   by the script's own function, or SCRIPT.stepN.ENDING
    checkpoint FILE              the lines below it, each optional:
        of=NAME                  FILE as the user wrote it, before the numbers in it were filled in
        keep=K                   delete all but the last K files of that name that this process wrote
        force                    replace a file that this process did not write"""
import contextlib
import os
import sys

from . import _lib

_MAX_NAMES = 1000  # tried for a new file
_functions = []    # the script's; the last one counts


def on_checkpoint(function):
    """Registers a function of the script: function(step) is called at the end of a step and returns what to show to the
    user, a path. Returns the function, so it works as a decorator."""
    _functions.append(function)
    return function


def save(agent, state, programs_moment=contextlib.nullcontext):
    """Saves a checkpoint at the end of a step, and reports by a log line and an event where it is or why it failed. No
    exception of the script's function reaches the training. programs_moment: what that function runs in."""
    agent.happenings.quiet = True
    try:
        path = _by_script(agent, programs_moment) or _default(agent, state(agent))
        text = str(path)
    except Exception as error:  # the training continues without a checkpoint
        text = "not saved: %s: %s" % (type(error).__name__, error)
    finally:
        agent.happenings.quiet = False
    agent.library.gradb_log(agent.handle, _lib.text("gradb: checkpoint of step %d: %s" % (
        agent.steps.computed(), text)))
    agent.library.gradb_event(agent.handle, b"checkpoint", _lib.text(text), 0)


def command(agent, args, state, programs_moment=contextlib.nullcontext):
    """Carries out the command: saves a checkpoint while the training is stopped between two steps. Returns the reply:
    what was written, or "error". programs_moment: as for save."""
    name, *options = args.split("\n")
    reply = {"step": agent.steps.computed()}
    agent.happenings.quiet = True
    try:
        if name:
            given = dict(option.partition("=")[::2] for option in options)
            reply.update(_named(agent, state(agent), name, given))
            return reply
        path = _by_script(agent, programs_moment)
        if path:
            reply.update(path=str(path), by="the script's own function")
        else:
            held = state(agent)
            path = _default(agent, held)
            reply.update(_written.add(path), **held.record())
    except Exception as error:  # the training continues without a checkpoint
        reply["error"] = "%s: %s" % (type(error).__name__, str(error).split("\n", 1)[0])
        if isinstance(error, (OSError, Refused)):
            reply["error"] = _reason(error)
    finally:
        agent.happenings.quiet = False
    return reply


class Refused(Exception):
    """Why a checkpoint is not written: one line, shown to the user."""


def rank_part(rank, count):
    """What names the rank of a process in a file, in a job of several."""
    return ".rank%d" % rank if count > 1 else ""


def _reason(error):
    if isinstance(error, OSError) and error.strerror:
        return "%s: %s" % (error.filename, error.strerror) if error.filename else error.strerror
    return str(error)


def _by_script(agent, programs_moment):
    """The path that the script's own function has returned; "": it has none."""
    if not _functions:
        return ""
    with programs_moment():
        return _functions[-1](agent.steps.computed()) or "by the script's own function"


# ---- files ----

class _Written:
    """The files that this process has written on request."""

    def __init__(self):
        self._marks = {}  # path -> what identifies the file
        self._of = {}     # name as the user wrote it -> its paths, oldest first

    def add(self, path):
        """A file was written. Returns its record."""
        self._marks[path] = _mark(path)
        return {"path": path, "bytes": os.path.getsize(path)}

    def is_ours(self, path):
        """Whether the file is still the one that was written."""
        return path in self._marks and self._marks[path] == _mark(path)

    def keep(self, name, path, count):
        """Deletes the older files of a name, except the last `count` with `path` as the newest. count 0: keeps all.
        Returns the paths of those that were deleted."""
        held = [one for one in self._of.get(name, ()) if one != path] + [path]
        deleted = []
        while count and len(held) > count:
            oldest = held.pop(0)
            if self.is_ours(oldest):
                os.unlink(oldest)
                deleted.append(oldest)
            self._marks.pop(oldest, None)
        self._of[name] = held
        return deleted


_written = _Written()


def _mark(path):
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _named(agent, state, name, options):
    path = _path_of(name, state)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise Refused("%s is not a directory of the training's host" % folder)
    if os.path.isdir(path):
        raise Refused("%s is a directory" % path)
    if os.path.lexists(path) and "force" not in options and not _written.is_ours(path):
        raise Refused("%s exists and is not a checkpoint of this run: replace it with checkpoint -f" % path)
    _write(state, path)
    record = dict(_written.add(path), **state.record())
    deleted = _written.keep(options.get("of", name), path, int(options.get("keep", 0)))
    if deleted:
        record["deleted"] = deleted
    return record


def _path_of(name, state):
    """The absolute path, with an ending of the framework's and the rank."""
    given = os.path.abspath(os.path.expanduser(name))
    if os.path.isdir(given) or name.endswith("/"):
        raise Refused("%s is a directory: name a file" % given)
    base, ending = os.path.splitext(given)
    if not ending[1:2].isalpha():  # best-0.98
        base, ending = base + ending, "." + state.endings[0]
    elif state.is_strict and ending[1:] not in state.endings:
        raise Refused("%s: %s's checkpoints end in %s" % (name, state.framework, " or ".join(
            "." + known for known in state.endings)))
    return base + state.rank_part + ending


def _default(agent, state):
    """Writes SCRIPT.stepN.ENDING in the current directory, or beside the script where that cannot be written. Returns
    the path."""
    script = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else os.path.join(os.getcwd(), "train")
    base = os.path.splitext(os.path.basename(script))[0]
    name = "%s.step%d%s.%s" % (base, agent.steps.computed(), state.rank_part, state.endings[0])
    failed = None
    for folder in (os.getcwd(), os.path.dirname(script)):
        path = os.path.join(folder, name)
        try:
            _write(state, path)
            return path
        except (OSError, RuntimeError) as error:  # frameworks raise both for a folder that is not writable
            failed = error
    raise failed


def _write(state, path):
    """Writes the file completely or not at all; an existing file is only replaced by a complete one."""
    part = _new_name(path, os.path.splitext(path)[1][1:] or state.endings[0])
    try:
        state.write(part)
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise


def _new_name(path, ending):
    """Makes an empty file next to `path`, under an unused name, which it returns: a process that was killed while it
    wrote a checkpoint has left one, and the next may have its process id."""
    for count in range(_MAX_NAMES):
        part = "%s.%d-%d.part.%s" % (path, os.getpid(), count, ending)
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            return part
        except FileExistsError:
            pass
    raise FileExistsError("%s: all names for temporary files are used" % part)
