# SPDX-License-Identifier: MIT
"""Metrics of the debugger's `metric` in a training process, for the agents of all frameworks.

libgradb counts and computes (gradb_metric_batch). The agents give it the outputs and labels of each call of a loss
function, which they wrap while a metric is asked for: nothing else of the step is watched. Metrics on other nodes are
libgradb's alone. A metric from a Python file of the user's is run here: a class with clear, update and eval."""
import ctypes
import inspect
import json
import os
import re
import runpy

from . import _lib, counting
from .commands import CommandError

_MAX_REPLY = 1 << 20
_MAX_PLANS = 1024
_FROM_FILE = re.compile(r'\s*([A-Za-z]\w*) from "((?:[^"\\]|\\.)*)"')
CLASSES, LOGITS, PROBABILITIES, VALUES = range(1, 5)  # enum gradb_pair


class Pair:
    """What one call of a loss function is given. form: of enum gradb_pair; ignore: label that does not count, or None;
    loss: what it returned, where that is a number; evaluated: the step that an evaluation belongs to, or None."""
    __slots__ = ("outputs", "labels", "form", "ignore", "evaluated", "loss")

    def __init__(self, outputs, labels, form, ignore, evaluated, loss):
        self.outputs, self.labels, self.form, self.ignore = outputs, labels, form, ignore
        self.evaluated, self.loss = evaluated, loss

    @property
    def evaluation(self):
        """Whether it is of an evaluation."""
        return self.evaluated is not None


def batch_of(outputs, labels, form, ignore):
    """The struct of a batch of the training."""
    return _lib.Batch(ctypes.pointer(outputs), ctypes.pointer(labels), form, ignore is not None, ignore or 0, False,
                      None)


