# SPDX-License-Identifier: MIT
"""Metrics at the loss functions of PyTorch, see ../metrics.py.

torch.nn.functional and the modules call a few functions in C for all losses. Those are wrapped, so that it does not
matter how the script imported its loss. On a device, batches are counted there (../counting.py), and the counts are
read when the step ends, where the loss is read as well."""
import contextlib
import ctypes
import os
import random
import sys

import torch

from .. import _lib, metrics, native
from ..wrappers import Wrappers
from . import commands, device_stats, devices, regions, scripted, stack, values
from .counter import Counter
from .guard import guarded, of_program

_NN = torch._C._nn
# Where PyTorch calls the function, its name, and what its first two arguments are.
_LOSSES = ((_NN, "cross_entropy_loss", metrics.CLASSES), (_NN, "nll_loss_nd", metrics.CLASSES),
           (_NN, "binary_cross_entropy", metrics.PROBABILITIES),
           (torch, "binary_cross_entropy_with_logits", metrics.LOGITS), (_NN, "mse_loss", metrics.VALUES),
           (_NN, "l1_loss", metrics.VALUES), (_NN, "smooth_l1_loss", metrics.VALUES),
           (_NN, "huber_loss", metrics.VALUES))
_MOST = 64 << 20  # bytes on a device that wait for the end of a step
_IGNORE = 2  # position of ignore_index after outputs and labels
_WRAPPED = 3  # frames between _is_known_site and the wrapper of a loss


