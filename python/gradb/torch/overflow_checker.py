# SPDX-License-Identifier: MIT
"""Finds where the numbers of a training become infinite or NaN (../overflows.py): the outputs of each operator are
checked after it has run, in forward, backward and optimizer; where they are not finite, its inputs are checked too.

Inputs are only checked when an output is bad, so healthy operators cost one pass over their outputs. What an operator
is about to overwrite is copied before."""
import torch

from .. import _lib
from ..overflows import Origin, Rules
from . import backward, calls, devices, nonfinite, ops, stack, values
from .guard import guarded

CALL = "gradb.call"           # in grad_fn.metadata: the forward call
_MAX_HELD = 512 << 20         # bytes of inputs that are kept until their backward pass
_WRITES_STATISTICS = {"batch_norm": ("running_mean", "running_var"), "instance_norm": ("running_mean", "running_var")}
_LOGARITHMS = ("log", "log2", "log10")
_WRITTEN = "the operator overwrote it: its previous value is unknown"


class Given:
    """A call before it runs.

    tensors: (tensor, version); before: id(tensor) -> copy of what the call overwrites, or a text why there is none;
    ordinal: of its function in the step; bad: its outputs were not finite;
    places: memory that it keeps until its backward pass -> bytes."""
    __slots__ = ("function", "name", "args", "kwargs", "tensors", "before", "ordinal", "autocast", "bad", "places")

    def __init__(self, function, name, args, kwargs):
        self.function = function
        self.name = name
        self.args = args
        self.kwargs = kwargs or {}
        self.tensors = []
        self.before = {}
        self.ordinal = 0
        self.autocast = None
        self.bad = False
        self.places = {}

    def drop(self):
        """Drops its tensors."""
        self.args, self.kwargs, self.tensors, self.before = (), {}, [], {}
        self.function = None
        self.places = {}

    def value(self, tensor, version):
        """An input's value before the call, or a text why it is unknown."""
        taken = self.before.get(id(tensor))
        if taken is None:
            taken = tensor if values.version_of(tensor) == version else _WRITTEN
        return taken

    def replaced(self):
        """For calls.Encoder: what to use instead of inputs that have changed."""
        found = dict(self.before)
        for tensor, version in self.tensors:
            if id(tensor) not in found and values.version_of(tensor) != version:
                found[id(tensor)] = _WRITTEN
        return found


