# SPDX-License-Identifier: MIT
"""Finds where the numbers of a training become infinite or NaN (../overflows.py), in steps whose operators are watched:
the outputs of each operator in the forward pass, of each node of the backward pass and of each optimizer are checked;
where they are not finite, its inputs are checked too.

MindSpore does not report all operators: what writes in place, basic indexing and compiled code inside a step are not
seen. A value that such code made is reported when an operator is given it."""
import math

import numpy
from mindspore import Parameter, Tensor

from .. import _lib, overflows
from ..commands import CommandError
from ..overflows import INTENDED, Origin
from . import commands, nonfinite, operators, stack
from .guard import guarded
from .outside import is_outside

_MAX_COPY = 256 << 20  # bytes of an input that is copied before an operator may overwrite it
_LOST = "the operator may have overwritten it: its previous value is unknown"


class Checker(overflows.Rules):
    """Checks operators while somebody wants it."""
    nonfinite = nonfinite

    def __init__(self, agent, found, carried, is_known):
        super().__init__(agent, found, lambda node, tensor: self._bad.keys() <= {node.id} and carried(node, tensor),
                         is_known)
        self._step = -1
        self._bad = {}     # id of a Node, or compiled code, that made numbers not finite -> whether it made NaN
        self._checked = set()  # ids of Nodes whose outputs were finite
        self._frames = {}  # id of a Node of the forward pass -> where it was called

    def _begins(self):
        if self.agent.steps.step != self._step:
            self._step = self.agent.steps.step
            self._tainted = False
            self._bad, self._checked, self._frames = {}, set(), {}

    # ---- forward ----

    @guarded
    def given(self, args):
        """An operator is about to run: [(input, its value before or a text why that is unknown)]."""
        primitive = getattr(args[0], "side_effect_mem", False) if args else False
        return [(tensor, _before(tensor, primitive)) for tensor in operators.inputs(args)]

    @guarded
    def operator_ran(self, node, args, given, outputs):
        """An operator has returned `outputs`."""
        self._begins()
        self.looked += 1
        self._frames[node.id] = frames = stack.frames(3)
        suspects = self.nonfinite.suspects(outputs)
        if not suspects:
            self._checked.add(node.id)
            return
        intended = _is_given_one(args, self.agent.looking)
        if intended and self._is_known(node):
            self._bad[node.id] = False
            return
        given = [pair for pair in given or () if not (intended and pair[0].shape == ())]  # None: after a fault
        inputs = [("input.%d" % i, value) for i, (_, value) in enumerate(given)]
        origin = Origin(node, "forward", frames, None, inputs, list(enumerate(outputs)))
        origin.bad = self.nonfinite.not_finite(suspects)
        if intended:
            origin.flags.append(INTENDED)
        self._judge(origin, inputs, [tensor for tensor, _ in given])

    def _judge(self, origin, inputs, tensors):
        if not origin.bad:
            self._checked.add(origin.node.id)
            return
        self._bad[origin.node.id] = any(found["nan"] for _, _, found in origin.bad)
        if not self._explains(origin, inputs, tensors):
            self._report(origin)
        elif not self._tainted:
            self._ask_makers(origin)

    def _ask_makers(self, origin):
        """Its inputs explain it: says so where they were finite when they were made."""
        made = self.agent.looking.maker_of if self.agent.looking else lambda tensor: None
        for (_, value), maker in [(pair, made(pair[1])) for pair in origin.inputs if isinstance(pair[1], Tensor)]:
            if maker is not None and maker[0].id in self._checked and self.nonfinite.may_be_bad(value):
                self.agent.overflows.changed(origin.node, maker[0])
                return

    def _report(self, origin):
        if INTENDED not in origin.flags:
            self._tainted = True
        self._found(origin)

    @guarded
    def compiled_ran(self, executor, args, result):
        """A compiled function has run inside a step that is not compiled: its operators are not seen."""
        self._begins()
        with self.agent.own_moment():
            made, given = list(operators.inputs((result,))), list(operators.inputs(args))
            if self.nonfinite.not_finite(self.nonfinite.suspects(made)) and not self.nonfinite.suspects(given) \
                    and not self._tainted:
                self._bad[executor] = True
                self.agent.overflows.compiled_made(getattr(executor.fn, "__name__", "?"))

    # ---- backward ----

    @guarded
    def backward_ran(self, node, forward, gradients):
        """A node of the backward pass ran. forward: Node of the operator that it belongs to, or None; gradients: those
        that it made and those that it received."""
        self._begins()
        self.looked += 1
        made, received = gradients
        suspects = self.nonfinite.suspects(made)
        if not suspects:
            self._checked.add(node.id)
            return
        inputs = [("gradient.%d" % slot, tensor) for slot, tensor in enumerate(received) if tensor is not None]
        origin = Origin(node, "backward", (), None, inputs, list(enumerate(made)))
        origin.bad = self.nonfinite.not_finite(suspects)
        origin.scale = self.agent.scaler.scale_now()
        if origin.scale != 1.0:
            origin.flags.append("scaled")
        if (forward is None or forward.id not in self._frames) and self._bad:
            self._bad[node.id] = True  # it was not seen: what it was given is unknown
            return
        if forward is not None:  # its line is that of its forward operator, whose inputs count too
            origin.frames = self._frames.get(forward.id, ())
            nan = any(found["nan"] for _, _, found in origin.bad)
            if forward.id in self._bad and (self._tainted or not nan):
                self._bad[node.id] = nan
                return
            inputs = inputs + [("forward", value) for value in self._inputs_of(forward)]
        self._judge(origin, inputs, [tensor for _, tensor in inputs])

    def _inputs_of(self, node):
        for maker, slot in node.edges:
            held = maker.get() if maker.get is not None else None
            if held is None and self.agent.looking:
                outputs = self.agent.looking.outputs.get(maker.id, ())
                held = outputs[slot] if slot < len(outputs) else None
            if held is not None:
                yield held

    # ---- optimizers ----

    @guarded
    def optimizer_ran(self, known):
        """An optimizer has updated its parameters."""
        self._begins()
        frames = stack.frames(3)
        for reference, _, _, node in known.updates:
            parameter = reference()
            gradient = self.agent.parameters.gradients.get(id(parameter))
            if parameter is None or node is None or gradient is None:
                continue
            self.looked += 1
            with self.agent.own_moment():
                key = ("weight", id(parameter))
                suspects = self._suspects_again(key, parameter)
                origin = Origin(node, "optimizer", frames, None, [("gradient.0", gradient)], [(0, parameter)])
                origin = self._update_origin(origin, key, suspects, gradient) if suspects else None
            if origin is not None:
                self._report(origin)


