# SPDX-License-Identifier: MIT
"""The overflows found so far, the calls that were kept or written, and the commands `overflow` and `rerun`.

They are written as they are found (`overflow record`), each into its own folder below the named one; or kept in host
memory when the training stops at them, for `rerun` and `overflow save`."""
import contextlib
import os
import shutil
import sys
import time

import torch

from .. import overflows
from ..overflows import INTENDED, less, no_more, take_count
from . import calls, commands, overflow_checker, replay, stack, values

_MAX_KEPT = 8              # calls in memory
_MAX_BYTES = 1 << 30       # of one call that is kept in memory
_FOLDER = "gradb-overflow"
USAGE = "stop [N] | record N [DIR] | off | save K DIR"


class Overflows(overflows.Overflows):
    """What is wanted, and what was found; keeps the calls."""
    usage = USAGE

    def make_checker(self):
        """See the base."""
        return overflow_checker.Checker(self.agent, self.found, self.carried, self.is_known)

    def publish(self):
        """See the base."""
        self.agent.reporter.flush()

    def stop_at(self, node, text):
        """See the base."""
        self.agent.timing.call_waiting(super().stop_at, node, text)

    def operator_of(self, origin):
        """See the base."""
        path = calls.path_of(origin.given.function) if origin.given is not None else None
        return path or origin.node.operator

    def spot(self, frames):
        """See the base."""
        return stack.spot(stack.shown(frames))

    def giver(self, tensor):
        """See the base."""
        origin = self.agent.reporter.graph.producer(tensor)
        return origin[2].name if origin is not None and origin[2] is not None else "a tensor from outside"

    def aside(self):
        """See the base."""
        moment = contextlib.ExitStack()
        moment.enter_context(self.agent.own_moment())
        moment.enter_context(values.outside_training())
        return moment

    def range_of(self, name, value, found=None):
        """See the base."""
        if not isinstance(value, torch.Tensor):
            return {"name": name, "note": value if isinstance(value, str) else "not a tensor"}
        about = {"name": name, "dtype": str(value.dtype).rsplit(".", 1)[-1], "shape": list(value.shape)}
        try:
            return dict(about, **(found or calls.stats_of(value)))
        except (values.NoValue, RuntimeError) as error:
            return dict(about, note=str(error).split("\n", 1)[0])

    # ---- keeping ----

    def keep(self, entry, origin):
        """Writes the call or keeps it in memory; the entry says why not."""
        try:
            call, encoder = _encoded(self.agent, entry.told, origin)
            if self.records != 0:
                self.records = less(self.records)
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
        if INTENDED in entry.told["flags"]:
            why = "it is intended, and was not kept"
        raise commands.CommandError("the call of overflow %d is not available: %s" % (entry.told["number"], why))


# ---- what is kept of an origin ----

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


# ---- commands ----

def _set_record(store, words):
    no_more(words, 2)
    if not words:
        raise commands.CommandError("overflow record needs the number of overflows to write")
    count = take_count(words)
    folder = os.path.abspath(os.path.expanduser(words[1] if len(words) > 1 else _FOLDER))
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise commands.CommandError("cannot create the folder %s: %s" % (folder, error.strerror))
    store.records, store.folder = count, folder
    store.arm()


def _save(store, words):
    no_more(words, 2)
    if len(words) < 2:
        raise commands.CommandError("overflow save needs an overflow's number and a folder")
    return {"saved": store.save(store.find(words[0]), words[1])}


Overflows.words = dict(overflows.WORDS, record=_set_record, save=_save)


def _rerun(agent, args, node):
    store = agent.overflows
    entry = store.find(node.name if node is not None else args.strip())
    reply = replay.rerun(store.call_of(entry))
    entry.told["verdict"] = reply["verdict"]
    names = ("number", "step", "node", "phase", "operator", "line")
    return dict({name: entry.told[name] for name in names}, **reply)


commands.register("overflow", overflows.command, "stop at, or write, operators that make Inf or NaN of finite inputs",
                  "[%s]" % USAGE)
commands.register("rerun", _rerun, "repeat the call of an overflow on the CPU, in float64: is it inherent?",
                  "[K|NODE]")