class Metrics:
    """The metrics of one agent. The framework's part says how to hook its losses and how to read a tensor."""

    def __init__(self, agent):
        self.agent = agent
        self.active = False  # the losses are wrapped
        self._own = {}       # name -> FromFile
        self._sites = {}     # evaluation or not -> where the program called the first loss
        self._told = set()
        self._plans = {}     # form of a batch -> plans of libgradb's metrics
        self._counted = []   # (step of the evaluation or None, plan, shape of the labels, tensor of counts)

    # ---- of the framework ----

    def hook(self):
        """Wraps the loss functions."""
        raise NotImplementedError

    def unhook(self):
        """Takes that back."""
        raise NotImplementedError

    def tensor(self, value):
        """(struct gradb_tensor, what holds its memory) of a value in host memory."""
        raise NotImplementedError

    def ops(self, value):
        """The framework's part of counting.py, for what is on the device of a tensor."""
        raise NotImplementedError

    def form_of(self, value):
        """(type, shape) of a tensor; type: libgradb's word for it."""
        raise NotImplementedError

    def numbers_of(self, tensors):
        """The elements of float64 tensors, as lists; waits once for the device."""
        raise NotImplementedError

    def programs_moment(self):
        """A context in which the user's code runs: without gradients, and random generators are as before after it."""
        raise NotImplementedError

    def note(self):
        """What the user must know when a metric is added; ""."""
        return ""

    # ---- batches ----

    def is_first_loss(self, site, spot, evaluation):
        """Whether the call at that place counts: of several losses only the first. spot(): its FILE:LINE."""
        known = self._sites.setdefault(evaluation, site)
        if known != site and evaluation not in self._told:
            self._told.add(evaluation)
            self.say("metrics count the first loss of a step; another one is at %s: name the nodes with `metric ... "
                     "of OUTPUTS against LABELS`" % spot())
        return known == site

    def give(self, pair, names=(None,)):
        """A loss function was called; its tensors can be read here. names: of the metrics that count it."""
        library, handle = self.agent.library, self.agent.handle
        outputs, held = self.tensor(pair.outputs)
        labels, held_too = self.tensor(pair.labels)
        batch = batch_of(outputs, labels, pair.form, pair.ignore)
        batch.evaluation = pair.evaluation
        batch.loss = ctypes.pointer(ctypes.c_double(pair.loss)) if pair.loss is not None else None
        self.agent.happenings.as_of(pair.evaluated)
        wanted = [library.gradb_metric_batch(handle, name and _lib.text(name), ctypes.byref(batch)) for name in names]
        self.agent.happenings.as_of(None)
        del held, held_too
        if names == (None,):
            self._give_own(pair)
            if not wanted[0] and not self._own:
                self.stop()

    def _give_own(self, pair):
        for metric in list(self._own.values()):
            self._run(metric, pair)

    def count(self, pair):
        """A loss function was called; its tensors are on a device, where they are counted. Returns the names of the
        metrics for which they must be copied."""
        plans, counts = self._plans_for(pair), []
        copied = [plan["name"] for plan in plans if plan["do"] == "copy"]
        ops = self.ops(pair.outputs)
        for plan in plans:
            if plan["do"] == "counts" and (plan["kind"] != "loss" or pair.loss is not None):
                try:
                    found = counting.count(ops, plan, pair.outputs, pair.labels, pair.loss)
                    shape = self.form_of(pair.labels)[1]
                    counts.append((pair.evaluated, plan, shape, ops.join(found)))
                except counting.Uncounted:
                    copied.append(plan["name"])
        self._counted += counts
        self._give_own(pair)
        return copied

    def _plans_for(self, pair):
        ask = "plan %s %d %s %s %s" % ("eval" if pair.evaluation else "train", pair.form,
                                       "-" if pair.ignore is None else pair.ignore, *(
                                           ",".join(map(str, (kind, *shape)))
                                           for kind, shape in map(self.form_of, (pair.outputs, pair.labels))))
        plans = self._plans.get(ask)
        if plans is None:
            reply = self._ask(ask)
            plans = reply["plans"]
            if reply["whole"]:
                if len(self._plans) >= _MAX_PLANS:
                    self._plans.clear()
                self._plans[ask] = plans
            if not reply["wanted"] and not self._own:
                self.stop()
        return plans

    def give_counts(self):
        """Gives libgradb what was counted on a device."""
        counts, self._counted = self._counted, []
        numbers = self.numbers_of([found for *_, found in counts]) if counts else ()
        for (evaluated, plan, shape, _), found in zip(counts, numbers):
            self.agent.happenings.as_of(evaluated)
            self._ask("counts %s %s %s" % ("train" if evaluated is None else "eval", plan["name"],
                                           counting.text(plan, found, shape)))
        self.agent.happenings.as_of(None)

    def evaluated(self, _kind=None, _info=None):
        """An evaluation is over."""
        self.agent.library.gradb_metric_evaluated(self.agent.handle)
        self._sites.pop(True, None)
        self._report(True)

    def flush(self):
        """Gives what was put off."""

    def _epoch_begins(self, _kind, _info):
        self.flush()
        self._plans.clear()
        left = self.agent.connected() and self._ask("epoch")["metrics"]
        for metric in list(self._own.values()):
            self._try(metric, metric.begins_epoch)
        if not left and not self._own:
            self.stop()

    def stop(self):
        """No metric is left, or the debugger is gone."""
        if self.active:
            self.active = False
            self.unhook()
            self.agent.happenings.off("eval-end", self.evaluated)
            self.agent.happenings.off("step-end", self._step_ended)
        self.agent.happenings.off("epoch-begin", self._epoch_begins)
        self._own.clear()
        self._plans.clear()
        self._counted = []
        self._sites.clear()
        self._told.clear()

    def _start(self):
        if not self.active:
            self.active = True
            self.agent.happenings.on("eval-end", self.evaluated)
            self.hook()

    def say(self, text):
        """Shows the user a line."""
        self.agent.library.gradb_event(self.agent.handle, b"unseen", _lib.text(text), 0)

    def say_once(self, text):
        """The same, but not twice."""
        if text not in self._told:
            self._told.add(text)
            self.say(text)

    # ---- the user's own ----

    def _run(self, metric, pair):
        """Runs a metric from a file on a batch."""
        self._try(metric, lambda: metric.update(pair, self.agent.steps.step))
        if not pair.evaluation:
            self._report(True)

    def _try(self, metric, function):
        """Runs code of a metric from a file. Its exceptions switch it off."""
        try:
            with self.programs_moment():
                function()
        except (Exception, SystemExit) as error:
            self._own.pop(metric.name, None)
            self.say("metric %s is off: %s" % (metric.name, _mistake(error, metric.path)))

    def _report(self, evaluation):
        for metric in self._own.values():
            number, step = metric.take(evaluation)
            if number is not None:
                self.agent.happenings.number(("eval_" if evaluation else "") + metric.name, number, step)

    def _step_ended(self, _kind, _info):
        self._report(True)
        self._report(False)

    def _load(self, name, path):
        try:
            with self.programs_moment():
                self._own[name] = FromFile(name, path)
        except CommandError:
            raise
        except BaseException as error:  # SystemExit, too
            raise CommandError("%s cannot be used: %s" % (path, _mistake(error, path)))

    # ---- requests ----

    def command(self, _agent, args, _node):
        """The command `metric` of the debugger."""
        verb, _, rest = args.strip().partition(" ")
        self._plans.clear()
        if verb == "list":
            return self._list()
        if verb in ("add", "found"):
            self.agent.happenings.off("epoch-begin", self._epoch_begins)
            self.agent.happenings.on("epoch-begin", self._epoch_begins)
            return self._add(verb, rest)
        if verb == "delete" and rest in self._own:
            del self._own[rest]
            reply = {}
        else:
            reply = self._ask(args)
        if verb == "delete" and not rest:
            self._own.clear()
        if verb == "clear":
            for metric in list(self._own.values()):
                self._try(metric, metric.clear)
        return reply

    def _add(self, verb, rest):
        found = _FROM_FILE.match(rest)
        if found:
            self._load(found.group(1), re.sub(r"\\(.)", r"\1", found.group(2)))
            self.agent.happenings.off("step-end", self._step_ended)
            self.agent.happenings.on("step-end", self._step_ended)
        elif verb == "add" and ' of "' in rest:
            self._ask("add " + rest)
            return {}
        else:
            self._ask("feed " + rest)
        self._start()
        return {"note": self.note()}

    def _ask(self, request):
        """The answer of libgradb. CommandError."""
        ask = self.agent.library.gradb_metric
        reply, why = ctypes.create_string_buffer(_MAX_REPLY), ctypes.create_string_buffer(_lib.WHY_BYTES)
        if ask(self.agent.handle, _lib.text(request), reply, _MAX_REPLY, why) != _lib.OK:
            raise CommandError(why.value.decode("utf-8", "replace"))
        return json.loads(reply.value.decode("utf-8", "replace"))

    def _list(self):
        reply = self._ask("list")
        for metric in self._own.values():
            reply["metrics"].append(metric.told())
        return reply