def _before(tensor, overwrites):
    """An input, or a copy of it where the operator may overwrite it, or a text why there is none."""
    if not isinstance(tensor, Parameter) or not overwrites or getattr(tensor, "has_init", False):
        return tensor
    if tensor.nbytes > _MAX_COPY:
        return _LOST
    return tensor.asnumpy().copy()


def _is_given_one(args, looking):
    """Whether a number among the arguments is infinite or NaN: then that is intended. MindSpore makes a tensor of a
    number."""
    for value in args:
        if isinstance(value, float) and not math.isfinite(value):
            return True
        if isinstance(value, (tuple, list)) and _is_given_one(value, looking):
            return True
        if isinstance(value, Tensor) and not isinstance(value, Parameter) and value.shape == () \
                and nonfinite.may_be_bad(value) and (looking is None or is_outside(looking.maker_of(value))):
            return True
    return False


# ---- the list and the commands ----

class Overflows(overflows.Overflows):
    """What is wanted, and what was found."""
    usage = "stop [N] | off"

    def __init__(self, agent):
        super().__init__(agent)
        self._compiled = set()  # names of compiled functions that were reported

    def make_checker(self):
        """See the base."""
        if operators.MODE is None:
            self.stops = 0
            raise CommandError("this MindSpore does not report operators, which 2.9 and later do: use "
                               "\"watch TO on gradients\" and \"watch TO on weights\"")
        return Checker(self.agent, self.found, self.carried, self.is_known)

    def publish(self):
        """See the base."""
        self.agent.graph.publish()
        self.agent.library.gradb_sync(self.agent.handle)

    def spot(self, frames):
        """See the base."""
        return stack.spot(frames)

    def giver(self, tensor):
        """See the base."""
        maker = self.agent.looking.maker_of(tensor) if self.agent.looking and isinstance(tensor, Tensor) else None
        if is_outside(maker):
            return "a tensor from outside" + (" (%s)" % maker[0].name if maker is not None else "")
        return maker[0].name

    def changed(self, node, maker):
        """A node was given numbers that are not finite, which were finite when `maker` made them."""
        if self._hint is None:
            given = "%s, whose output was finite: code that MindSpore does not report has overwritten it" % maker.name
            self._hint = {"step": self.agent.steps.step, "node": node.name, "given": given}
            self._happened("in step %(step)d %(node)s was given numbers that are not finite: %(given)s" % self._hint)

    def compiled_made(self, name):
        """A compiled function has made numbers that are not finite of finite ones."""
        if name not in self._compiled:
            self._compiled.add(name)
            self._happened("in step %d the compiled function %s made numbers that are not finite of finite ones: its "
                           "operators are seen without @jit" % (self.agent.steps.step, name))

    def range_of(self, name, value, found=None):
        """See the base."""
        if not isinstance(value, (Tensor, numpy.ndarray)):
            return {"name": name, "note": value if isinstance(value, str) else "not a tensor"}
        about = {"name": name, "dtype": str(value.dtype).lower(), "shape": list(value.shape)}
        try:
            return dict(about, **(found or nonfinite.stats_of(value)))
        except (RuntimeError, TypeError) as error:
            return dict(about, note=str(error).split("\n", 1)[0])


def _refuse(_store, _words):
    raise CommandError("a call of MindSpore's cannot be repeated, so it is not written: \"catch overflow\" stops at "
                       "it, where you can save its inputs and outputs")


def _rerun(_agent, _args, _node):
    _refuse(None, None)


Overflows.words = dict(overflows.WORDS, record=_refuse, save=_refuse)
commands.register("overflow", overflows.command, "stop at operators that make Inf or NaN of finite inputs",
                  "[%s]" % Overflows.usage)
commands.register("rerun", _rerun, "not for MindSpore: its calls cannot be repeated")
