# SPDX-License-Identifier: MIT
"""Where the numbers of a training become infinite or NaN, for the agents of all frameworks: what counts as an origin,
the list of what was found, and the words of the command `overflow`.

An origin is an operator with finite inputs and an output that is not finite, or one that makes NaN of infinities that
no earlier origin made (a softmax over a row that is masked out entirely). An operator that was given a number that is
not finite (masked_fill with -inf) does so intentionally: it is listed, but the run does not stop."""
import linecache
import shlex

from . import _lib
from .commands import CommandError

_MAX_ENTRIES = 1000
_MAX_TOLD = 16             # tensors of an entry, where there is a list of them
INTENDED = "intended"
_SKIPPED = "skipped"


class Origin:
    """What was found.

    inputs, outputs: (name, tensor or text) pairs; given: of an operator that can be repeated, the call;
    gradients: of a backward node, those that it received; why: why its call is unknown; flags: words."""
    __slots__ = ("node", "phase", "frames", "given", "inputs", "outputs", "gradients", "why", "flags", "scale", "bad",
                 "grad_fn")

    def __init__(self, node, phase, frames, given, inputs, outputs):
        self.node = node
        self.phase = phase
        self.frames = frames
        self.given = given
        self.inputs = inputs
        self.outputs = outputs
        self.gradients = None
        self.why = ""
        self.flags = []
        self.scale = 1.0
        self.bad = []      # (slot, tensor, statistics) of outputs that are not finite
        self.grad_fn = ""  # type of a backward node


class Rules:
    """The base of each framework's checker. Calls found(origin) with each Origin, carried(node, tensor) for NaN that no
    operator made; is_known(node): whether a node is listed as intended, which counts it.

    nonfinite: the framework's functions suspects, not_finite, may_be_bad, with_stats and is_inexact; looked: operators
    whose outputs were checked."""
    nonfinite = None

    def __init__(self, agent, found, carried, is_known):
        self.agent = agent
        self._found = found
        self._is_known = is_known
        self._carried = carried
        self.looked = 0
        self._tainted = False     # an origin was found in this step
        self._bad_leaves = set()  # id of a parameter whose gradient was not finite; ("weight", id): itself

    def _explains(self, origin, inputs, tensors):
        """Whether an operator's inputs explain that its outputs are not finite."""
        nan = inf = False
        for (_, value), tensor in zip(inputs, tensors):
            if isinstance(value, str):
                if self.nonfinite.is_inexact(tensor) and "unknown-input" not in origin.flags:
                    origin.flags.append("unknown-input")
            elif self.nonfinite.may_be_bad(value):
                for _, _, found in self.nonfinite.with_stats([(0, value)]):
                    nan = nan or bool(found["nan"])
                    inf = inf or bool(found["pos_inf"] or found["neg_inf"])
                    if found["nan"] and not self._tainted:
                        self._carried(origin.node, tensor)
        if nan:
            return True
        if inf and not self._tainted and any(found["nan"] for _, _, found in origin.bad):
            origin.flags.append("from-inf")
            return False
        return inf

    def _suspects_again(self, key, tensor):
        """The suspects of a tensor that lasts, unless it was not finite when it was last checked."""
        suspects = self.nonfinite.suspects((tensor,))
        if not suspects:
            self._bad_leaves.discard(key)
        return suspects if key not in self._bad_leaves else []

    def _update_origin(self, origin, key, suspects, gradient):
        """Completes the origin of an optimizer's update. None: its gradient explains it."""
        origin.bad = self.nonfinite.not_finite(suspects)
        if not origin.bad:
            return None
        self._bad_leaves.add(key)
        if gradient is not None and self._explains(origin, [("gradient.0", gradient)], [gradient]):
            return None
        if "unknown-input" not in origin.flags:
            origin.flags.append("unknown-input")
        origin.why = "an optimizer's step is not a single operator call, and the previous weights are not kept"
        return origin


