# SPDX-License-Identifier: MIT
"""What of the training only its own process knows, for `why`: who trains a parameter, whether anybody sets the
gradients back, and what an operator that raised was given.

    agent training [NODE]
    agent training audit
"""
import weakref

import torch

from .. import _lib, native
from . import commands, values

_BELIEVED = 3  # times that gradients were found at 0 without a trace of who did it, after which it is believed
_LOOKS = 256   # at values, in vain: of an optimizer that hardly steps there would be one in each pass
_AUDIT = "audit"  # word of the command: the gradients of all parameters are looked at
_MOST_ELEMENTS = 1 << 28  # of them, in all
_MOST_NAMES = 4
_MOST = 16     # optimizers at a time whose gradients are watched


class Clearings:
    """A Clearing for each optimizer that steps, as they come. The methods are called by what is guarded."""

    def __init__(self, agent):
        self.agent = agent
        self.first = Clearing(agent)  # the others hang on it: see Clearing.next

    def __iter__(self):
        clearing = self.first
        while clearing is not None:
            yield clearing
            clearing = clearing.next

    def pass_begins(self):
        """An outermost backward pass into the parameters begins."""
        for clearing in self:
            clearing.pass_begins()

    def pass_ended(self):
        """It is over."""
        for clearing in self:
            clearing.pass_ended()

    def lost(self):
        """One whose gradient is there after each backward pass, and not when the optimizer steps; None. Asked at the
        end of a step, before the program goes on."""
        return next((clearing for clearing in self if clearing.is_lost()), None)

    def stepped(self, optimizer):
        """An optimizer has stepped, outside of backward passes."""
        clearing = self._of(optimizer)
        if clearing is not None:
            clearing.stepped(optimizer)

    def follows(self, optimizer):
        """Whether it has stepped outside of backward passes."""
        return any(clearing.optimizer() is optimizer for clearing in self)

    def _of(self, optimizer):
        """That of an optimizer; of a new one that of one which is gone, or another. None: there are too many."""
        free = None
        for count, clearing in enumerate(self, 1):
            owner = clearing.optimizer()
            if owner is optimizer:
                return clearing
            if owner is None and free is None:
                free = clearing
            last = clearing
        if free is None and count < _MOST:
            free = last.next = Clearing(self.agent)
        if free is not None:
            free.follow(optimizer)
        return free

    def found(self, parameter=None):
        """One whose gradients nobody sets back, if possible that of who trains the parameter; None when there is
        none."""
        found = [clearing for clearing in self if clearing.since and clearing.optimizer() is not None]
        own = [clearing for clearing in found if clearing.holds(parameter)]
        return next(iter(own + found), None)


