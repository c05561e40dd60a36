# SPDX-License-Identifier: MIT
"""The accelerators of PyTorch, by the names of their types: cuda, xpu, mps, npu, hpu, mtia, or one that another package
brings (PrivateUse1).

This file alone knows them. Each has a module torch.NAME with functions as those of torch.cuda; what a module lacks, its
device does not do, and is left out here. Nothing initializes a device, which would take its memory: a device that the
program has not used yet counts as absent, except in available()."""
import os
import sys

import torch

from . import record_kernel

_KNOWN = ("cuda", "xpu", "mps", "npu", "hpu", "mtia")
_NO_NAME = "privateuseone"  # of PrivateUse1, as long as no package has named it
_made = {}                  # name -> Accelerator
_present = [0, []]          # modules that were imported when it was looked up, Accelerators that may be used


class Later:
    """A copy of a small tensor on its way from a device. Of one element, float() gives the number, and waits for it."""
    __slots__ = ("_place", "_event")

    def __init__(self, place, event=None):
        """place: the copy; event: it is there when this has happened. None: the device has no events, so the copy must
        be read to know, or it is on the host."""
        self._place = place
        self._event = event

    def is_there(self):
        """Whether it need not be put off."""
        return self._event is None or self._event.query()

    def tensor(self):
        """The copy; waits for it."""
        if not self.is_there():
            self._event.synchronize()
        return self._place

    def __float__(self):
        undispatched = torch._C._DisableTorchDispatch()  # while it exists, no mode of the program sees the read
        try:
            return float(self.tensor().item())
        finally:
            del undispatched


def copied(tensor):
    """A copy of a small tensor, as Later. The tensor may change after."""
    device = of(tensor)
    return Later(tensor.detach().clone()) if device is None else device.later(tensor)


def number(value):
    """The number in a tensor of one element, which may change after: a float, or Later. Other numbers as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    device = of(value)
    return value.item() if device is None else device.later(value)


def are_there(numbers):
    """Whether float() of none of them would wait."""
    return all(one.is_there() for one in numbers if isinstance(one, Later))


class Accelerator:
    """The devices of one type. name: the type's; module: torch.NAME."""

    def __init__(self, name, module):
        self.name = name
        self.module = module
        self._streams = {}  # device -> a stream of ours, for copies

    def _has(self, *names):
        return all(hasattr(self.module, name) for name in names)

    def _ask(self, name, *args):
        """What a function of the module returns; None: it has none, or it fails."""
        try:
            return getattr(self.module, name)(*args)
        except (AttributeError, RuntimeError, AssertionError, NotImplementedError, TypeError):
            return None

    def is_used(self):
        """Whether the program has initialized it."""
        is_initialized = getattr(self.module, "is_initialized", None)
        return is_initialized() if is_initialized is not None else self.is_available()

    def is_available(self):
        """Whether there is a device of the type."""
        return bool(self._ask("is_available"))

    def indices(self):
        """Those of its devices."""
        count = self._ask("device_count")
        return range(1 if count is None else count)

    # ---- streams ----

    def wait(self):
        """Waits until the current stream has done what it was given."""
        if self._has("current_stream"):
            self.module.current_stream().synchronize()
        else:
            self.module.synchronize()

    def is_capturing(self):
        """Whether its work is recorded now, as for a CUDA graph: then nothing may wait for it."""
        return self._has("is_current_stream_capturing") and self.module.is_current_stream_capturing()

    def copies_aside(self):
        """Whether copies can run on a stream of ours."""
        return self._has("Stream", "current_stream", "stream")

    def copy(self, tensor, pinned):
        """Copies a tensor into pinned memory after the current stream has computed it; returns when it is there. No
        other work of the device is waited for."""
        stream = self._streams.get(tensor.device)
        if stream is None:
            stream = self._streams[tensor.device] = self.module.Stream(tensor.device)
        stream.wait_stream(self.module.current_stream(tensor.device))
        with self.module.stream(stream):
            pinned.copy_(tensor, non_blocking=True)
        stream.synchronize()

    def later(self, tensor):
        """A copy of a small tensor, as Later: nothing is waited for, and the tensor may change after."""
        tensor = tensor.detach()
        if not self.copies_aside() or not self._has("Event"):
            return Later(tensor.clone())
        place = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
        place.copy_(tensor, non_blocking=True)
        event = self.module.Event()
        event.record(self.module.current_stream(tensor.device))
        return Later(place, event)

    def record_rows(self, tensor, thorough):
        """What a kernel of ours computes of a tensor, see record_kernel.rows; None: there is none for the device."""
        return record_kernel.rows(tensor, thorough) if self.name == "cuda" else None

    # ---- random numbers ----

    def random_states(self):
        """(function that restores it, state) of each device's generator; [] while its work is recorded."""
        if not self._has("get_rng_state", "set_rng_state") or self.is_capturing():
            return []
        if not self._has("device_count"):
            return [(self.module.set_rng_state, self.module.get_rng_state())]
        return [(lambda state, index=index: self.module.set_rng_state(state, index), self.module.get_rng_state(index))
                for index in self.indices()]

    # ---- memory ----

    def name_of(self, index):
        """"cuda:0"."""
        return "%s:%d" % (self.name, index)

    def allocated(self):
        """(bytes, the most) that its allocator has handed out on all devices; None: it does not say."""
        if not self._has("memory_allocated", "max_memory_allocated"):
            return None
        indices = self.indices()
        return sum(map(self.module.memory_allocated, indices)), sum(map(self.module.max_memory_allocated, indices))

    def memory(self):
        """What its allocator says about each device: a list of dicts, with None for what is unknown."""
        if not self._has("memory_allocated", "memory_reserved", "max_memory_allocated"):
            return []
        largest = {}
        for segment in self._ask("memory_snapshot") or ():
            device = segment.get("device", 0)
            for block in segment.get("blocks", ()):
                if block.get("state") == "inactive":
                    largest[device] = max(largest.get(device, 0), block.get("size", 0))
        return [self._memory_of(index, largest.get(index, 0)) for index in self.indices()]

    def _memory_of(self, index, largest):
        said = self._ask("memory_stats", index) or {}
        free, total = self._ask("mem_get_info", index) or (None, None)
        allocated, reserved = self.module.memory_allocated(index), self.module.memory_reserved(index)
        return {"name": self.name_of(index), "allocated": allocated, "reserved": reserved,
                "peak": self.module.max_memory_allocated(index),
                "peak_reserved": self._ask("max_memory_reserved", index),
                "unused": reserved - allocated, "largest_free": largest, "free": free, "total": total,
                "segments": said.get("segment.all.current"), "blocks": said.get("allocation.all.current")}

    def processes(self, index):
        """What torch.cuda.list_gpu_processes() says, which needs the package pynvml; "" without it."""
        asked = "pynvml" in sys.modules or self.is_used()
        return asked and self._ask("list_gpu_processes", index) or ""


