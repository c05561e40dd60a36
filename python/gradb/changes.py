# SPDX-License-Identifier: MIT
"""Changes that the user makes by hand while the training is stopped, and taking them back: `set NODE[SLICE] = VALUE`,
`set requires_grad`, `zero-grad`, `skip-update`, `set lr`.

What depends on the framework is asked of its `Program` (torch/program.py, mindspore/program.py). A change of values is
taken back bit by bit, as long as the training has not run on; what was replaced is kept for that, up to a limit."""
import json
import math

from .commands import CommandError

_KEPT = 256 << 20  # bytes of replaced values
_MOST = 100        # changes that can be taken back
_LARGE = "at most %d MiB of replaced values are kept" % (_KEPT >> 20)
_PAST = "the training has run since"


class _Change:
    """One that was made. stop: the number of the stop at which it can be taken back; None: at any. size: the bytes of
    what it replaced. back: takes it back; None: it cannot be, as `why` says."""
    __slots__ = ("what", "stop", "size", "back", "why")

    def __init__(self, what, stop, size, back, why=""):
        self.what, self.stop, self.size, self.back, self.why = what, stop, size, back, why

    def forget(self, why):
        """Keeps no values for it any more."""
        self.size, self.back, self.why = 0, None, why


class Changes:
    """The changes of one agent, the last one last."""

    def __init__(self, program):
        self.program = program
        self._stop = None  # number of the stop at which something is taken back
        self._done = []

    # ---- the commands ----

    def change(self, args):
        """The command "change": {"what": "value" | "requires_grad" | "zero-grad" | "skip-update", "stop": number of the
        stop, and what it needs}. Replies {"text": what was done, "old": ..., "undo": why it cannot be taken back; ""}.
        """
        request = json.loads(args)
        why = self.program.cannot.get(request["what"])
        if why is not None:
            raise CommandError(why)
        act = {"value": self._value, "requires_grad": self._requires_grad, "zero-grad": self._zero_grad,
               "skip-update": self._skip_update}[request["what"]]
        return act(request)

    def undo(self, args):
        """The command "undo": {"stop": number of the stop}."""
        if not self._done:
            raise CommandError("nothing was changed by hand, or what was changed cannot be taken back")
        last = self._done[-1]
        self._stop = json.loads(args)["stop"]
        if last.back is not None and last.stop not in (None, self._stop):
            last.forget(_PAST)
        if last.back is None:
            raise CommandError("%s cannot be taken back: %s" % (last.what, last.why))
        last.back()
        self._done.pop()
        return {"text": last.what, "bytes": last.size, "left": len(self._done)}

    def did(self, what, stop, size, back):
        """A change was made, see _Change. Returns why it cannot be taken back, or ""."""
        change = _Change(what, stop, size, back)
        if size + sum(before.size for before in self._done) > _KEPT:
            change.forget(_LARGE)
        self._done.append(change)
        del self._done[:-_MOST]
        return change.why

    def resumed(self):
        """The training continues: values that were replaced cannot be put back any more, and are not kept."""
        for change in self._done:
            if change.stop is not None and change.back is not None:
                change.forget(_PAST)

    # ---- the changes ----

    def _value(self, request):
        program, name = self.program, request["node"]
        tensor = program.settable(name)
        part = program.part(tensor, slice_of(request.get("slice", "")))
        old, size = program.keep(part) if program.size(part) <= _KEPT else (None, program.size(part))
        value = self._number(part, request["value"])
        before = program.describe(part)
        program.fill(part, value)
        what = "%s%s = %s" % (name, request.get("slice", ""), request["value"])
        why = self.did(what, request["stop"], size if old is not None else _KEPT + 1,
                       lambda: program.put_back(part, old))
        return {"text": what, "old": before, "elements": program.count(part), "undo": why}

    def _number(self, part, text):
        """The number in the type of the elements. CommandError: it does not fit."""
        kind, least, most, name = self.program.limits(part)
        try:
            value = {"true": 1, "false": 0}.get(text.lower())
            if value is None:
                value = int(text, 0) if kind in ("int", "bool") else float(text)
        except ValueError:
            raise CommandError("'%s' is not %s" % (text, "a number" if kind == "float" else
                                                   "true or false" if kind == "bool" else "a whole number")) from None
        if kind == "float" and not math.isfinite(value):
            return value
        if kind == "bool" and value not in (0, 1) or not least <= value <= most:
            raise CommandError("%s is outside of what %s holds: %s to %s" % (text, name, least, most))
        return bool(value) if kind == "bool" else value

    def _requires_grad(self, request):
        on = request["on"]
        name = request["node"]
        old, back, note = self.program.set_requires_grad(name, on)
        if old == on:
            return {"text": "requires_grad of %s is %s already" % (name, "on" if on else "off"), "same": True}
        what = "requires_grad of %s: %s -> %s" % (name, "on" if old else "off", "on" if on else "off")
        return {"text": what + note, "old": old,
                "undo": self.did(what, None, 0, lambda: back(self._stop == request["stop"]))}

    def _zero_grad(self, request):
        name, count, back = self.program.zero_grad(request.get("optimizer", ""))
        what = "gradients of %s: %d removed" % (name, count)
        return {"text": what, "old": count, "undo": self.did(what, request["stop"], 0, back)}

    def _skip_update(self, request):
        name, back = self.program.skip_update(request.get("optimizer", ""))
        what = "the next step of %s updates nothing" % name
        return {"text": what, "undo": self.did(what, None, 0, back)}


def slice_of(text):
    """"[0, :, 1:3]" as an index. CommandError."""
    text = text.strip()
    if not text:
        return ()
    if not (text.startswith("[") and text.endswith("]")):
        raise CommandError("%s is not a slice" % text)
    return tuple(_item(item.strip()) for item in text[1:-1].split(","))


def _item(text):
    if text == "...":
        return Ellipsis
    try:
        if ":" not in text:
            return int(text)
        parts = [int(part) if part.strip() else None for part in text.split(":")]
    except ValueError:
        raise CommandError("'%s' is not an index: use numbers, ranges like 1:3, and ..." % text) from None
    if len(parts) > 3 or len(parts) == 3 and parts[2] is not None and parts[2] <= 0:
        raise CommandError("'%s' is not a range with a positive step" % text)
    return slice(*parts)


def register(table):
    """Adds the commands to the table of a framework. They are not listed: the debugger's own commands send them."""
    table.register("change", lambda agent, args, _node: agent.changes.change(args), None)
    table.register("undo", lambda agent, args, _node: agent.changes.undo(args), None)