class Checker(Rules):
    """Checks operators while somebody wants it."""
    nonfinite = nonfinite

    def __init__(self, *args):
        super().__init__(*args)
        self._given = None
        self._step = -1
        self._ordinals = {}       # function -> calls in this step
        self._held = []           # Givens that wait for their backward pass
        self._held_bytes = 0
        self._held_places = {}    # memory that they keep -> how many of them keep it
        self._nested = False      # the last one was found in a nested backward pass
        self._outer = {}          # backward.PassNode -> (Given, the PassNode that received the operator's gradient)
        self._inner = {}          # PassNode -> how many of its inner nodes have not run yet
        self._received = {}       # PassNode -> gradients that it received, while inner nodes are to run

    # ---- forward ----

    @guarded
    def begins(self, function, operator, args, kwargs):
        """An operator is about to run."""
        if self.agent.steps.step != self._step:
            self._new_step()
        given = self._given = Given(function, operator.name, args, kwargs)
        given.ordinal = self._ordinals[function] = self._ordinals.get(function, -1) + 1
        found = []
        ops.tensors_in(args, found)
        out = None
        if kwargs:
            out = kwargs.get("out")
            ops.tensors_in({key: value for key, value in kwargs.items() if key != "out"}, found)
        given.tensors = [(tensor, values.version_of(tensor)) for tensor in found]
        given.autocast = _autocast()
        written = self._written(operator, args, given.kwargs, out)
        if written:
            self._copy(given, written)

    def forget(self):
        """The operator has ended, normally or not."""
        self._given = None

    def _new_step(self):
        self._step = self.agent.steps.step
        self._ordinals = {}
        self._tainted = False
        for given in self._held:
            given.drop()
        self._held = []
        self._held_bytes = 0
        self._held_places = {}

    @staticmethod
    def _written(operator, args, kwargs, out):
        """The tensors that the operator writes."""
        written = []
        if operator.writes or kwargs.get("inplace") is True or _is_foreach(operator.name):
            ops.tensors_in(args[:1] if args else kwargs.get("input"), written)
        elif operator.name in _WRITES_STATISTICS:
            ops.tensors_in(args[1:3], written)
            ops.tensors_in([kwargs.get(name) for name in _WRITES_STATISTICS[operator.name]], written)
        ops.tensors_in(out, written)
        return written

    def _copy(self, given, written):
        """Copies inputs that share memory with what is written."""
        with self.agent.own_moment(), values.outside_training():
            places = {nonfinite.memory_of(tensor) for tensor in written} - {None}
            for tensor, _ in given.tensors:
                if nonfinite.memory_of(tensor) in places:
                    given.before[id(tensor)] = nonfinite.copied(tensor)

    @guarded
    def operator_ran(self, node, outputs):
        """The operator that began is this node, and has returned `outputs`."""
        given, self._given = self._given, None
        if given is None:
            return
        self.looked += 1
        suspects = nonfinite.suspects(outputs)
        if suspects and not given.before:
            suspects = [(slot, tensor) for slot, tensor in suspects
                        if not nonfinite.shows_an_input(tensor, given.tensors)]
        origin = self._forward_origin(node, given, outputs, suspects) if suspects else None
        self._hold(given, outputs)
        if origin is not None:
            self._report(origin)

    def _forward_origin(self, node, given, outputs, suspects):
        """The Origin; None when its outputs are finite after all, or its inputs explain them."""
        intended = calls.has_nonfinite_scalar(given.args) or calls.has_nonfinite_scalar(given.kwargs)
        if intended and self._is_known(node):
            given.bad = True
            return None
        with self.agent.own_moment(), values.outside_training():
            bad = nonfinite.not_finite(suspects)
            if not bad:
                return None
            given.bad = True
            inputs = [("input.%d" % i, given.value(tensor, version))
                      for i, (tensor, version) in enumerate(given.tensors)]
            origin = Origin(node, _phase_name(node), stack.frames(3), given, inputs, list(enumerate(outputs)))
            origin.bad = bad
            intended = intended or _is_log_of_mask(given, outputs)
            if intended:
                origin.flags.append("intended")
            explained = self._explains(origin, inputs, [tensor for tensor, _ in given.tensors])
            return None if explained else origin

    def _report(self, origin):
        if "intended" not in origin.flags:
            self._tainted = True
            self._nested = self._is_nested()
        self._found(origin)

    def _is_nested(self):
        return self.agent.backward_depth() > 1

    # ---- what backward needs of the forward pass ----

    def _hold(self, given, outputs):
        """Keeps the call on the grad_fn of its outputs, while there is room."""
        grad_fn = next((tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None), None)
        if grad_fn is None or self._held_bytes > _MAX_HELD:
            return
        if given.before and not self._unknot(given):
            return
        given.places = _places_kept(given)
        for place, size in given.places.items():
            self._held_places[place] = self._held_places.get(place, 0) + 1
            self._held_bytes += size if self._held_places[place] == 1 else 0
        self._held.append(given)
        grad_fn.metadata[CALL] = given

    def _let_go(self, given):
        """Drops a call, which makes room for the next micro-batch."""
        for place, size in given.places.items():
            left = self._held_places.get(place, 0) - 1
            if left > 0:
                self._held_places[place] = left
            elif left == 0:
                del self._held_places[place]
                self._held_bytes -= size
        given.drop()

    @staticmethod
    def _unknot(given):
        """For a call that writes its first argument: replaces the argument by its previous value. The argument is the
        result now, and would keep its own graph. Returns whether there is a previous value."""
        first = given.args[0] if given.args else None
        before = given.before.pop(id(first), None)
        if before is None:
            return "out" not in given.kwargs
        if isinstance(before, str):
            given.before[id(first)] = before
            return False
        given.args = (before,) + tuple(given.args[1:])
        given.tensors = [(before, 0) if tensor is first else (tensor, version) for tensor, version in given.tensors]
        return True

    @guarded
    def again(self, outputs):
        """The operator that began was recomputed (activation checkpointing): its backward pass follows."""
        given, self._given = self._given, None
        if given is not None:
            self._hold(given, outputs)

    # ---- backward ----

    @guarded
    def pass_begins(self, nodes):
        """A pass is about to run: {grad_fn: backward.PassNode}, each after the one that leads to it."""
        for grad_fn, own in nodes.items():
            given = grad_fn.metadata.get(CALL)
            if given is not None and given.function is not None:
                self._outer[own] = (given, own)
            outer = self._outer.get(own)
            if outer is None:
                continue
            for following, _ in grad_fn.next_functions:
                inner = nodes.get(following)
                if inner is not None and inner not in self._outer and _is_inner(following, inner):
                    self._outer[inner] = outer
                    self._inner[outer[1]] = self._inner.get(outer[1], 0) + 1

    def pass_ended(self):
        """The outermost pass has ended."""
        self._outer.clear()
        self._inner.clear()
        self._received.clear()

    @guarded
    def backward_ran(self, own, made, received):
        """A grad_fn has run: it received the gradients `received` and made `made`."""
        if own.variable is not None:
            self._gradient_ran(own, received)
            return
        self.looked += 1
        given, outer = self._outer.get(own, (None, None))
        if self._inner.get(own):
            self._received[own] = received
        suspects, origin = nonfinite.suspects(made), None
        if suspects:
            with self.agent.own_moment(), values.outside_training():
                bad = nonfinite.not_finite(suspects)
                origin = self._backward_origin(own, (made, received, bad), given, outer) if bad else None
        if origin is not None:
            self._report(origin)
        if outer is not None:
            self._inner_ran(own, given, outer)

    def _inner_ran(self, own, given, outer):
        if own is not outer:
            self._inner[outer] -= 1
        if not self._inner.get(outer):
            self._received.pop(outer, None)
            self._let_go(given)

    def _backward_origin(self, own, gradients, given, outer):
        made, received, bad = gradients
        inputs = [("gradient.%d" % slot, tensor) for slot, tensor in enumerate(received)
                  if isinstance(tensor, torch.Tensor)]
        tensors = [tensor for _, tensor in inputs]
        origin = Origin(own.node, "backward", own.mark.stack if own.mark is not None else (), given, inputs,
                        list(enumerate(made)))
        origin.bad = bad
        origin.scale = self.agent.live.scale
        origin.grad_fn = own.type
        if given is None and self._nested and not self._is_nested():
            self._nested = False  # already found inside
            return None
        if given is not None:  # the inputs of its forward operator count too
            known = [(tensor, given.value(tensor, version)) for tensor, version in given.tensors]
            known = [(tensor, value) for tensor, value in known if not isinstance(value, str)]
            inputs = inputs + [("forward", value) for _, value in known]
            tensors += [tensor for tensor, _ in known]
            if given.bad and (self._tainted or not any(found["nan"] for _, _, found in bad)):
                return None
        if self._explains(origin, inputs, tensors):
            return None
        if origin.scale != 1.0:
            origin.flags.append("scaled")
        if given is None:
            origin.why = ("its forward call is unknown: it is not an operator of PyTorch's, it ran before "
                          "overflows were looked for or in an earlier step, or too much was kept already")
        else:
            origin.gradients = received if own is outer else self._received.get(outer)
        return origin

    def _gradient_ran(self, own, received):
        """A gradient was added to .grad, where the sum may overflow."""
        gradient = own.variable.grad
        suspects = self._suspects_again(id(own.variable), gradient)
        if not suspects:
            return
        with self.agent.own_moment(), values.outside_training():
            bad = nonfinite.not_finite(suspects)
            if not bad:
                return
            self._bad_leaves.add(id(own.variable))
            inputs = [("gradient.%d" % slot, tensor) for slot, tensor in enumerate(received)
                      if isinstance(tensor, torch.Tensor)]
            origin = Origin(own.node, "backward", (), None, inputs, [(0, gradient)])
            origin.bad = bad
            if self._explains(origin, inputs, [tensor for _, tensor in inputs]):
                return
            origin.flags.append("accumulated")
            origin.why = "it is a sum, and the previous value of .grad is unknown"
        self._report(origin)

    # ---- optimizers ----

    @guarded
    def optimizer_ran(self, node, parameter):
        """An optimizer has updated a parameter."""
        self.looked += 1
        key = ("weight", id(parameter))
        suspects = self._suspects_again(key, parameter)
        if not suspects:
            return
        with self.agent.own_moment(), values.outside_training():
            origin = Origin(node, "optimizer", node.stack, None, [("gradient.0", parameter.grad)], [(0, parameter)])
            origin = self._update_origin(origin, key, suspects, parameter.grad)
        if origin is not None:
            self._report(origin)


