# SPDX-License-Identifier: MIT
"""What each rank of a job computes with, as digests that the debugger compares."""
import gc
import weakref

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from .. import digest, stack, values
from ..swapping import Ref
from . import Watcher, here, piece, trace
from .lines import only_line
from .loss_input import terms_of

_MOST_LOOKS = 16
_MOST_DIRECTION = 8  # gradients of which some elements are kept
_MOST_DRAWS = 16     # places of random draws
_MOST_TEXT = 256     # of digests of one line's draws
_MOST_STATISTICS = 8  # layers, and as many channels of each
_LAST_LOOKS = 8       # at statistics that are kept; the ranks may be observed in other steps
_MOST_INPUTS = 32  # of a step: the first ones may be masks or positions, which are the same on all ranks


_DRAWN = frozenset(("randn", "rand", "normal", "bernoulli", "randn_like", "rand_like", "normal_", "uniform_"))
_PARTS = frozenset(("getitem", "chunk", "split", "narrow", "select", "index_select", "tensor_split", "unbind"))
_DIVIDES = frozenset(("div", "div_", "truediv", "true_divide", "divide", "mul", "mul_", "multiply"))


def ranks_now():
    """How many ranks work together; 1: none is known."""
    group = torch.distributed
    return group.get_world_size() if group.is_available() and group.is_initialized() else 1


class Ranks(Watcher):
    """In observed steps: digests of the parameters, the gradients before the update, and the inputs."""

    def __init__(self, observation):
        super().__init__(observation)
        self._looks = []
        self._now = None
        self._wrapped = self._sharded = False
        self._exists = None
        self._where = {}
        self._called = {}
        self._stepped = {}
        self._seen = {}        # id -> weak reference of this step's inputs
        self._world = 1        # the group may be gone at the end
        self._parameters = []  # weak references to those of the optimizer that stepped first
        self._mean = True      # each loss is a mean, as far as known, and not divided by a number
        self.trace = trace.of(observation)

    def begins(self, step):
        """A new look."""
        self.trace.begins(step)
        self._seen = {}
        self._world = max(self._world, ranks_now())
        self._now = {"step": step} if ranks_now() > 1 and len(self._looks) < _MOST_LOOKS else None

    def operator(self, call):
        """Notes the inputs, and whether the wrapper runs."""
        if self._now is None or not call.is_forward():
            return
        self.trace.see(call)
        self._wrapped |= getattr(DistributedDataParallel, "_active_ddp_module", None) is not None
        inputs = self._now.setdefault("inputs", [])
        for tensor in call.args if len(inputs) < _MOST_INPUTS else ():
            if isinstance(tensor, torch.Tensor) and type(tensor) in values.PLAIN and not tensor.requires_grad \
                    and tensor.numel() > 1 and not self._is_known(tensor) and self.agent.graph.holder(tensor) is None:
                self._seen[id(tensor)] = Ref(tensor)
                inputs.append(_digest((tensor,)))
                self._called = self._called or _call_of_model()

    def _is_known(self, tensor):
        known = self._seen.get(id(tensor))
        return known is not None and known() is tensor

    def loss(self, tensor):
        """Notes the line, and whether the loss is a mean."""
        self._where = self._where or here()
        if self._now is not None and isinstance(tensor, torch.Tensor):
            self._mean &= _is_mean(self.trace.of(tensor))

    def passed(self):
        """The gradients as the backward pass leaves them."""
        if self._now is not None and "start" not in self._now and self._parameters:
            held = [one() for one in self._parameters]
            self._now["own"] = _sample([one.grad for one in held if one is not None and one.grad is not None])

    def before_step(self, optimizer):
        """The first update of the step is about to be made."""
        if self._now is None or "gradients" in self._now:
            return
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        self._sharded |= any(type(one) not in values.PLAIN or hasattr(one, "_sharded_size") for one in parameters)
        if self._sharded:
            self._now = None
            return
        self._now["start"] = _digest(parameters)
        gradients = [one.grad for one in parameters if one.grad is not None]
        self._now["gradients"] = _digest(gradients)
        self._now["norm"], self._now["direction"] = _direction(gradients)
        self._now["used"] = _sample(gradients)
        self._parameters = self._parameters or [Ref(one) for one in parameters]
        self._stepped = self._stepped or here()

    def after_step(self, optimizer):
        """It has been made."""
        if self._now is not None and "after" not in self._now:
            self._now["after"] = _digest([one for group in optimizer.param_groups for one in group["params"]])

    def ends(self, _step):
        """Keeps it."""
        if self._now is not None and "after" in self._now:
            inputs = self._now.pop("inputs", None)
            if inputs:
                self._now["input"] = " ".join(inputs)
            self._looks.append(self._now)
        self._now = None

    def evidence(self):
        """One piece for this rank."""
        if not self._looks or self._sharded:
            return []
        if self._exists is None:
            self._exists = any(type(one) is DistributedDataParallel for one in gc.get_objects())
        return [piece("rank-state", self._called or self._where, world=self._world, mean=self._mean,
                      wrapped=self._wrapped, wrapper=self._exists, looks=list(self._looks),
                      also=[one for one in (only_line(r"all_reduce\("), self._where, self._stepped) if one])]


