# SPDX-License-Identifier: MIT
"""Which parameters the training reaches: who reads them, whether a gradient comes back, which optimizer holds them.

In observed steps each tensor has a set of bits: the parameters that it was computed from, and the places at which
gradients are cut off on the way. They are kept as whole numbers, and only for the step."""
import os
import re
import weakref

import torch

from .. import values
from ..optim import parameters_of
from ..swapping import Ref
from . import Watcher, here, parameter_name, piece
from .lines import all_lines, frame_in, only_line

_CHECKPOINTS = r"(gradient|activation)_checkpointing(_enable\(|\s*=\s*True)|use_reentrant\s*=\s*True"
_MOST_NAMES = 4
_FREEZES = re.compile(r"requires?d?_?grad(ient)?s?$|trainable$", re.I)
_MOST_CUTS = 64    # places that cut, of a step
_MOST = 4096       # parameters that are followed
_CASTS = frozenset(("argmax", "argmin", "round", "floor", "ceil", "sign", "long", "int", "bool", "topk", "sort", "gt",
                    "ge", "lt", "le", "eq", "ne"))


class _Of:
    """What is known of one parameter."""
    __slots__ = ("bit", "steps", "reached", "read_on", "read_off", "order", "where", "module", "written", "last",
                 "cut", "version", "stepped", "ref", "first", "value", "learns", "checkpoint")

    def __init__(self, bit, parameter):
        self.bit = bit
        self.ref = Ref(parameter)
        self.steps = self.reached = self.read_on = self.read_off = 0
        self.order = self.version = None
        self.where, self.module, self.cut = {}, "", None
        self.written = False  # by somebody else than an optimizer
        self.checkpoint = None  # where a reentrant checkpoint has read it
        self.last = 0         # the last observed step that reached it
        self.stepped = False
        self.learns = False   # "where" is a call with gradients


