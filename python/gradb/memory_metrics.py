# SPDX-License-Identifier: MIT
"""Metrics of memory, for the agents of all frameworks, once they are asked for:

    memory_rss        the resident size of the process, in bytes
    memory_allocated  what the device's allocator has handed out; on the CPU, what malloc has
    memory_peak       the most that the device's allocator had handed out; on the CPU, the largest resident size

    set memory-metrics on     reports them at the end of each step, for expressions and the history"""
import ctypes
import resource

from .commands import switch_of

_PAGE = resource.getpagesize()


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


_mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)  # since glibc 2.33
if _mallinfo is not None:
    _mallinfo.restype = _Mallinfo


class Metrics:
    """device(): (bytes handed out, the most) by the allocator of a device, or None."""

    def __init__(self, agent, device):
        self.agent = agent
        self.on = False
        self._device = device

    def set(self, on):
        """Begins or ends reporting."""
        if on != self.on:
            self.on = on
            happenings = self.agent.happenings
            (happenings.on if on else happenings.off)("step-end", self._tell)

    def _tell(self, _kind, _info):
        agent = self.agent
        if not agent.connected():
            self.set(False)
            return
        for name, value in self.numbers().items():
            agent.library.gradb_scalar(agent.handle, b"memory_" + name, float(value))

    def numbers(self):
        """Name -> bytes, now."""
        with open("/proc/self/statm", encoding="ascii") as file:
            found = {b"rss": int(file.read().split()[1]) * _PAGE}
        device = self._device()
        if device is not None:
            found[b"allocated"], found[b"peak"] = device
            return found
        if _mallinfo is not None:
            said = _mallinfo()
            found[b"allocated"] = said.uordblks + said.hblkhd
        found[b"peak"] = max(found[b"rss"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        return found


def command(agent, args, _node):
    """The function of `memory-metrics`, for commands.register."""
    wanted = switch_of("memory-metrics", args)
    if wanted is not None:
        agent.memory_metrics.set(wanted)
    return {"memory-metrics": "on" if agent.memory_metrics.on else "off"}
