# SPDX-License-Identifier: MIT
"""Metrics at the losses of MindSpore, see ../metrics.py.

Outputs and labels are what a loss cell is called with in Python, and what Model.eval gives to its metrics, in both
modes. Compiled steps and losses that are functions show them to nobody: there the values of the two nodes are read, for
which the operators of each step are watched. What is given is read when the step ends, so that no step waits for it;
on a device it is counted there (../counting.py)."""
import contextlib
import os
import random
import sys
import threading

import mindspore
import numpy
from mindspore import nn

from .. import frames, metrics
from ..wrappers import Wrappers
from . import commands, hooks, values
from .counter import Counter
from .guard import guarded

_FORMS = {"SoftmaxCrossEntropyWithLogits": metrics.CLASSES, "CrossEntropyLoss": metrics.CLASSES,
          "NLLLoss": metrics.CLASSES, "FocalLoss": metrics.CLASSES, "BCELoss": metrics.PROBABILITIES,
          "BCEWithLogitsLoss": metrics.LOGITS, "MSELoss": metrics.VALUES, "L1Loss": metrics.VALUES,
          "MAELoss": metrics.VALUES, "RMSELoss": metrics.VALUES, "SmoothL1Loss": metrics.VALUES,
          "HuberLoss": metrics.VALUES}
_MINDSPORE = os.path.dirname(os.path.abspath(mindspore.__file__)) + os.sep
_MAX_WAITING = 64  # batches of an evaluation, which has no end of a step


def _form_of(loss):
    """What the first two inputs of a loss cell are, of enum gradb_pair; 0: unknown."""
    return next((_FORMS[kind.__name__] for kind in type(loss).__mro__ if kind.__name__ in _FORMS), 0)


def _classes():
    """The loss cells."""
    modules = [nn] + ([mindspore.mint.nn] if hasattr(mindspore, "mint") else [])
    found = (getattr(module, name, None) for module in modules for name in _FORMS)
    return dict.fromkeys(kind for kind in found if kind is not None)