def _names():
    own = torch._C._get_privateuse1_backend_name() if hasattr(torch._C, "_get_privateuse1_backend_name") else _NO_NAME
    return _KNOWN if own == _NO_NAME or own in _KNOWN else (*_KNOWN, own)


def named(name):
    """The Accelerator of a type of device; None: of cpu, meta, or one that PyTorch does not know here."""
    found = _made.get(name)
    if found is None and name in _names() and hasattr(torch, name):
        found = _made[name] = Accelerator(name, getattr(torch, name))
    return found


def of(tensor):
    """The Accelerator that a tensor is on; None: the tensor is on the CPU, or has no values."""
    kind = tensor.device.type
    return None if kind == "cpu" else named(kind)


def _candidates():
    """cuda, and what else there is: looked up again when the program has imported something."""
    if _present[0] != len(sys.modules):
        found = [one for one in map(named, _names()) if one is not None]
        _present[1] = [one for one in found if one.name == "cuda" or one.is_available()]
        _present[0] = len(sys.modules)
    return _present[1]


def used():
    """The Accelerator that the program has initialized; None: it has used none."""
    for found in _candidates():
        if found.is_used():
            return found
    return None


def available():
    """The Accelerator that the program can use; None: there is none."""
    return next((found for found in _candidates() if found.is_available()), None)


def of_process():
    """The name of the device that this process trains on, by what can be known before it does: "cuda:1", "cpu"."""
    found = available()
    if found is None:
        return "cpu"
    rank = os.environ.get("LOCAL_RANK", "")
    return found.name_of(int(rank)) if rank.isdigit() else found.name


def is_capturing():
    """Whether work of the accelerator is recorded now: then nothing may wait for it."""
    found = used()
    return found is not None and found.is_capturing()


def autocasts():
    """The types of devices for which autocast may be active."""
    found = used()
    return ("cuda", "cpu") if found is None or found.name == "cuda" else (found.name, "cpu")


def graph_types():
    """The classes that record work of a device, to be replayed."""
    return [torch.cuda.CUDAGraph]