class Trained(Watcher):
    """Follows parameters through the operators of observed steps."""

    def __init__(self, observation):
        super().__init__(observation)
        self._known = {}  # id of a parameter -> _Of
        self._bits = 0
        self._forget()
        self._step = 0
        self._looked = 0
        self._loss_bits = self._loss_cuts = 0
        self._steppings = weakref.WeakKeyDictionary()  # optimizer -> [steps, those without any trained parameter]
        self._set_at = {}     # attribute that looks as if it froze something -> the lines where it is set
        self._frozen_at = None  # the lines where requires_grad is set to False

    def _forget(self):
        self._carried = {}  # id -> (weak reference, bits of parameters, bits of cuts)
        self._cuts = []     # (name, where, node)
        self._gone = []     # (bits of parameters, name, where): values that left the graph
        self._count = 0

    def begins(self, step):
        """Forgets the previous step's."""
        self._forget()
        self._step = step
        self._loss_bits = self._loss_cuts = 0

    def _of(self, parameter):
        known = self._known.get(id(parameter))
        if known is not None and known.ref() is parameter:
            return known
        if self._bits >= _MOST:
            return None
        self._bits += 1
        known = self._known[id(parameter)] = _Of(1 << self._bits, parameter)
        known.version = known.first = values.version_of(parameter)
        known.value = _value(parameter)
        return known

    def _items(self):
        """(parameter, _Of) of those that exist."""
        pairs = [(known.ref(), known) for known in list(self._known.values())]
        return [(parameter, known) for parameter, known in pairs if parameter is not None]

    # ---- the flow ----

    def operator(self, call):
        """Passes the bits on."""
        if self.agent.in_backward or (not call.grad and self.agent.steps.is_updating()):
            return
        if not call.grad and _in_function():
            self._note_checkpoint(call)
            return
        bits, cuts, differentiable = self._given(call)
        if not bits:
            return
        results = call.result if isinstance(call.result, (tuple, list)) else (call.result,)
        tensors = [one for one in results if isinstance(one, torch.Tensor)]
        if tensors and differentiable and not any(one.requires_grad for one in tensors):
            cuts |= self._cut_by(call, tensors)
        for tensor in tensors:
            self._carry(tensor, bits, cuts)
        if call.writes and call.args and isinstance(call.args[0], torch.Tensor):
            self._carry(call.args[0], bits, cuts)

    def _note_checkpoint(self, call):
        """Parameters that the first pass of a reentrant checkpoint reads."""
        for one in call.args:
            if isinstance(one, torch.nn.Parameter) and frame_in(os.path.join("torch", "utils", "checkpoint.py")):
                known = self._of(one)
                if known is not None and known.checkpoint is None:
                    known.checkpoint = here()

    def left(self, call):
        """Values that leave the graph: as a number, as an array, or by .data."""
        if self.agent.in_backward or self.agent.steps.is_updating() or not call.args:
            return
        found = self._bits_of(call.args[0])
        if found[0] and isinstance(call.args[0], torch.Tensor) and call.args[0].requires_grad:
            if call.name == "data" and isinstance(call.result, torch.Tensor):
                self._carry(call.result, found[0], found[1] | self._cut(".data", here(), ""))
        if found[0] and len(self._gone) < _MOST_CUTS and call.name in ("numpy", "item", "tolist", "__array__",
                                                                       "__float__"):
            self._gone.append((found[0], call.name.strip("_") + "()", here()))

    def _given(self, call):
        bits = cuts = 0
        differentiable = False
        for one in (*call.args, *call.kwargs.values()):
            for tensor in (one if isinstance(one, (tuple, list)) else (one,)):
                if isinstance(tensor, torch.Tensor):
                    if isinstance(tensor, torch.nn.Parameter):
                        self._reads(tensor, call)
                    more = self._bits_of(tensor)
                    bits |= more[0]
                    cuts |= more[1]
                    differentiable = differentiable or tensor.requires_grad
        return bits, cuts, differentiable

    def _bits_of(self, tensor):
        if isinstance(tensor, torch.nn.Parameter):
            known = self._of(tensor)
            return (known.bit, 0) if known is not None else (0, 0)
        held = self._carried.get(id(tensor))
        return held[1:] if held is not None and held[0]() is tensor else (0, 0)

    def _carry(self, tensor, bits, cuts):
        if not isinstance(tensor, torch.nn.Parameter):
            self._carried[id(tensor)] = Ref(tensor), bits, cuts

    def _reads(self, parameter, call):
        known = self._of(parameter)
        if known is None:
            return
        self._count += 1
        if call.grad:
            known.read_on = self._step
        else:
            known.read_off = self._step
        known.order = self._count
        if not known.where or call.grad and not known.learns:
            known.where, known.learns = here(), call.grad
            known.module = call.module()

    def _cut_by(self, call, tensors):
        """The bit of an operator whose results carry no gradient though its inputs do."""
        if not call.grad:
            return self._cut("no_grad", here(), call.node())
        floating = any(one.is_floating_point() or one.is_complex() for one in tensors)
        if floating and call.name not in _CASTS:
            return self._cut(call.name, here(), call.node())
        return self._cut(call.name, here(), call.node())

    def _cut(self, name, where, node):
        if len(self._cuts) >= _MOST_CUTS:
            return 0
        self._cuts.append((name, where, node))
        return 1 << (len(self._cuts) - 1)

    # ---- passes and steps ----

    def loss(self, tensor):
        """What the loss was computed from."""
        if self.observation.observes:
            for one in (tensor if isinstance(tensor, (tuple, list)) else (tensor,)):
                bits, cuts = self._bits_of(one) if isinstance(one, torch.Tensor) else (0, 0)
                self._loss_bits |= bits
                self._loss_cuts |= cuts

    def passed(self):
        """The parameters that a gradient has reached."""
        if not self.observation.observes:
            return
        for parameter, known in self._items():
            if parameter.grad is not None:
                known.last = self._step

    def before_step(self, optimizer):
        """Notes which parameters the optimizer holds, and which of them somebody else has written."""
        if not self.observation.observes:
            return
        stepped = self._steppings.setdefault(optimizer, [0, 0])
        stepped[0] += 1
        stepped[1] += not any(one.requires_grad or one.grad is not None for one in parameters_of(optimizer))
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                known = self._of(parameter)
                if known is not None:
                    known.stepped = True
                    if parameter.grad is not None:  # it may have been computed in another way than by backward()
                        known.last = self._step

    def ends(self, step):
        """Judges nothing: counts."""
        if not self.observation.observes:
            return
        self._looked += 1
        if self._looked == 2:
            self._find_attributes()
        if self._frozen_at is None and any(not one.requires_grad for one, _ in self._items()):
            self._frozen_at = all_lines(
                r"requires_grad_\((?!True|\))|\.requires_grad *= *(?!True\b|=)|requires_grad *= *False")
        for parameter, known in self._items():
            known.steps += 1
            known.reached += known.last == step
            version = values.version_of(parameter)
            if known.last != step and known.version != version:
                known.written = True
            known.version = version
            if known.stepped and parameter.requires_grad and known.last != step:
                known.cut = self._find_cut(known.bit)
        self._carried = {}

    def _find_cut(self, bit):
        """(name, where, node) of what keeps gradients from it in this step, or None."""
        if self._loss_bits & bit:
            for index, cut in enumerate(self._cuts):
                if self._loss_cuts >> index & 1 and any(held & bit for held in self._behind(index)):
                    return cut
            return None
        return next((cut[1:] + ("",) for cut in reversed(self._gone) if cut[0] & bit), None)

    def _behind(self, index):
        return [bits for _, bits, cuts in self._carried.values() if cuts >> index & 1]

    # ---- evidence ----

    def evidence(self):
        """Parameters that nobody steps, that no gradient reaches, or that are frozen."""
        if not self._looked:
            return []
        owners = self.agent.optimizers.owners()
        held = {id(one): (one, known) for one, known in self._items()}
        roots = [root for root in self.agent.modules.roots().values()]
        found = self._not_held(owners, held, roots) + self._held_twice()
        found += self._cut_off(owners, held) + self._all_frozen()
        found += self._still_trained(owners, held, roots)
        return found + self._frozen(owners, held, roots) + self._frozen_by_name(owners, held)

    def _find_attributes(self):
        """Where attributes are set that look as if they froze something: while the user's functions run."""
        names = {name for one, _ in self._items() for name in vars(one) if _FREEZES.match(name)}
        names.update(name for root in self.agent.modules.roots().values() for module in root.modules()
                     for name, value in vars(module).items() if value is False and _FREEZES.match(name))
        self._set_at = {name: all_lines(r"\.%s *=(?!=)|setattr\(.*\b%s\b" % (name, name)) for name in names}

    def _still_trained(self, owners, held, roots):
        """Trained parameters that an attribute was to freeze that does nothing: a misspelt one, or one of a module."""
        lost, trained = [], {number for number, (_, known) in held.items() if number in owners and known.reached}
        for one, known in held.values():
            name = next((name for name in vars(one) if _FREEZES.match(name) and getattr(one, name) is False), None)
            if name and one.requires_grad and id(one) in trained:
                lost.append((name, False, [one]))
        for module in (one for root in roots for one in root.modules()):
            plain = type(module).__module__.startswith("torch.nn.")
            name = next((name for name, value in vars(module).items() if value is False and (
                name == "requires_grad" or plain and _FREEZES.match(name))), None)
            own = [one for one in module.parameters() if id(one) in trained and one.requires_grad] if name else ()
            if own:
                lost.append((name, True, own))
        if not lost:
            return []
        name, of_module, own = lost[0]
        places = self._set_at.get(name, [])
        return [piece("still-trained", places[0] if places else None, attribute=name, of_module=of_module or None,
                      node=parameter_name(self.agent, own[0]), also=places[1:_MOST_NAMES],
                      count=len({id(one) for _, _, some in lost for one in some}))]

    def _held_twice(self):
        """Parameters that two optimizers hold."""
        optimizers, owner, twice = self.agent.optimizers, {}, []
        for name in optimizers.names():
            for group in optimizers.by_name(name).param_groups:
                for one in group["params"]:
                    if owner.setdefault(id(one), name) != name:
                        twice.append((one, owner[id(one)], name))
        if not twice:
            return []
        first, other, name = twice[0]
        return [piece("held-twice", self.agent.optimizers.made_at(optimizers.by_name(name)),
                      node=parameter_name(self.agent, first), count=len(twice), first=other, second=name,
                      names=[parameter_name(self.agent, one) for one, _, _ in twice[:4]])]

    def _not_held(self, owners, held, roots):
        """Parameters with gradients that are in no optimizer."""
        last = max((known.last for _, known in held.values()), default=0)
        lost = [(one, known) for number, (one, known) in held.items()
                if number not in owners and one.requires_grad and known.last == last and known.read_on == last > 0
                and known.first == values.version_of(one) and known.value == _value(one)]  # nor is it updated by hand
        if not owners or not lost:
            return []
        stale = [one for number, (one, known) in held.items() if number in owners and one.requires_grad
                 and known.stepped and known.last != last and max(known.read_on, known.read_off) != last]
        trained = [known for number, (one, known) in held.items() if number in owners and known.last == last]
        own, hidden = _places(owners, roots)
        lost.sort(key=lambda pair: pair[1].order or 0)
        first, known = lost[0]
        unregistered = all(id(one) not in own for one, _ in lost) and any(
            known.module == path or known.module.startswith(path + "/") for path in hidden(self.agent))
        optimizer = self.agent.optimizers.by_name(self.agent.optimizers.names()[0])
        made = self.agent.optimizers.made_at(optimizer)
        return [piece("not-held", made or known.where, node=parameter_name(self.agent, first), count=len(lost),
                      names=list(filter(None, (parameter_name(self.agent, one) for one, _ in lost[:_MOST_NAMES]))),
                      optimizer=self.agent.optimizers.name_of(optimizer), optimizers=len(self.agent.optimizers.names()),
                      stale=len(stale), stale_name=parameter_name(self.agent, stale[0]) if stale else None,
                      trained=len(trained), held=len(owners), unregistered=unregistered, steps=self._looked,
                      registered=all(id(one) in own for one, _ in lost),
                      fresh=all(values.version_of(one) <= 1 for one, _ in lost),
                      steps_with_gradient=min(known.reached for _, known in lost),
                      after=bool(trained) and min(known.order or 0 for _, known in lost) > max(
                          known.order or 0 for known in trained),
                      also=[known.where] if known.where else [])]

    def _cut_off(self, owners, held):
        """Parameters of an optimizer that no gradient has ever reached."""
        cut = [(one, known) for number, (one, known) in held.items() if number in owners and one.requires_grad
               and known.stepped and not known.reached and known.steps >= 2]
        reached = sum(1 for number, (one, known) in held.items() if number in owners and known.reached)
        pieces, seen = [], {}
        for one, known in cut:
            off = known.read_off > known.read_on
            what = known.cut or (("no_grad", known.where, "") if off else None)
            if what is None and known.checkpoint is not None:
                what = "checkpoint()", known.checkpoint, ""
            key = what[:1] + tuple(what[1].items()) if what else None
            if key in seen:
                seen[key]["count"] += 1
                continue
            seen[key] = piece("no-gradient", what[1] if what else known.where, count=1,
                              parameter=parameter_name(self.agent, one), by=what[0] if what else None,
                              node=(what[2] if what else "") or None, read=bool(known.read_on or known.read_off),
                              steps=known.steps, reached=reached, written=known.written)
            if what is not None and what[0] == "checkpoint()":
                seen[key].update(checkpoint=True, also=list(filter(None, [only_line(_CHECKPOINTS)])))
            pieces.append(seen[key])
        return pieces

    def _all_frozen(self):
        """Optimizers of whose parameters none requires a gradient or has one, whenever they step."""
        optimizers, found = self.agent.optimizers, []
        for optimizer, (steps, idle) in self._steppings.items():
            if idle == steps:
                own = list(parameters_of(optimizer))
                found.append(piece("all-frozen", optimizers.made_at(optimizer), optimizer=optimizers.name_of(optimizer),
                                   node=parameter_name(self.agent, own[0]) if own else None, count=len(own),
                                   steps=steps, also=(self._frozen_at or [])[:_MOST_NAMES]))
        return found

    def _frozen_by_name(self, owners, held):
        """Frozen parameters of modules that were never written, whose names only begin or end like that of another
        frozen module."""
        names = {number: parameter_name(self.agent, one) for number, (one, _) in held.items()}
        frozen = [(names[number].split("/")[1:], one) for number, (one, known) in held.items()
                  if not one.requires_grad and known.read_on and names[number].count("/") > 1]
        if not frozen or not any(number in owners for number in held):
            return []
        pattern, longer = _pattern(frozen)
        if not longer:
            return []
        return [piece("frozen-pattern", self._frozen_at[0] if self._frozen_at else None, pattern=pattern,
                      count=len(longer), frozen=len(frozen), trained=sum(number in owners for number in held),
                      names=list(dict.fromkeys("/".join(path[:-1]) for path in longer))[:_MOST_NAMES])]

    def _frozen(self, owners, held, roots):
        """The last parameters that the training reads are frozen, and have never been written since they were
        initialised."""
        last = max((known.read_on for _, known in held.values()), default=0)
        read = [(one, known) for one, known in held.values() if known.read_on == last and last]
        if not read:
            return []
        final = max(read, key=lambda pair: pair[1].order or 0)
        module = final[1].module
        end = [(one, known) for one, known in read if known.module == module]
        trained = [known for number, (one, known) in held.items() if number in owners and known.last == last]
        if any(one.requires_grad for one, _ in end) or not trained:
            return []
        matrix = next((one for one, _ in end if one.dim() > 1), None)
        root = next((root for root in roots if any(one is matrix for one in root.parameters())), None)
        if matrix is None or root is None or not any(id(one) in owners for one in root.parameters()):
            return []
        at = self._frozen_at[0] if self._frozen_at and len(self._frozen_at) == 1 else final[1].where
        also = [one for one in self._frozen_at or () if one != at][:_MOST_NAMES]
        return [piece("frozen-end", at, also=also, node=parameter_name(self.agent, matrix),
                      version=values.version_of(matrix), module=module, count=len(end), trained=len(trained),
                      frozen=sum(1 for one in root.parameters() if not one.requires_grad),
                      parameters=sum(1 for one in root.parameters()))]