class Draws(Watcher):
    """In observed steps: digests of what is drawn at random, by the line that draws it."""

    operators = _DRAWN | _PARTS

    def __init__(self, observation):
        super().__init__(observation)
        self._found = {}   # (file, line) -> its piece
        self._now = {}     # the same -> [digests, number of elements] of this step
        self._alive = {}   # id -> (weak reference, file and line) of this step's draws
        self._cut = set()  # lines whose draws are shared out: each rank takes a part
        self._step, self._world = 0, 1

    def begins(self, step):
        """A new step."""
        self._now, self._alive, self._step, self._world = {}, {}, step, ranks_now()

    def operator(self, call):
        """Notes a draw, and who takes parts of one."""
        if not call.grad or self.agent.in_backward or self.agent.steps.is_updating() or self._world < 2:
            return
        if call.name in _PARTS and call.args:
            held = self._alive.get(id(call.args[0]))
            if held is not None and held[0]() is call.args[0]:
                self._cut.add(held[1])
        if call.name not in _DRAWN or type(call.result) not in values.PLAIN:
            return
        where = call.where()
        key = where.get("file"), where.get("line")
        if key not in self._found and len(self._found) >= _MOST_DRAWS:
            return
        self._found.setdefault(key, piece("rank-draw", where, operator=call.name, looks=[]))
        self._alive[id(call.result)] = Ref(call.result), key
        drawn = self._now.setdefault(key, ["", 0])
        drawn[0] = (drawn[0] + _digest((call.result,)))[-_MOST_TEXT:]
        drawn[1] += call.result.numel()

    def ends(self, _step):
        """Keeps the digests."""
        for key, (digests, count) in self._now.items():
            looks = self._found[key]["looks"]
            if count >= 16 and len(looks) < _MOST_LOOKS:
                looks.append({"step": self._step, "drawn": digests})
        self._now, self._alive = {}, {}

    def evidence(self):
        """One piece for each line that draws."""
        return [dict(one, world=self._world) for key, one in self._found.items()
                if key not in self._cut and one["looks"]]