class Entry:
    """One overflow. told: its part of the reply of `overflow`; call: what can be repeated, while it is kept; folder:
    where it was written; stack: texts."""

    def __init__(self, told):
        self.told = told
        self.call = None
        self.folder = ""
        self.stack = ()


class Overflows:
    """What is wanted, and what was found. stops, records: how many more to stop at and to write; None: all.

    A framework's class sets `words` (first word of the command -> function(store, words)) and `usage`."""
    words = {}
    usage = ""

    def __init__(self, agent):
        self.agent = agent
        self.entries = []
        self.stops = 0
        self.records = 0
        self.folder = ""
        self._number = 0
        self._hint = None
        self._intended = {}  # number of a node -> its Entry
        self._looked = 0     # operators that earlier checkers checked

    # ---- what a framework knows ----

    def make_checker(self):
        """A new checker."""
        raise NotImplementedError

    def keep(self, entry, origin):
        """Writes or keeps what can be repeated."""

    def publish(self):
        """Shows the debugger all nodes."""

    def stop_at(self, node, text):
        """Stops the training at a node."""
        self.agent.library.gradb_stop_at(self.agent.handle, node.id, _lib.text(text))

    def range_of(self, name, value, found=None):
        """{"name", "dtype", "shape", "min", "max", "nan", "pos_inf", "neg_inf"} of a tensor, or {"name", "note"}."""
        raise NotImplementedError

    def spot(self, frames):
        """FILE:LINE of the frames' innermost line of the user's."""
        raise NotImplementedError

    def giver(self, tensor):
        """The name of what made a tensor."""
        raise NotImplementedError

    def aside(self):
        """A context manager: a moment of our own."""
        return self.agent.own_moment()

    # ---- arming ----

    def arm(self):
        """Begins or ends checking operators, as wanted now."""
        agent = self.agent
        if not self.is_armed():
            self._looked = self.looked()
            agent.overflow = None
        elif agent.overflow is None:
            agent.overflow = self.make_checker()

    def looked(self):
        """How many operators were checked."""
        return self._looked + (self.agent.overflow.looked if self.agent.overflow is not None else 0)

    def is_armed(self):
        """Whether anything is wanted."""
        return self.stops != 0 or self.records != 0

    def disarm(self):
        """Stops checking."""
        self.stops = self.records = 0
        self.arm()

    # ---- what is found ----

    def carried(self, node, tensor):
        """A node was given NaN that no operator before it made."""
        if self._hint is None:
            self._hint = {"step": self.agent.steps.step, "node": node.name, "given": self.giver(tensor)}
            self._happened("in step %(step)d %(node)s was given NaN that no operator made: %(given)s" % self._hint)

    def found(self, origin):
        """An Origin was found: lists it; writes, keeps and stops at it where that is wanted."""
        intended = INTENDED in origin.flags
        with self.aside():
            entry = self._entry(origin)
            if not intended:
                self.keep(entry, origin)
        if intended:
            self._intended[origin.node.id] = entry
            return
        text = _sentence(entry.told)
        self.publish()
        if self.stops != 0:
            self.stops = less(self.stops)
            self.stop_at(origin.node, text)
        else:
            self._happened(text + (", written to " + entry.folder if entry.folder else
                                   ", " + entry.told.get("note", "")))
        self.arm()

    def is_known(self, node):
        """Whether the node is listed as intended, which counts it again: a mask comes in each step."""
        entry = self._intended.get(node.id)
        if entry is not None:
            entry.told["times"] += 1
        return entry is not None

    def skipped(self):
        """A loss scaler skips the running step: its overflows did no harm. Returns them, for the user, or ""."""
        found = []
        for entry in self.entries:
            flags = entry.told["flags"]
            if entry.told["step"] == self.agent.steps.step and INTENDED not in flags and _SKIPPED not in flags:
                flags.append(_SKIPPED)
                found.append("overflow %(number)d, %(node)s" % entry.told)
        return "; ".join(found)

    def _happened(self, text):
        self.agent.library.gradb_event(self.agent.handle, b"overflow", _lib.text(text), 0)

    def _entry(self, origin):
        self._number += 1
        told = {"number": self._number, "step": self.agent.steps.step, "node": origin.node.name, "phase": origin.phase,
                "operator": self.operator_of(origin), "line": self.spot(origin.frames), "times": 1,
                "flags": origin.flags,
                "inputs": [self.range_of(name, value) for name, value in origin.inputs[:_MAX_TOLD]],
                "outputs": [self.range_of("output.%d" % slot, value, found)
                            for slot, value, found in origin.bad[:_MAX_TOLD]],
                "folder": "", "verdict": ""}
        if origin.scale != 1.0:
            told["scale"] = origin.scale
        entry = Entry(told)
        entry.stack = ["File %s, line %d, in %s, \n %s" % (
            code.co_filename, line or 0, code.co_name, linecache.getline(code.co_filename, line or 0).strip())
            for code, line, library in origin.frames if not library]
        self.entries.append(entry)
        del self.entries[:-_MAX_ENTRIES]
        return entry

    def operator_of(self, origin):
        """The operator's name in the list."""
        return origin.node.operator

    def find(self, word):
        """The entry with a number, or the last one of a node; without a word the last one that is not intended.
        CommandError."""
        if not self.entries:
            raise CommandError("no overflow has been found yet")
        for entry in reversed(self.entries):
            told = entry.told
            if word in (str(told["number"]), told["node"]) or (not word and INTENDED not in told["flags"]):
                return entry
        raise CommandError("no overflow %s: there are %d, \"info overflows\" lists them" % (
            "'%s'" % word if word else "except intended ones", len(self.entries)))

    def state(self):
        """The reply of `overflow`."""
        return {"stop": _wanted(self.stops), "record": _wanted(self.records), "folder": self.folder,
                "looked": self.looked(), "overflows": [entry.told for entry in self.entries], "hint": self._hint}