def _pattern(frozen):
    """(a text that all frozen parameters have in their names, the paths of those of which it is not the whole name of
    a module and that were never written): the whole name of another module; "", [] if there is none."""
    dotted = ["." + ".".join(path[:-1]) + "." for path, _ in frozen]
    for path, _ in frozen:
        parts = path[:-1]
        for text in [*parts, *(".".join(pair) for pair in zip(parts, parts[1:]))]:
            if text.isdigit() or len(text) < 2 or not all(text in name for name in dotted):
                continue
            longer = [(other, one) for (other, one), name in zip(frozen, dotted) if "." + text + "." not in name]
            if longer and all(values.version_of(one) <= 1 for _, one in longer):
                return text, [other for other, _ in longer]
    return "", []


def _places(owners, roots):
    """(ids of the parameters of modules that are trained, a function that returns the paths of those modules)."""
    own = set()
    trained = []
    for root in roots:
        numbers = {id(one) for one in root.parameters()}
        if any(number in owners for number in numbers):
            own |= numbers
            trained.append(root)

    def paths(agent):
        return [name for name, root in agent.modules.roots().items() if any(root is one for one in trained)]
    return own, paths


def _in_function():
    """Whether the forward() of a hand-written autograd.Function runs, which PyTorch calls without gradients."""
    return frame_in(os.path.join("torch", "autograd", "function.py"))


def _value(tensor):
    """Some elements; None: they cannot be read. A parameter whose data is replaced or shared has no other version."""
    if type(tensor) not in values.PLAIN or tensor.layout is not torch.strided or tensor.device.type == "meta":
        return None
    flat = tensor.detach().reshape(-1) if tensor.is_contiguous() else tensor.detach()[:1].reshape(-1)
    return flat[::max(1, flat.numel() // 4)][:4].tolist()