class Statistics(Watcher):
    """Running statistics of normalisation at the end of observed steps, and how often each sampler was shuffled."""

    operators = frozenset(("batch_norm",))

    def __init__(self, observation):
        super().__init__(observation)
        self._layers = {}     # id(running mean) -> (weak references to mean and variance, piece)
        self._steps = 0
        self._samplers = {}   # id -> [weak reference, where, iterations, batches, epochs that were set, batches of one]

    def operator(self, call):
        """Notes the buffers of batch normalisation."""
        if not call.is_forward() or len(self._layers) >= _MOST_STATISTICS:
            return
        mean, variance = call.given(1, "running_mean"), call.given(2, "running_var")
        if call.given(5, "training", False) and isinstance(mean, torch.Tensor) and isinstance(variance, torch.Tensor):
            self._layers.setdefault(id(mean), (Ref(mean), Ref(variance),
                                               piece("rank-statistics", call.where(), world=ranks_now())))

    def batch(self, _batch):
        """Notes whether the sampler of ranks gets a new epoch."""
        loader = self.agent.events.loader.latest()[0]
        sampler = getattr(loader, "sampler", None)
        if type(sampler) is not DistributedSampler or not sampler.shuffle:
            return
        known = self._samplers.setdefault(id(sampler), [weakref.ref(sampler), here(), 0, 0, set(), 0])
        known[2] += self.agent.events.loader.is_first()
        known[3] += 1
        known[4].add(sampler.epoch)
        known[5] = len(loader)

    def ends(self, _step):
        """Reads the statistics of some channels."""
        self._steps += 1
        for mean, variance, found in self._layers.values() if self.observation.observes else ():
            mean, variance = mean(), variance()
            if mean is not None and variance is not None and found["world"] > 1:
                found["looks"] = [*found.get("looks", ()), {
                    "step": self._steps, "mean": mean.reshape(-1)[:_MOST_STATISTICS].tolist(),
                    "variance": variance.reshape(-1)[:_MOST_STATISTICS].tolist()}][-_LAST_LOOKS:]

    def evidence(self):
        """One piece for each layer and each sampler."""
        found = [one for _, _, one in self._layers.values() if "looks" in one]
        for _, where, iterations, batches, epochs, count in self._samplers.values():
            found.append(piece("sampler", where, iterations=iterations, epochs=len(epochs),
                               passes=batches / max(1, count)))
        return found


def _is_mean(loss):
    """Whether a loss consists of means only, and is not divided by a number, such as that of the ranks."""
    terms, seen = terms_of(loss)
    for one in seen:
        if one.name in _DIVIDES and any(isinstance(value, (int, float)) for value in one.args):
            return False
        if one.name == "sum" or one.given(9, "reduction", "mean") == "sum":
            return False
    return bool(terms)


def _sample(tensors):
    """Some elements of each of the first ones."""
    return [float(value) for one in tensors[:_MOST_DIRECTION]
            if type(one) in values.PLAIN and one.layout is torch.strided
            for value in one.detach().float().reshape(-1)[::max(1, one.numel() // 4)][:4].tolist()]


def _call_of_model():
    """{"file", "line"} of the user's line that called the outermost module."""
    frames = stack.frames(2)
    last = max((place for place, (code, _, _) in enumerate(frames)
                if code.co_filename.endswith("module.py") and stack.is_torch(code)), default=-1)
    found = stack.shown(frames[last + 1:])
    return {} if found is None else {"file": found[0].co_filename, "line": found[1]}


def _direction(gradients):
    """Their norm, and some elements divided by it: what clipping and scaling leave as it is."""
    dense = [one.detach().float().reshape(-1) for one in gradients
             if type(one) in values.PLAIN and one.layout is torch.strided]
    norm = float(sum(float(one.pow(2).sum()) for one in dense)) ** 0.5
    taken = [float(value) for one in dense[:_MOST_DIRECTION]
             for value in one[::max(1, one.numel() // 4)][:4].tolist()] if norm > 0 else []
    return norm, [value / norm for value in taken]


def _digest(tensors):
    """One number for all of them, as text."""
    total = 0
    for place, tensor in enumerate(tensors):
        try:
            total = (total * 1000003 + digest.digest(tensor) + place) & (1 << 64) - 1
        except (RuntimeError, NotImplementedError):  # it has no bytes to read
            continue
    return "%016x" % total