def less(count):
    """count - 1; None, which is all, stays."""
    return count if count is None else count - 1


def _wanted(count):
    return "all" if count is None else count


def _sentence(told):
    """"overflow 3: net/log made 11 -inf of 64 elements, mlp.py:41"."""
    made = []
    for output in told["outputs"][:1]:
        parts = ["%d %s" % (output[key], word)
                 for key, word in (("nan", "nan"), ("pos_inf", "inf"), ("neg_inf", "-inf")) if output[key]]
        made.append("%s of %d elements" % (" and ".join(parts), output["count"]))
    return "overflow %d: %s made %s%s" % (told["number"], told["node"], ", ".join(made),
                                          ", " + told["line"] if told["line"] else "")


# ---- the command ----

def command(agent, args, _node):
    """The function of `overflow`, for commands.register."""
    store = agent.overflows
    try:
        words = shlex.split(args)
    except ValueError as error:
        raise CommandError("overflow: %s" % error)
    word, rest = (words[0], words[1:]) if words else ("", [])
    function = store.words.get(word)
    if function is None:
        raise CommandError("overflow takes %s, not '%s'" % (store.usage, word))
    did = function(store, rest) or {}
    return dict(store.state(), **did)


def take_count(words, least=1):
    """The number of overflows that the first word is. CommandError."""
    if not words[0].isdigit() or int(words[0]) < least:
        raise CommandError("'%s' is not a number of overflows" % words[0])
    return int(words[0])


def no_more(words, count):
    """CommandError: there are more than `count` words."""
    if len(words) > count:
        raise CommandError("overflow: unexpected word '%s'" % words[count])


def _set_stop(store, words):
    no_more(words, 1)
    store.stops = take_count(words) if words else None
    store.arm()


def _set_off(store, words):
    no_more(words, 0)
    store.disarm()


WORDS = {"": lambda store, words: None, "stop": _set_stop, "off": _set_off}
