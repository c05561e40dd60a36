# SPDX-License-Identifier: MIT
"""Watches allocations while `catch oom` is on: which operator made a storage, when most was held, which allocation
failed. Each ATen call passes here, in forward, backward and optimizer; results stay the same.

A storage is known until it is freed, by a weak reference. Where PyTorch's storages cannot be referred to like that
(before 2.1), those that were freed are looked for now and then."""
import collections
import weakref
from time import perf_counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _lib
from . import oom, ops, stack, storages, values
from .guard import guarded

_MAX_STEPS = 64       # whose peaks are kept
_SWEEPS = 16          # allocations between two looks for freed storages, where they must be looked for
_FEW = 2048           # storages, up to which they are looked for at each new peak
_PHASES = {_lib.FORWARD: "forward", _lib.BACKWARD: "backward", _lib.OPTIMIZER: "optimizer"}


class Call:
    """A function of PyTorch's that runs: what it allocates belongs to its node. name: where there is no node."""
    __slots__ = ("node", "phase", "name")

    def __init__(self, phase, name=""):
        self.node = None
        self.phase = phase
        self.name = name


class Block:
    """A storage that exists."""
    __slots__ = ("reference", "bytes", "call", "step")

    def __init__(self, reference, size, call, step):
        self.reference = reference
        self.bytes = size
        self.call = call
        self.step = step


class Peak:
    """When most was held in a step. floor: the fewest bytes before an allocation in the forward pass; forward: those at
    the begin of the backward pass; backward: the most in it; batch: of its forward passes, or 0; whole: the step was
    observed from begin to end."""
    __slots__ = ("step", "bytes", "floor", "forward", "backward", "call", "aten", "batch", "whole")

    def __init__(self, step, held):
        self.step = step
        self.bytes = held
        self.floor = self.forward = None
        self.backward = 0
        self.call = None
        self.aten = ""
        self.batch = 0
        self.whole = True


