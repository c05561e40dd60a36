# SPDX-License-Identifier: MIT
"""The memory of this process, as the operating system counts it: resident size, limits, other processes."""
import os
import resource

_MAX_PROCESSES = 8192  # whose size is read
_TOLD = 3              # of them, the largest
_SHARE = 0.01          # of the machine's memory, that a reported process must have
_PAGE = resource.getpagesize()


def report():
    """The members of a report of memory that do not depend on the framework."""
    status, machine = _fields("/proc/self/status"), _fields("/proc/meminfo")
    found = {"rss": status.get("VmRSS"), "rss_peak": status.get("VmHWM"), "machine": machine.get("MemTotal"),
             "machine_free": machine.get("MemAvailable")}
    limits = [limit for limit in (_resource(resource.RLIMIT_AS, "RLIMIT_AS", status.get("VmSize")),
                                  _resource(resource.RLIMIT_DATA, "RLIMIT_DATA", status.get("VmData")),
                                  *_cgroups()) if limit is not None]
    if limits:
        found["limit_name"], found["limit"], found["limit_used"] = min(limits, key=lambda limit: limit[1] - limit[2])
    if found["machine"]:
        found["processes"] = _others(found["machine"] * _SHARE)
    return {key: value for key, value in found.items() if value is not None}


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65536)
    except OSError:
        return ""


def _fields(path):
    """{name: bytes} of the lines "VmRSS:   1234 kB"."""
    found = {}
    for line in _read(path).splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdigit():
            found[name] = int(words[0]) * 1024
    return found


def _resource(which, name, used):
    limit = resource.getrlimit(which)[0]
    return (name, limit, used) if limit != resource.RLIM_INFINITY and used is not None else None


def _cgroups():
    """(name, limit, used) of the control groups of this process that limit memory."""
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if controllers == "":
            root, limit, used = "/sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, used = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        path = path.rstrip("/")
        while True:
            limits, uses = _read(root + path + "/" + limit).strip(), _read(root + path + "/" + used).strip()
            if limits.isdigit() and uses.isdigit() and int(limits) < 1 << 60:
                yield "cgroup", int(limits), int(uses)
            if not path:
                break
            path = path.rpartition("/")[0]


def _others(least):
    """The largest other processes of the machine that this user can see."""
    found = []
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()][:_MAX_PROCESSES]
    except OSError:
        return found
    for number in numbers:
        words = _read("/proc/%d/statm" % number).split() if number != os.getpid() else ()
        size = int(words[1]) * _PAGE if len(words) > 1 and words[1].isdigit() else 0
        if size >= least:
            found.append((size, number))
    return [{"pid": number, "name": _read("/proc/%d/comm" % number).strip(), "bytes": size, "device": "RAM"}
            for size, number in sorted(found, reverse=True)[:_TOLD]]