class Metrics(metrics.Metrics, Wrappers):
    """Wraps the losses while a metric is asked for."""

    def __init__(self, agent):
        metrics.Metrics.__init__(self, agent)
        Wrappers.__init__(self)
        self._waiting = []  # (pair on a device, names of metrics that cannot be counted there)
        self._held = 0      # bytes of them, which the training cannot use
        self._waits = self._on_host = False
        self._forced = os.environ.get("GRADB_METRICS_ON_DEVICE") == "1"  # also on the CPU, for tests
        self._inside = False
        self._known = None  # (frames to the training's loss, the code that calls it, instruction)
        self._step = 0      # of the last call of a loss in the training
        self._seen = False  # a loss was called in the training since it was last looked
        self._asked = {}    # name -> the first whole step since it was asked for
        self._form = None   # what the last batch looked like
        self._structs = self._batch = None  # of that
        self._again = None  # counts a batch that is like the last one, without Python (python/native/batch.c)

    def hook(self):
        """Wraps the losses."""
        for where, name, form in _LOSSES:
            if callable(getattr(where, name, None)):
                original = getattr(where, name)
                self._wrap(where, name, scripted.stands_for(self._loss(form, original), original))

    def unhook(self):
        """Takes that back."""
        for where, name, _, wrapper in self._wrapped:
            if getattr(where, name) is wrapper:
                scripted.forget(wrapper)
        self.remove()
        self._waiting, self._known, self._form, self._again = [], None, None, None
        self._waits = False
        self._asked = {}
        self.agent.happenings.off("step-end", self._step_ends)
        self.agent.happenings.off("step-end", self._first_step_ends)

    def _loss(self, form, original):
        called, is_compiling, is_tracing = self._called, regions.is_compiling, torch._C._get_tracing_state

        def loss(*args, **kwargs):
            result = original(*args, **kwargs)
            if not is_compiling() and is_tracing() is None and (
                    self._again is None or kwargs or not self._again(*args)):
                outputs = args[0] if args else kwargs.get("input")
                labels = args[1] if len(args) > 1 else kwargs.get("target")
                if isinstance(outputs, torch.Tensor) and isinstance(labels, torch.Tensor):  # else: torch.fx traces it
                    called(form, outputs, labels, args[2:], kwargs, result)
            return result
        return loss

    @guarded
    def _called(self, form, outputs, labels, args, kwargs, result):
        agent = self.agent
        if self._inside or not agent.is_training_thread() or not agent.steps.begun() or agent.regions.recording():
            return
        evaluation = agent.happenings.evaluates or not torch.is_grad_enabled()
        if not self._is_known_site(agent.steps.step, evaluation) and not self._counts(evaluation):
            return
        self._seen = self._seen or not evaluation
        ignore = None
        if form == metrics.CLASSES and not labels.is_floating_point():
            ignore = kwargs.get("ignore_index", args[_IGNORE] if len(args) > _IGNORE else None)
        if evaluation or self._own or self._forced or not self._count(form, outputs, labels, ignore):
            evaluated = self._evaluated() if evaluation else None
            self._keep(metrics.Pair(outputs.detach(), labels.detach(), form, ignore, evaluated, None), result)

    def _evaluated(self):
        """The step that an evaluation belongs to."""
        happenings = self.agent.happenings
        return happenings.evaluated if happenings.evaluates else self.agent.steps.passed()

    def _is_known_site(self, step, evaluation):
        """Whether this is the step's first call of a loss, by the code that called it last time: no need to walk
        the whole stack again."""
        if evaluation or self._known is None or self._step == step:
            return False
        self._step = step
        depth, code, instruction = self._known
        try:
            frame = sys._getframe(depth)
        except ValueError:
            return False
        return frame.f_code is code and frame.f_lasti == instruction

    def _counts(self, evaluation):
        """Whether this call of a loss counts."""
        site = stack.site(4)
        if not self.is_first_loss(site, lambda: stack.spot(stack.shown(stack.frames(6))), evaluation):
            return False
        if not evaluation:
            depth, frame = 1, sys._getframe(1)
            user = stack.user_frame(2)
            while frame is not None and frame is not user:
                depth, frame = depth + 1, frame.f_back
            self._known = (depth, user.f_code, user.f_lasti) if user is not None else None
            self._again = None
        return True

    def _count(self, form, outputs, labels, ignore):
        """Gives libgradb a batch of plain tensors in host memory, whose form is mostly that of the last batch. False:
        it is something else."""
        if not (type(outputs) in values.PLAIN and type(labels) in values.PLAIN and outputs.is_cpu and labels.is_cpu):
            return False
        try:
            given = (outputs.shape, outputs.stride(), outputs.dtype, labels.shape, labels.stride(), labels.dtype, form,
                     ignore)
            if given != self._form:
                self._structs = values.describe(outputs), values.describe(labels)
                self._batch = metrics.batch_of(*self._structs, form, ignore)
                self._form, self._again = given, None
            elif self._again is None:
                self._again = self._counter(outputs, labels)
            if outputs.is_neg() or labels.is_neg():
                return False
            first, second = self._structs
            first.data, second.data = outputs.data_ptr(), labels.data_ptr()
        except (RuntimeError, values.NoValue):  # the slow way says why
            self._form = None
            return False
        if not self.agent.library.gradb_metric_batch(self.agent.handle, None, ctypes.byref(self._batch)):
            self.stop()
        return True

    def _counter(self, outputs, labels):
        """What counts more batches of this form without Python, or None."""
        context, known = self.agent.native, self._known
        address = native.address(self.agent.library, "gradb_metric_batch")
        if context is None or known is None or not address:
            return None
        *_, form, ignore = self._form
        at = _IGNORE + 2 if form == metrics.CLASSES and not labels.is_floating_point() else -1
        return native.module.Batch(
            context, self, self.agent.happenings, (self._batch, self._structs), sys._getframe, known[0] - _WRAPPED,
            *known[1:], ignore, at, ctypes.addressof(self._batch), address,
            *((values.geometry(tensor)[4], tensor.element_size()) for tensor in (outputs, labels))).count

    def _keep(self, pair, result):
        """Gives a batch now, or when the step ends."""
        if not self.agent.connected():
            self.stop()
        elif pair.outputs.is_cpu and not self._forced:
            pair.loss = self._number(result) if pair.evaluation and result.numel() == 1 else None
            self._give(pair)
        else:
            self._wait(pair, result)

    @staticmethod
    def _number(result):
        """The number in a tensor of one element; None: it cannot be read, inside a transform for example."""
        try:
            with values.outside_training():
                return float(values.readable(result))
        except values.NoValue:
            return None

    def _give(self, pair, names=(None,)):
        self._inside = True
        try:
            with self.agent.own_moment(), values.outside_training():
                self.give(pair, names)
        except values.NoValue as error:
            self.say_once("metrics cannot read a batch: %s" % error)
        finally:
            self._inside = False

    # ---- on a device ----

    def _wait(self, pair, result):
        """Counts a pair on its device; the counts, and what can only be counted here, wait until the step ends."""
        if not self._waits:
            self._waits = True
            self.agent.happenings.on("step-end", self._step_ends)
        pair.loss = result.detach() if pair.evaluation and result.numel() == 1 else None
        self._inside = True
        try:
            with self.agent.own_moment(), values.outside_training():
                pair.outputs, pair.labels = values.readable(pair.outputs), values.readable(pair.labels)
                copied = self.count(pair)
        except values.NoValue as error:
            self.say_once("metrics cannot read a batch: %s" % error)
            return
        except RuntimeError as error:  # an operator is missing there, or memory is short
            if not self._on_host:
                self._on_host = True
                self.say("metrics copy outputs and labels to the host: %s" % str(error).split("\n", 1)[0])
            copied = [None]
        finally:
            self._inside = False
        if copied:
            self._waiting.append((pair, tuple(copied)))
            self._held += sum(tensor.numel() * tensor.element_size() for tensor in (pair.outputs, pair.labels))
        if len(self._waiting) + len(self._counted) > 64 or self._held > _MOST:  # an evaluation has no end of a step
            self.flush()

    def _step_ends(self, _kind, _info):
        self.flush()

    def evaluated(self, kind=None, info=None):
        """An evaluation is over."""
        self.flush()
        super().evaluated(kind, info)

    def flush(self):
        """Gives what waits."""
        waiting, self._waiting, self._held = self._waiting, [], 0
        with self.agent.own_moment(), values.outside_training():
            self.give_counts()
            for pair, _ in waiting:
                pair.outputs, pair.labels = device_stats.to_host(pair.outputs), device_stats.to_host(pair.labels)
                pair.loss = float(pair.loss) if pair.loss is not None else None
        for pair, names in waiting:
            self._give(pair, names)

    def ops(self, value):
        """The operators on its device."""
        return Counter(value.device)

    def form_of(self, value):
        """Its type and shape."""
        return str(value.dtype).rsplit(".", 1)[-1], tuple(value.shape)

    def numbers_of(self, tensors):
        """Their elements."""
        return [part.tolist() for part in torch.cat(tensors).cpu().split([len(tensor) for tensor in tensors])]

    # ---- for ../metrics.py ----

    def tensor(self, value):
        """The struct of a tensor, and the tensor that it describes."""
        readable = values.readable(value)
        return values.describe(readable), readable

    @contextlib.contextmanager
    def programs_moment(self):
        """Without gradients; random generators are as before after it."""
        state, python = torch.get_rng_state(), random.getstate()
        numpy = sys.modules.get("numpy")
        numpys = numpy.random.get_state() if numpy is not None else None
        device = devices.used()
        states = device.random_states() if device is not None else []
        try:
            with torch.no_grad(), of_program():
                yield
        finally:
            torch.set_rng_state(state)
            random.setstate(python)
            if numpys is not None:
                numpy.random.set_state(numpys)
            for restore, own in states:
                restore(own)

    def command(self, agent, args, node):
        """See ../metrics.py."""
        self._again = None
        return super().command(agent, args, node)

    def _add(self, verb, rest):
        reply = super()._add(verb, rest)
        name, _, more = rest.partition(" ")
        if "note" in reply and not more.startswith(("= loss", "from ")) and name != "mean_loss":
            steps = self.agent.steps
            self._asked[name] = steps.step + (not steps.is_between())
            self._seen = False
            self.agent.happenings.off("step-end", self._first_step_ends)
            self.agent.happenings.on("step-end", self._first_step_ends)
        return reply

    def _first_step_ends(self, _kind, _info):
        """Says why nothing is counted, where no loss was called in a whole step."""
        step = self.agent.steps.step
        late = sorted(name for name, first in self._asked.items() if step >= first)
        if late and not self._seen:
            self.say("metric %s: step %d called no loss function of PyTorch%s: name nodes with `metric ... of OUTPUTS "
                     "against LABELS`" % (", ".join(late), step, " outside code of torch.compile, which "
                                          "TORCH_COMPILE_DISABLE=1 runs operator by operator"
                                          if self.agent.regions.compiles else ""))
        self._asked = {name: first for name, first in self._asked.items() if name not in late}
        if not self._asked:
            self.agent.happenings.off("step-end", self._first_step_ends)

    def note(self):
        """What the user must know."""
        return "inside code of torch.compile or a CUDA graph a loss is not seen" if self.agent.regions.compiles else ""


def _metric(agent, args, node):
    return agent.metrics.command(agent, args, node)


commands.register("metric", _metric, "what `metric` and `info metrics` of the debugger ask for", "REQUEST")