class Allocations(TorchDispatchMode):
    """While somebody observes allocations. held: bytes of the storages that exist; failed: the oom.Failed of the last
    allocation that failed, or None; seconds: number of a node -> those of its last forward pass."""

    def __init__(self, agent):
        super().__init__()
        self.agent = agent
        self.held = 0
        self.failed = None
        self.seconds = {}
        self.peaks = collections.deque(maxlen=_MAX_STEPS)
        self._blocks = {}     # storage's key -> Block
        self._call = Call("")
        self._peak = None
        self._batches = []
        self._since = 0       # allocations since the last look for freed storages
        self._depth = 0
        self._exits = 0       # of this mode, that are due
        self._took = 0.0      # seconds of the last call

    # ---- steps ----

    def step_begins(self, step, whole=True):
        """A step begins."""
        self._leave()
        if self._peak is None:
            self._begin()
        self._close()
        self._sweep()
        self._peak = Peak(step, self.held)
        self._peak.whole = whole
        self._batches = []
        self._call = Call("")

    def _begin(self):
        """Takes over what exists already."""
        for tensor in storages.all_tensors():
            self._note(tensor, None)

    def _close(self):
        peak = self._peak
        if peak is not None:
            peak.batch = self.batch()
            self.peaks.append(peak)

    def step_fails(self):
        """The running step is not complete."""
        if self._peak is not None:
            self._peak.whole = False

    def batch(self):
        """The largest batch of the running step, see network_reads; 0: unknown."""
        return max(self._batches, default=0)

    def network_reads(self, args, kwargs):
        """A forward pass begins: the batch is the first length of the network's first argument that is a tensor."""
        found = []
        ops.tensors_in(args, found)
        ops.tensors_in(kwargs, found)
        self._batches += [tensor.shape[0] for tensor in found if tensor.dim() > 0][:1]
        self._sweep()
        if self._peak is not None:
            self._peak.floor = self.held if self._peak.floor is None else min(self._peak.floor, self.held)

    def measured(self):
        """[(bytes that the forward pass added, bytes more at the peak of the backward pass, batch)] of the steps that
        were observed wholly, for fitting.batch."""
        return [(peak.forward - peak.floor, max(0, peak.backward - peak.forward), peak.batch) for peak in self.peaks
                if peak.whole and peak.floor is not None and peak.forward is not None]

    def now(self):
        """The Peak of the running step so far."""
        return self._peak

    # ---- calls ----

    def run(self, function, *args):
        """Calls what calls a function of PyTorch's for the program."""
        agent = self.agent
        self._call = Call(_PHASES.get(agent.steps.phase, "forward"))
        before, began = self._call, perf_counter()
        if self._depth:  # inside a backward pass: active already
            return function(*args)
        with self:
            result = function(*args)
        if self._call is before:
            self._took = perf_counter() - began
        return result

    def belongs(self, node):
        """The call that has just ended is this node."""
        self._call.node = node
        if self._call.phase == "forward":
            self.seconds[node.id] = self._took
        self._call = Call(self._call.phase, self._call.name)

    @guarded
    def begin(self, phase, name=""):
        """Watches until the function that it returns is called: a backward pass, or the optimizer of that name. None: a
        mode of the program's is active, among which ours cannot be removed safely."""
        self._leave()
        if self._depth == 0 and _innermost() is not None:
            return None
        if self._depth == 0 and phase == "backward" and self._peak is not None and self._peak.forward is None:
            self._sweep()
            self._peak.forward = self.held
        around, self._call = self._call, Call(phase, name)
        self._depth += 1
        self.__enter__()

        def end():
            self._depth -= 1
            self._call = around
            self._exits += 1
            self._leave()
        return end

    def _leave(self):
        """Makes the exits that are due, unless that would remove a mode of the program's: its optimizer has raised, and
        it has entered a mode since."""
        while self._exits and _innermost() is self:
            self._exits -= 1
            self.__exit__(None, None, None)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        agent = self.agent
        watching, agent.watching_now = agent.watching_now, False
        try:
            result = func(*args, **(kwargs or {}))
        except Exception as error:
            if oom.is_oom(error):
                self._failed(func, args, kwargs, error)
            raise
        finally:
            agent.watching_now = watching and not agent.dead
        self._ran(func, result)
        return result

    @guarded
    def _ran(self, func, result):
        if isinstance(result, torch.Tensor):
            self._note(result, func)
        elif isinstance(result, (tuple, list)):
            for item in result:
                if isinstance(item, torch.Tensor):
                    self._note(item, func)

    def _note(self, tensor, func):
        for key, size, _, storage in storages.held_by(tensor):
            block = self._blocks.get(key)
            if block is not None and self._exists(block):
                if block.bytes != size:
                    self.held += size - block.bytes
                    block.bytes = size
                continue
            if block is not None:
                self._drop(key)
            peak = self._peak
            step = peak.step if peak is not None else 0
            if func is not None and peak is not None and self._call.phase in ("forward", ""):
                if peak.floor is None and not _KNOWS_END:
                    self._sweep()
                peak.floor = self.held if peak.floor is None else min(peak.floor, self.held)
            self._blocks[key] = Block(self._refer(storage, key), size, self._call if func is not None else None, step)
            self.held += size
            self._since += 1
            self._grew(func)

    def _grew(self, func):
        peak = self._peak
        back = self._call.phase == "backward"
        if peak is None or self.held <= (peak.backward if back else peak.bytes):
            return
        if not _KNOWS_END and (len(self._blocks) <= _FEW or self._since >= _SWEEPS):
            self._sweep()
        if back:
            peak.backward = max(peak.backward, self.held)
        if self.held > peak.bytes:
            peak.bytes, peak.call, peak.aten = self.held, self._call, _name(func) if func is not None else ""

    # ---- which storages exist ----

    def _refer(self, storage, key):
        if not _KNOWS_END:
            return storage._weak_ref()
        blocks = weakref.ref(self)

        def gone(reference):
            own = blocks()
            if own is not None:
                block = own._blocks.get(key)
                if block is not None and block.reference is reference:
                    own._drop(key)
        return weakref.ref(storage, gone)

    @staticmethod
    def _exists(block):
        if _KNOWS_END:
            return block.reference() is not None
        return not torch.UntypedStorage._expired(block.reference)

    def _drop(self, key):
        block = self._blocks.pop(key, None)
        if block is not None:
            self.held -= block.bytes
            if not _KNOWS_END:
                torch.UntypedStorage._free_weak_ref(block.reference)

    def _sweep(self):
        self._since = 0
        for key in list(self._blocks):  # storages may end meanwhile
            block = self._blocks.get(key)
            if block is not None and not self._exists(block):
                self._drop(key)

    def close(self):
        """Forgets everything."""
        for key in list(self._blocks):
            self._drop(key)

    # ---- for the report ----

    def maker_of(self, key):
        """The graph.Node that made a storage; None: it was made before, or nowhere that is known."""
        block = self._blocks.get(key)
        return block.call.node if block is not None and block.call is not None and self._exists(block) else None

    def born_in(self, key):
        """The step in which a storage was made; 0: before the first observed one, or unknown."""
        block = self._blocks.get(key)
        return block.step if block is not None and block.call is not None and self._exists(block) else 0

    def peak_record(self):
        """The peak of the last step that was observed wholly, else of the running one."""
        self._sweep()
        whole = [peak for peak in self.peaks if peak.whole]
        peak = self._peak
        if whole and (peak is None or peak.call is None or not peak.whole):
            peak = whole[-1]
        if peak is None:
            return {"note": "no step was observed yet: `step`, then `info memory`"}
        return self.record_of(peak)

    @staticmethod
    def record_of(peak):
        """A Peak as JSON."""
        call = peak.call
        node = call.node if call is not None else None
        name = node.name if node is not None else call.name if call is not None else ""
        found = {"bytes": peak.bytes, "step": peak.step, "phase": call.phase if call is not None else "",
                 "name": ("%s (aten %s)" % (name, peak.aten)).strip() if peak.aten else name}
        if node is not None:
            found["where"] = stack.spot(stack.shown(node.stack))
        return found

    @guarded
    def _failed(self, func, args, kwargs, error):
        self.failed = oom.Failed(self.agent, _name(func), args, kwargs or {}, error, self)
        if self.failed.phase == "optimizer":  # nobody else notices
            self.agent.reporter.failures.update_raised(error)


def _innermost():
    count = torch._C._len_torch_dispatch_stack()
    return torch._C._get_dispatch_stack_at(count - 1) if count > 0 else None


def _name(func):
    return str(getattr(func, "overloadpacket", func)).replace("aten.", "")


def _knows_end():
    """Whether a weak reference to a tensor's storage lasts as long as the storage."""
    tensor = torch.empty(1, device="cpu")
    storage = values.storage_of(tensor)
    reference = weakref.ref(storage)
    del storage
    return reference() is not None


_KNOWS_END = _knows_end()