class Clearing(native.base("Clearing")):
    """Watches the gradient of one parameter of an optimizer, whether somebody sets it back between two of its steps.

    A gradient that is set back is another tensor, or was written to: its version says so. Only where neither is
    the case its value is looked at before a pass adds to it (a program may write behind autograd's back), until one
    step has shown that there is no need, for a look waits for the device. since: the first step whose gradients lie
    on top of those of the step before; 0 while there is none. next: another one, or None."""

    def __init__(self, agent):
        self.agent = agent
        self.next = None
        self._optimizer = None  # weak reference
        self._forget()

    def _forget(self):
        self.since = 0
        self._parameter = None  # weak reference
        self._seen = self._version = 0  # identity and version of its gradient as it was left; 0 and 0: there was none
        self._cleared = True
        self._added = False     # a pass has added to it since the optimizer stepped
        self._looked = False    # it was found not to be 0 since then, the last time before that
        self._asks = True       # its value is looked at
        self._believed = False  # else it is held for 0
        self._zeros = self._looks = 0  # how often it was found 0, and not
        self._left = self._left_version = 0  # as _seen and _version, at the end of the last pass

    def follow(self, optimizer):
        """It is that of this optimizer from now on."""
        self._forget()
        self._optimizer = weakref.ref(optimizer)

    def optimizer(self):
        """The one that is followed; None: it is gone, or there was none yet."""
        return self._optimizer() if self._optimizer is not None else None

    def holds(self, parameter):
        """Whether the optimizer steps the parameter."""
        return any(held is parameter for group in self.optimizer().param_groups for held in group["params"])

    def _watched(self):
        return self._parameter() if self._parameter is not None else None

    def _gradient(self):
        parameter = self._watched()
        return parameter.grad if parameter is not None else None

    @property
    def name(self):
        """The parameter's; "" when it has none."""
        parameter = self._watched()
        return parameter is not None and self.agent.telling.name_now(parameter) or ""

    @property
    def whose(self):
        """The optimizer's name; "" of the main one."""
        optimizer = self.optimizer()
        return "" if optimizer is self.agent.steps.main() else self.agent.optimizers.name_of(optimizer)

    def pass_begins(self):
        """See Clearings."""
        if self._cleared or self.since:
            return
        gradient = self._gradient()
        if gradient is None or _state(gradient) != (self._seen, self._version):
            self._cleared = True
        elif not self._added:
            self._looked = False
            if self._asks:
                self.look_at(gradient)
            else:
                self._cleared = self._believed

    def look_at(self, gradient):
        """One that nobody seems to have touched since the step before: is it 0 all the same?"""
        if self.optimizer() is None:  # nobody asks any more
            self._cleared = True
        elif self._is_zero(gradient):
            self._cleared = True
            self._zeros += 1
            self._believed = self._zeros >= _BELIEVED
            self._asks = not self._believed
        else:
            self._looked = True
            self._looks += 1
            self._asks = self._looks < _LOOKS

    def _is_zero(self, gradient):
        """Of a sharded one the part that lies here is looked at: all of it would be a question to the other ranks."""
        with self.agent.unseen(), values.aside():
            try:
                return not bool(values.readable(gradient).count_nonzero())
            except values.NoValue:  # it cannot be looked at
                return True

    def pass_ended(self):
        """See Clearings."""
        gradient = self._gradient()
        state = self._left, self._left_version = _state(gradient) if gradient is not None else (0, 0)
        if self._cleared or self.since:
            return
        self._added = self._added or (gradient is not None and state != (self._seen, self._version))
        self._seen, self._version = state

    def stepped(self, optimizer):
        """See Clearings."""
        if self.since:
            return
        if self._added and not self._cleared and self._is_sure():
            self.since = self.agent.steps.step
            self._tell()
        else:
            self._watch(optimizer)

    def is_lost(self):
        """See Clearings.lost. A class of the program's own may set gradients back when it has stepped."""
        optimizer = self.optimizer()
        if not self._left or optimizer is None or not type(optimizer).__module__.startswith("torch.optim"):
            return False
        gradient = self._gradient()
        if gradient is None:
            return self._watched() is not None
        identity, version = _state(gradient)
        return identity == self._left and version > self._left_version and self._is_zero(gradient)

    def _is_sure(self):
        """Something was added to what nobody seems to have set back. Not where the program has put in another
        gradient since, nor where the parameter is the optimizer's no more, nor where that it was not 0 is a guess:
        then it is looked at again."""
        gradient = self._gradient()
        if gradient is None or id(gradient) != self._seen or not self.holds(self._watched()):
            return False
        if not self._looked:
            self._asks = True
            self._looks = 0
        return self._looked

    def _watch(self, optimizer):
        """The next step's gradients are looked for at the same parameter if it goes on being set back, else at the
        first that has a gradient."""
        gradient = self._gradient() if self._cleared else None
        if self._cleared and self._looked:
            self._asks = False
        self._added = self._looked = False
        if gradient is None:
            parameter = next((parameter for group in optimizer.param_groups for parameter in group["params"]
                              if parameter.grad is not None), None)
            self._cleared = parameter is None
            if self._cleared:  # its gradient may be there when the pass ends: see is_lost
                self._watch_any(optimizer)
                return
            self._parameter = weakref.ref(parameter)
            gradient = parameter.grad
        self._seen, self._version = _state(gradient)
        self._cleared = False

    def _watch_any(self, optimizer):
        parameter = next((parameter for group in optimizer.param_groups for parameter in group["params"]
                          if parameter.requires_grad), None)
        if parameter is not None and parameter is not self._watched():
            self._parameter = weakref.ref(parameter)
            self._left = self._left_version = 0

    def _tell(self):
        if self.agent.connected():
            name, whose = self.name, self.whose
            self.agent.library.gradb_event(self.agent.handle, b"warning", _lib.text(
                "the gradients %sare never zeroed: those of step %d are added to those of %s%s. Is %szero_grad() "
                "called?" % ("of %s " % whose if whose else "", self.since, "its last step" if whose else
                             "the step before", " (%s.grad)" % name if name else "", "its " if whose else "")), 0)


