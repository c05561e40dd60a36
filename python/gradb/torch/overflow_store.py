# SPDX-License-Identifier: MIT
"""The overflows found so far, the calls that were kept or written, and the commands `overflow` and `rerun`.

They are written as they are found (`overflow record`), each into its own folder below the named one; or kept in host
memory when the training stops at them, for `rerun` and `overflow save`."""
import linecache
import os
import shlex
import shutil
import sys
import time

import torch

from .. import _lib
from . import calls, commands, overflow_checker, replay, stack, values

_MAX_ENTRIES = 1000
_MAX_TOLD = 16             # tensors of an entry, where there is a list of them
_MAX_KEPT = 8              # calls in memory
_MAX_BYTES = 1 << 30       # of one call that is kept in memory
_FOLDER = "gradb-overflow"
_INTENDED = "intended"
USAGE = "stop [N] | record N [DIR] | off | save K DIR"


class Entry:
    """One overflow. told: its part of the reply of `overflow`; call: the calls.Call while it is kept; folder: where it
    was written."""

    def __init__(self, told):
        self.told = told
        self.call = None
        self.folder = ""
        self.stack = ()


class Overflows:
    """What is wanted, and what was found. stops, records: how many more to stop at and to write; None: all."""

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

    # ---- arming ----

    def arm(self):
        """Begins or ends checking operators, as wanted now."""
        agent = self.agent
        if not self.is_armed():
            self._looked = self.looked()
            agent.overflow = None
        elif agent.overflow is None:
            agent.overflow = overflow_checker.Checker(agent, self.found, self.carried, self.is_known)

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
            origin = self.agent.reporter.graph.producer(tensor)
            giver = origin[2].name if origin is not None and origin[2] is not None else "a tensor from outside"
            self._hint = {"step": self.agent.steps.step, "node": node.name, "given": giver}
            self.agent.events.happened("overflow", "in step %d %s was given NaN that no operator made: %s" % (
                self.agent.steps.step, node.name, giver))

    def found(self, origin):
        """An overflow_checker.Origin was found: lists it; writes, keeps and stops at it where that is wanted."""
        agent = self.agent
        intended = _INTENDED in origin.flags
        with agent.own_moment(), values.outside_training():
            entry = self._entry(origin)
            if not intended:
                self._keep(entry, origin)
        if intended:
            self._intended[origin.node.id] = entry
            return
        text = _sentence(entry.told)
        agent.reporter.flush()
        if self.stops != 0:
            self.stops = _less(self.stops)
            self._stop(origin.node, text)
        else:
            where = ", written to " + entry.folder if entry.folder else ", " + entry.told.get("note", "")
            agent.events.happened("overflow", text + where)
        self.arm()

    def is_known(self, node):
        """Whether the node is listed as intended, which counts it again: a mask comes in each step."""
        entry = self._intended.get(node.id)
        if entry is not None:
            entry.told["times"] += 1
        return entry is not None

    def _entry(self, origin):
        self._number += 1
        given, node = origin.given, origin.node
        path = calls.path_of(given.function) if given is not None else None
        told = {"number": self._number, "step": self.agent.steps.step, "node": node.name, "phase": origin.phase,
                "operator": path or node.operator,
                "line": stack.spot(stack.shown(origin.frames)), "times": 1,
                "flags": origin.flags, "inputs": [_range(name, value) for name, value in origin.inputs[:_MAX_TOLD]],
                "outputs": [_range("output.%d" % slot, value, found) for slot, value, found in origin.bad[:_MAX_TOLD]],
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

    # ---- keeping ----

    def _keep(self, entry, origin):
        """Writes the call or keeps it in memory; the entry says why not."""
        try:
            call, encoder = _encoded(self.agent, entry.told, origin)
            if self.records != 0:
                self.records = _less(self.records)
                self._write(entry, call)
            elif encoder.bytes > _MAX_BYTES:
                entry.told["note"] = (
                    "its tensors take %d MiB, too much to keep in memory: \"overflow record\" writes them" % (
                        encoder.bytes >> 20))
            else:
                encoder.to_host()
                entry.call = call
                kept = [other for other in self.entries if other.call is not None]
                for other in kept[:-_MAX_KEPT]:
                    other.call = None
        except (OSError, RuntimeError, MemoryError) as error:
            entry.told["note"] = "not kept: %s" % str(error).split("\n", 1)[0]

    def _write(self, entry, call):
        os.makedirs(self.folder, exist_ok=True)
        rank = os.environ.get("RANK", "")
        rank = "rank%s." % rank if rank.isdigit() and os.environ.get("WORLD_SIZE", "1") != "1" else ""
        base = "%sstep%d.%d.%s" % (rank, entry.told["step"], entry.told["number"], entry.told["node"].replace("/", "."))
        name, count = base[:200], 1
        while os.path.lexists(os.path.join(self.folder, name)):
            count += 1
            name = "%s-%d" % (base[:200], count)
        call.save(os.path.join(self.folder, name), entry.stack)
        entry.folder = entry.told["folder"] = os.path.join(self.folder, name)

    def save(self, entry, folder):
        """Writes a kept call, or copies a written one. CommandError."""
        folder = os.path.abspath(os.path.expanduser(folder))
        if os.path.isdir(folder) and os.listdir(folder) or os.path.lexists(folder) and not os.path.isdir(folder):
            raise commands.CommandError("%s already exists: name a new folder" % folder)
        try:
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            if entry.folder:
                with calls.whole(folder) as part:
                    shutil.copytree(entry.folder, part, dirs_exist_ok=True)
            else:
                self.call_of(entry).save(folder, entry.stack)
                entry.told["folder"] = entry.folder = folder
        except OSError as error:
            raise commands.CommandError("cannot write %s: %s" % (folder, error.strerror or error))
        return folder

    def call_of(self, entry):
        """The call of an entry. CommandError: it was not kept, or its files cannot be read."""
        if entry.call is not None:
            return entry.call
        if entry.folder:
            try:
                return calls.load(entry.folder)
            except calls.CallError as error:
                raise commands.CommandError(str(error))
        why = entry.told.get("note") or "only the last %d are kept; \"overflow record\" writes all" % _MAX_KEPT
        if _INTENDED in entry.told["flags"]:
            why = "it is intended, and was not kept"
        raise commands.CommandError("the call of overflow %d is not available: %s" % (entry.told["number"], why))

    def find(self, word):
        """The entry with a number, or the last one of a node; without a word the last one that is not intended.
        CommandError."""
        if not self.entries:
            raise commands.CommandError("no overflow has been found yet")
        for entry in reversed(self.entries):
            told = entry.told
            if word in (str(told["number"]), told["node"]) or (not word and _INTENDED not in told["flags"]):
                return entry
        raise commands.CommandError("no overflow %s: there are %d, \"info overflows\" lists them" % (
            "'%s'" % word if word else "except intended ones", len(self.entries)))

    # ---- stopping ----

    def _stop(self, node, text):
        agent = self.agent
        agent.timing.call_waiting(agent.library.gradb_stop_at, agent.handle, node.id, _lib.text(text))

    def state(self):
        """The reply of `overflow`."""
        return {"stop": _wanted(self.stops), "record": _wanted(self.records), "folder": self.folder,
                "looked": self.looked(), "overflows": [entry.told for entry in self.entries], "hint": self._hint}


def _less(count):
    """count - 1; None, which is all, stays."""
    return count if count is None else count - 1


def _wanted(count):
    return "all" if count is None else count


# ---- what is reported and kept of an origin ----

def _encoded(agent, told, origin):
    """(calls.Call, calls.Encoder with its tensors) of an origin."""
    given = origin.given
    encoder = calls.Encoder(given.replaced() if given is not None else None)
    arguments = gradients = None
    if given is not None:
        kwargs = {key: value for key, value in given.kwargs.items() if key != "out"}
        arguments = {"args": [encoder.add(value, "input.%d" % i) for i, value in enumerate(given.args)],
                     "kwargs": {key: encoder.add(value, "input." + key) for key, value in kwargs.items()}}
    if origin.phase != "forward" and (given is None or origin.grad_fn):  # not inside a custom backward()
        gradients = origin.gradients if origin.gradients is not None else [value for _, value in origin.inputs]
        gradients = [encoder.add(value, "gradient.%d" % i) for i, value in enumerate(gradients)]
    refused = "; ".join(encoder.refused)
    results = calls.Encoder()
    outputs = [results.add(value, "output.%d" % slot) for slot, value in origin.outputs]
    encoder.tensors.update(results.tensors)
    encoder.bytes += results.bytes
    about = {"format": calls.FORMAT, "version": calls.VERSION, "number": told["number"], "step": told["step"],
             "node": told["node"], "phase": origin.phase, "line": told["line"], "flags": origin.flags,
             "function": calls.path_of(given.function) if given is not None else None,
             "autocast": given.autocast if given is not None else None, "scale": origin.scale,
             "device": _device(origin.outputs), "torch": str(torch.__version__), "time": time.time(),
             "program": " ".join(sys.argv), "why": origin.why}
    if origin.grad_fn:
        about["grad_fn"] = origin.grad_fn
    if given is not None and about["function"] is None:
        about["why"] = "PyTorch has no function named %s" % given.name
    about["api"] = calls.api_name(about["function"] or "torch." + origin.node.operator,
                                  given.ordinal if given is not None else 0)
    return calls.Call(about, arguments, gradients, outputs, encoder.tensors, refused), encoder


def _device(outputs):
    return next((tensor.device.type for _, tensor in outputs if isinstance(tensor, torch.Tensor)), "cpu")


def _range(name, value, found=None):
    """{"name", "dtype", "shape", "min", "max", "nan", "pos_inf", "neg_inf"} of a tensor, or {"name", "note"}."""
    if not isinstance(value, torch.Tensor):
        return {"name": name, "note": value if isinstance(value, str) else "not a tensor"}
    about = {"name": name, "dtype": str(value.dtype).rsplit(".", 1)[-1], "shape": list(value.shape)}
    try:
        return dict(about, **(found or calls.stats_of(value)))
    except (values.NoValue, RuntimeError) as error:
        return dict(about, note=str(error).split("\n", 1)[0])


def _sentence(told):
    """"overflow 3: net/log made 11 -inf of 64 elements, mlp.py:41"."""
    made = []
    for output in told["outputs"][:1]:
        parts = ["%d %s" % (output[key], word)
                 for key, word in (("nan", "nan"), ("pos_inf", "inf"), ("neg_inf", "-inf")) if output[key]]
        made.append("%s of %d elements" % (" and ".join(parts), output["count"]))
    return "overflow %d: %s made %s%s" % (told["number"], told["node"], ", ".join(made),
                                          ", " + told["line"] if told["line"] else "")


# ---- commands ----

def _overflow(agent, args, _node):
    store = agent.overflows
    try:
        words = shlex.split(args)
    except ValueError as error:
        raise commands.CommandError("overflow: %s" % error)
    word, rest = (words[0], words[1:]) if words else ("", [])
    function = _WORDS.get(word)
    if function is None:
        raise commands.CommandError("overflow takes %s, not '%s'" % (USAGE, word))
    did = function(store, rest) or {}
    return dict(store.state(), **did)


def _take_count(words, least=1):
    if not words[0].isdigit() or int(words[0]) < least:
        raise commands.CommandError("'%s' is not a number of overflows" % words[0])
    return int(words[0])


def _no_more(words, count):
    if len(words) > count:
        raise commands.CommandError("overflow: unexpected word '%s'" % words[count])


def _set_stop(store, words):
    _no_more(words, 1)
    store.stops = _take_count(words) if words else None
    store.arm()


def _set_record(store, words):
    _no_more(words, 2)
    if not words:
        raise commands.CommandError("overflow record needs the number of overflows to write")
    count = _take_count(words)
    folder = os.path.abspath(os.path.expanduser(words[1] if len(words) > 1 else _FOLDER))
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise commands.CommandError("cannot create the folder %s: %s" % (folder, error.strerror))
    store.records, store.folder = count, folder
    store.arm()


def _set_off(store, words):
    _no_more(words, 0)
    store.disarm()


def _save(store, words):
    _no_more(words, 2)
    if len(words) < 2:
        raise commands.CommandError("overflow save needs an overflow's number and a folder")
    return {"saved": store.save(store.find(words[0]), words[1])}


_WORDS = {"": lambda store, words: None, "stop": _set_stop, "record": _set_record, "off": _set_off, "save": _save}


def _rerun(agent, args, node):
    store = agent.overflows
    entry = store.find(node.name if node is not None else args.strip())
    reply = replay.rerun(store.call_of(entry))
    entry.told["verdict"] = reply["verdict"]
    names = ("number", "step", "node", "phase", "operator", "line")
    return dict({name: entry.told[name] for name in names}, **reply)


commands.register("overflow", _overflow, "stop at, or write, operators that make Inf or NaN of finite inputs",
                  "[%s]" % USAGE)
commands.register("rerun", _rerun, "repeat the call of an overflow on the CPU, in float64: is it inherent?",
                  "[K|NODE]")