def _is_foreach(name):
    """Whether it writes each tensor of a list."""
    return name.startswith("_foreach_") and name.endswith("_")


def _is_inner(grad_fn, own):
    """Whether the grad_fn is unmarked: then it belongs to the operator that leads to it."""
    return own.variable is None and CALL not in grad_fn.metadata and backward.marks.of(grad_fn) is None \
        and not isinstance(grad_fn, torch.autograd.function.BackwardCFunction)




def _is_log_of_mask(given, outputs):
    """The logarithm of a matrix of zeros and ones is a way to write a mask of 0 and -inf."""
    if given.name.rstrip("_") not in _LOGARITHMS or len(given.tensors) != 1 or any(
            tensor.requires_grad for tensor in outputs):
        return False
    value = given.value(*given.tensors[0])
    if not isinstance(value, torch.Tensor) or values.is_opaque(value):
        return False
    ones = value == 1
    return bool(ones.any()) and bool((ones | (value == 0)).all())


def _places_kept(given):
    """{place: bytes} of the memory that a call keeps, without parameters, which exist anyway. A view keeps its whole
    storage."""
    found = {}
    copies = [value for value in given.before.values() if not isinstance(value, str)]
    for tensor in [tensor for tensor, _ in given.tensors if not (tensor.is_leaf and tensor.requires_grad)] + copies:
        place = nonfinite.memory_of(tensor)
        if place is not None:
            found[place] = values.storage_of(tensor).nbytes()
    return found


def _phase_name(node):
    return {_lib.FORWARD: "forward", _lib.BACKWARD: "backward", _lib.OPTIMIZER: "optimizer"}.get(node.phase, "forward")


def _autocast():
    """{"device", "dtype"} of the autocast that is active; None."""
    for device in devices.autocasts():
        if _autocast_is_on(device):
            return {"device": device, "dtype": str(_autocast_dtype(device))}
    return None


if hasattr(torch, "get_autocast_dtype"):
    _autocast_is_on = torch.is_autocast_enabled
    _autocast_dtype = torch.get_autocast_dtype
else:  # before 2.4
    def _autocast_is_on(device):
        return torch.is_autocast_enabled() if device == "cuda" else torch.is_autocast_cpu_enabled()

    def _autocast_dtype(device):
        return torch.get_autocast_gpu_dtype() if device == "cuda" else torch.get_autocast_cpu_dtype()