class Metrics(metrics.Metrics, Wrappers):
    """Wraps the losses while a metric is asked for."""

    def __init__(self, agent):
        metrics.Metrics.__init__(self, agent)
        Wrappers.__init__(self)
        self._waiting = []
        self._asked = {}    # definition -> its nodes are known, of metrics that no batch was given for yet
        self._calls = 0     # of losses in a training step
        self._inside = False
        self._on_host = False
        self._forced = os.environ.get("GRADB_METRICS_ON_DEVICE") == "1"  # also on the CPU, for tests

    def hook(self):
        """Listens to loss cells and to Model.eval."""
        for kind in _classes():
            self._wrap(kind, "__call__", self._loss(kind))
        self._wrap(mindspore.Model, "_update_metrics", self._evaluates(mindspore.Model._update_metrics))
        self.agent.happenings.on("step-end", self._step_ends)

    def unhook(self):
        """Takes that back."""
        self.remove()
        self._waiting, self._asked = [], {}
        self.agent.happenings.off("step-end", self._step_ends)

    def _loss(self, kind):
        own, original = self, vars(kind).get("__call__")
        thread = threading.get_ident()

        def __call__(cell, *args, **kwargs):
            call = original or super(kind, cell).__call__.__func__
            if own._inside or threading.get_ident() != thread:
                return call(cell, *args, **kwargs)
            own._inside = True
            try:
                result = call(cell, *args, **kwargs)
            finally:
                own._inside = False
            own.called(cell, args, result)
            return result
        return __call__

    def _evaluates(self, original):
        own = self

        def _update_metrics(model, outputs):
            own.evaluates(model, outputs)
            return original(model, outputs)
        return _update_metrics

    # ---- what is seen ----

    @guarded
    def evaluates(self, model, outputs):
        """Model.eval has a batch's loss, outputs and labels."""
        found = list(outputs) if isinstance(outputs, tuple) else []
        chosen = getattr(model, "_eval_indexes", None) or range(3)
        if len(found) < 3 or max(chosen) >= len(found):
            return
        loss, given, labels = (found[index] for index in chosen)
        function = getattr(model, "_loss_fn", None)
        self._wait(metrics.Pair(given, labels, _form_of(function), _ignored(function),
                                self.agent.steps.computed(), loss))

    @guarded
    def called(self, cell, args, result):
        """A loss cell was called in Python."""
        agent = self.agent
        if not agent.steps.begun() or agent.steps.evaluating or len(args) < 2:
            return
        if not agent.connected():
            self.stop()
            return
        evaluation = bool(agent.happenings.evaluates)
        place = _caller()
        if not self.is_first_loss(place, lambda: "%s:%d" % (os.path.basename(place[0]), place[1]), evaluation):
            return
        self._calls += not evaluation
        loss = result if evaluation else None
        evaluated = agent.steps.computed() if evaluation else None
        self._wait(metrics.Pair(args[0], args[1], _form_of(cell), _ignored(cell), evaluated, loss))

    # ---- reading ----

    def _wait(self, pair):
        self._waiting.append(pair)
        if len(self._waiting) >= _MAX_WAITING:
            self.flush()

    def flush(self):
        """Gives the batches that wait."""
        waiting, self._waiting = self._waiting, []
        on_device = self._forced or not values.is_in_host_memory()
        with self.agent.own_moment():
            copied = [self._count_there(pair) if on_device else (None,) for pair in waiting]
            self.give_counts()
            for pair, names in zip(waiting, copied):
                pair.loss = values.number_of(pair.loss) if pair.loss is not None else None
                try:
                    if names:
                        self.give(pair, names)
                except values.NoValue as error:
                    self.say_once("metrics cannot read a batch: %s" % error)

    def _count_there(self, pair):
        """Counts on the device. Returns the names of metrics that cannot be counted there; None: all."""
        try:
            return tuple(self.count(pair))
        except (RuntimeError, TypeError, ValueError, AttributeError) as error:  # an operator is missing there
            if not self._on_host:
                self._on_host = True
                self.say("metrics copy outputs and labels to the host: %s" % str(error).strip().split("\n", 1)[0])
            return (None,)

    def ops(self, _value):
        """The operators."""
        return Counter()

    def form_of(self, value):
        """Its type and shape."""
        return str(value.dtype).rsplit(".", 1)[-1].lower().rstrip("_"), tuple(value.shape)

    def numbers_of(self, tensors):
        """Their elements."""
        every = mindspore.ops.cat(tensors).asnumpy()
        ends = numpy.cumsum([len(tensor) for tensor in tensors])
        return [part.tolist() for part in numpy.split(every, ends[:-1])]

    def _step_ends(self, _kind, _info):
        self.flush()
        calls, self._calls = self._calls, 0
        asked, self._asked = self._asked, {}
        for definition, known in asked.items() if not calls else ():
            if known:
                self._ask("add " + definition)
            self.say("metric %s: step %d called no loss cell in Python: %s" % (
                definition.split(" ", 1)[0], self.agent.steps.step,
                "the operators of each step are watched for its nodes" if known else
                "only Model.eval is counted; name nodes with `metric ... of OUTPUTS against LABELS`"))

    def evaluated(self, kind=None, info=None):
        """An evaluation is over."""
        self.flush()
        super().evaluated(kind, info)

    # ---- for ../metrics.py ----

    def tensor(self, value):
        """The struct of a tensor, and what holds its memory."""
        return values.describe(value)

    def _add(self, verb, rest):
        reply = super()._add(verb, rest)
        if "note" in reply and not rest.partition(" ")[2].startswith(("= loss", "from ")) and self.active:
            self._asked[rest] = verb == "found"
        return reply

    @contextlib.contextmanager
    def programs_moment(self):
        """Random generators are as before after it."""
        python, numpys = random.getstate(), numpy.random.get_state()
        own = mindspore.get_rng_state() if hasattr(mindspore, "get_rng_state") else None
        try:
            with self.agent.own_moment():
                yield
        finally:
            random.setstate(python)
            numpy.random.set_state(numpys)
            if own is not None:
                mindspore.set_rng_state(own)

    def note(self):
        """What the user must know."""
        return "compiled steps show no outputs: they are looked into, or only Model.eval is counted" \
            if hooks.is_graph_mode() else ""


def _caller():
    """(file, line) of the program's code that calls a loss."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((frames.OWN, _MINDSPORE)):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _ignored(loss):
    """The label that does not count for a loss, or None."""
    ignore = getattr(loss, "ignore_index", None) if isinstance(loss, nn.Cell) else None
    return ignore if isinstance(ignore, int) else None


def _metric(agent, args, node):
    return agent.metrics.command(agent, args, node)


commands.register("metric", _metric, "what `metric` and `info metrics` of the debugger ask for", "REQUEST")