class FromFile:
    """A metric that is a class of the user's, with clear(), update(outputs, labels) and eval(), as mindspore.train's
    Metric has them. One object counts the training, another one evaluations."""

    def __init__(self, name, path):
        self.name, self.path = name, path
        kind = _metric_class(path)
        self._of = {False: kind(), True: kind()}
        self._counts = {}  # evaluation or not -> since, step, batches, number
        self._due = {False: False, True: False}
        self._ended = False  # the evaluation, whose number was taken
        self.clear()

    def clear(self):
        """Both count from here."""
        for evaluation in (False, True):
            self._clear(evaluation)

    def begins_epoch(self):
        """The training's counts from here."""
        self._clear(False)

    def _clear(self, evaluation):
        self._of[evaluation].clear()
        self._counts[evaluation] = 0, 0, 0, 0.0

    def update(self, pair, step):
        """Adds a batch. Whatever the user's code raises, or TypeError where it returns no number."""
        if pair.evaluation and self._ended:
            self._ended = False
            self._clear(True)
        metric = self._of[pair.evaluation]
        metric.update(pair.outputs, pair.labels)
        step = pair.evaluated if pair.evaluation else step
        since, _, batches, _ = self._counts[pair.evaluation]
        self._counts[pair.evaluation] = since or step, step, batches + 1, float(metric.eval())
        self._due[pair.evaluation] = True

    def take(self, evaluation):
        """(number that has not been reported, its step); (None, 0): there is none."""
        if not self._due[evaluation]:
            return None, 0
        self._due[evaluation] = False
        self._ended = self._ended or evaluation
        _, step, _, number = self._counts[evaluation]
        return number, step

    def told(self):
        """For the list of metrics."""
        told = {"name": self.name, "definition": '%s from "%s"' % (self.name, self.path)}
        for part, evaluation in (("train", False), ("eval", True)):
            since, step, batches, value = self._counts[evaluation]
            if batches or not evaluation:
                told[part] = {"since": since, "step": step, "samples": 0, "batches": batches, "numbers": [
                    {"name": self.name, "value": value}] if batches else []}
        return told


def _metric_class(path):
    """The class in a file. CommandError: there is none, or there are several."""
    names = runpy.run_path(path, run_name="gradb_metric")
    found = [thing for thing in names.values() if inspect.isclass(thing) and thing.__module__ == "gradb_metric"
             and all(callable(getattr(thing, method, None)) for method in ("clear", "update", "eval"))]
    if len(found) != 1:
        raise CommandError("%s has %s: it needs one, with clear(), update(outputs, labels) and eval()" % (
            path, "no class that is a metric" if not found else "%d classes that are metrics" % len(found)))
    return found[0]


def _mistake(error, path):
    """The error in one line, with the line of the file that it came from."""
    line = 0
    place = error.__traceback__
    while place is not None:
        if os.path.abspath(place.tb_frame.f_code.co_filename) == os.path.abspath(path):
            line = place.tb_lineno
        place = place.tb_next
    text = str(error).strip().split("\n", 1)[0]
    return "%s: %s%s" % (type(error).__name__, text, " (%s:%d)" % (os.path.basename(path), line) if line else "")