def _state(gradient):
    try:
        return id(gradient), gradient._version
    except RuntimeError:  # made in inference mode
        return id(gradient), 0


# ---- what an operator that raised was given ----

_INTEGERS = frozenset((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))  # what picks
_MASKS = frozenset((torch.bool, torch.uint8))  # what picks as an index where it is True
_CLASSES = frozenset(("cross_entropy", "nll_loss", "nll_loss_nd", "cross_entropy_loss"))
_ALONG = frozenset(("gather", "index_select", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy"))
_INDEXED = frozenset(("getitem", "setitem", "index_put"))
_OF_ALL = frozenset(("take", "put"))  # from all elements, one after the other


class Picking:
    """Numbers that pick from something. count: how many there are to pick from, along `axis`; from_end: numbers
    below 0 count from the end; left_out: a number that stands for none, or None. listed: they were given as a list,
    not as a tensor."""
    __slots__ = ("numbers", "count", "axis", "from_end", "left_out", "listed")

    def __init__(self, numbers, count, axis=0, from_end=False, left_out=None):
        self.listed = not isinstance(numbers, torch.Tensor)
        self.numbers = torch.as_tensor(numbers, device="cpu") if self.listed else numbers
        self.count = count
        self.axis = axis
        self.from_end = from_end
        self.left_out = left_out

    def first_bad(self):
        """(place of the first number that is out of range, the number); None when all are in range."""
        if not _is_plain(self.numbers) or self.numbers.dtype not in _INTEGERS:
            return None
        with torch.no_grad():
            numbers = self.numbers.long()
            bad = (numbers < (-self.count if self.from_end else 0)) | (numbers >= self.count)
            if self.left_out is not None:
                bad &= numbers != self.left_out
            places = bad.nonzero()
            if len(places) == 0:
                return None
            place = [int(axis) for axis in places[0]]
            return place, int(numbers[tuple(place)])


def bad_index(name, args, kwargs):
    """Of an operator that picks by numbers: (Picking, place of the first that is out of range, the number). None when
    all are in range, or when it is no such operator."""
    try:
        for picking in _pickings(name, args, kwargs):
            found = picking.first_bad()
            if found is not None:
                return (picking, *found)
    except (OverflowError, RuntimeError, TypeError, ValueError):
        pass  # inside torch.func nobody can look; or it is no index at all
    return None


def _pickings(name, args, kwargs):
    """A Picking for each of the arguments that the operator picks by."""
    def given(position, key):
        return args[position] if len(args) > position else kwargs.get(key)

    plain = name.rstrip("_")
    source = given(0, "input")
    if name in _CLASSES:
        numbers = given(1, "target")
        if _is_plain(source) and source.dim() > 0 and isinstance(numbers, torch.Tensor):
            yield Picking(numbers, source.shape[1 if source.dim() > 1 else 0],
                          left_out=kwargs.get("ignore_index", -100))
    elif name == "embedding" or name == "embedding_bag" and args:  # its own variable `input` may be another shape
        table = given(1, "weight")
        if isinstance(source, torch.Tensor) and _is_plain(table) and table.dim() > 0:
            yield Picking(source, table.shape[0])
    elif plain in _ALONG or plain == "index_fill":
        axis, numbers = given(1, "dim"), given(2, "index")
        if _is_plain(source) and isinstance(axis, int) and -source.dim() <= axis < source.dim() \
                and isinstance(numbers, torch.Tensor):
            yield Picking(numbers, source.shape[axis], axis % source.dim(), plain == "index_fill")
    elif plain in _OF_ALL:
        numbers = given(1, "index")
        if _is_plain(source) and isinstance(numbers, torch.Tensor):
            yield Picking(numbers, source.numel(), from_end=True)
    elif name == "one_hot":
        count = given(1, "num_classes")
        if isinstance(source, torch.Tensor) and isinstance(count, int) and count > 0:
            yield Picking(source, count)
    elif plain in _INDEXED and _is_plain(source):
        yield from _indices(source, given(1, "indices"))


def _indices(source, index):
    """The Pickings of source[index]. A plain number says in the error itself what there is to say."""
    if isinstance(index, list) and not all(isinstance(number, int) for number in index):
        return  # what it means is another thing in each version
    parts = index if isinstance(index, tuple) else (index,)
    axes = [_axes_of(part) for part in parts]
    axis = 0
    for part, count in zip(parts, axes):
        if part is Ellipsis:
            axis += source.dim() - sum(axes)
        elif count == 1 and not isinstance(part, (int, slice)) and axis < source.dim():
            picking = Picking(part, source.shape[axis], axis, from_end=True)
            if picking.numbers.dtype not in _MASKS:
                yield picking
        axis += count


def _axes_of(part):
    """How many axes a part of an index stands for, Ellipsis aside."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, (int, slice)):
        return 1
    mask = part if isinstance(part, torch.Tensor) else torch.as_tensor(part, device="cpu")
    return mask.dim() if mask.dtype in _MASKS else 1


def _is_plain(tensor):
    return type(tensor) in values.PLAIN and tensor.layout == torch.strided and tensor.device.type == "cpu"


class Raised:
    """What the last operator that raised was given. node: its graph.Node, step: when."""
    __slots__ = ("node", "step", "error", "picked")

    def __init__(self, node, step, error, name, args, kwargs, producer):
        self.node = node
        self.step = step
        self.error = error
        self.picked = {}  # what is said of a number that is out of range; not the tensor, which would stay
        found = bad_index(name, args, kwargs)
        if found is not None:
            picking, place, number = found
            origin = producer(picking.numbers)
            self.picked = {
                "numbers": origin[2].name if origin is not None and origin[2] is not None else None,
                "listed": picking.listed, "place": place, "number": number, "count": picking.count,
                "axis": picking.axis, "from_end": picking.from_end}

    def record(self):
        """For the debugger."""
        return dict(self.picked, node=self.node.name, error=self.error)


# ---- the command ----

def _parameter_of(agent, node):
    """The parameter that a node is, or whose gradient or update it is; None when it is of none."""
    leaf = agent.live.leaf(node.id)
    if leaf is not None:
        return leaf
    parts = node.name.split("/", 2)
    name = parts[2] if parts[0] == "optimizer" and len(parts) == 3 else node.name
    weight = agent.telling.graph.nodes.get(name)
    if weight is None or not agent.live.is_lasting(weight.id):
        return None
    try:
        tensor, _ = agent.live.find(weight.id, 0)
    except values.NoValue as error:  # it is gone
        raise commands.CommandError(str(error)) from None
    return tensor if isinstance(tensor, torch.nn.Parameter) or tensor.requires_grad else None


def _parameter_record(agent, parameter):
    held = agent.optimizers.group_of(parameter)
    record = {"parameter": agent.telling.name_now(parameter), "frozen": not parameter.requires_grad,
              "gradient": parameter.grad is not None}
    if held is not None:
        name, group = held
        rate = group.get("lr")
        record["optimizer"] = name
        if isinstance(rate, (int, float)):
            record["lr"] = float(rate)
        stepped = agent.steps.stepped_last(agent.optimizers.by_name(name))
        if stepped is not None:
            record["stepped"] = stepped
    record["optimizers"] = len(agent.optimizers.names())
    return record


def _audit(agent):
    """What the main optimizer had for gradients, at the end of a step."""
    lost, main = agent.clearing.lost(), agent.steps.main()
    reply = {}
    if lost is not None:
        reply["lost"] = {"parameter": lost.name, "optimizer": agent.optimizers.name_of(lost.optimizer())}
    if main is not None and agent.clearing.follows(main):
        reply["gradients"] = dict(_gradients(agent, main), optimizer=agent.optimizers.name_of(main))
    return reply


def _scaling(agent):
    """What GradScaler does, and did last."""
    scale, skipped = agent.scaler.scale_now(), agent.steps.skipped_last
    reply = {"scale": scale} if scale != 1.0 else {}
    if skipped is not None:
        reply["skipped"] = {"step": skipped[0], "optimizer": skipped[1]}
    return reply


def _gradients(agent, optimizer):
    """How many parameters an optimizer holds, and of how many the gradient is missing, all 0, or not finite."""
    kinds = {kind: {"count": 0, "names": []} for kind in ("none", "zero", "nonfinite")}
    held = [parameter for group in optimizer.param_groups for parameter in group["params"] if parameter.requires_grad]
    looked = left = 0
    with agent.unseen(), values.aside(), torch.no_grad():
        for parameter in held:
            gradient = parameter.grad
            left += gradient.numel() if gradient is not None else 0
            if left > _MOST_ELEMENTS:
                break
            kind = _kind_of(gradient)
            if kind is not None:
                looked += 1
            if kind:
                name = agent.telling.name_now(parameter)
                kinds[kind]["count"] += 1
                if name is not None and len(kinds[kind]["names"]) < _MOST_NAMES:
                    kinds[kind]["names"].append(name)
    return dict(kinds, held=len(held), looked=looked)


def _kind_of(gradient):
    """"none", "zero", "nonfinite", or "" of any other gradient; None of one that cannot be looked at."""
    if gradient is None:
        return "none"
    try:
        gradient = values.readable(gradient)
        if not bool(torch.isfinite(gradient).all()):
            return "nonfinite"
        return "" if bool(gradient.count_nonzero()) else "zero"
    except (values.NoValue, RuntimeError):
        return None


def _training(agent, args, node):
    if node is None and args.strip() not in ("", _AUDIT):
        node, _ = commands.node_of(agent, args)
    reply = {"loss": agent.telling.loss} if agent.telling.loss is not None else {}
    raised = agent.telling.raised
    if raised is not None and raised.step == agent.steps.step:
        reply["raised"] = raised.record()
    parameter = _parameter_of(agent, node) if node is not None else None
    if parameter is not None:
        reply["trained"] = _parameter_record(agent, parameter)
    exits = agent.telling.exits
    reply["exits"] = [{"node": name, "by": by, "line": line} for name, (by, line) in exits.items()]
    reply["followed"] = agent.telling.followed
    reply.update(_scaling(agent))
    if args.strip() == _AUDIT:
        reply.update(_audit(agent))
    clearing = agent.clearing.found(parameter)
    if clearing is not None:
        reply["not set back"] = {"since": clearing.since, "parameter": clearing.name}
        if clearing.whose:
            reply["not set back"]["optimizer"] = clearing.whose
    return reply


commands.register("training", _training, "who trains a parameter; whether gradients are set back; what raised; "
                  "audit: the gradients that the main optimizer steps with", "[NODE|audit]")
