# SPDX-License-Identifier: MIT
"""Who holds the memory, for the agents of all frameworks: the rows of the report that `info memory` shows, and what
grows from one report to the next. All of it is computed when somebody asks, while the training is stopped."""
import re

from . import memory_metrics
from .commands import CommandError

WEIGHTS, GRADIENTS, OPTIMIZER, BUFFERS, ACTIVATIONS, INPUTS, OTHER = (
    "weights", "gradients", "optimizer", "buffers", "activations", "inputs", "other")
KINDS = (WEIGHTS, GRADIENTS, OPTIMIZER, BUFFERS, ACTIVATIONS, INPUTS, OTHER)
_MAX_ROWS = 256   # of a list in the report, the largest
_MAX_LOOKS = 16   # reports that the next one is compared with
_MAX_LEAKS = 8    # of which the holder is searched
_FEWEST = 2       # steps between two reports that are compared
_SAMPLES = 6      # tensors of those that grow, of which the holder is searched
STAY = (WEIGHTS, GRADIENTS, OPTIMIZER, BUFFERS)  # kinds that are known whatever was observed
_DIGITS = re.compile(r"\d+")


class Item:
    """Memory that exists. bytes: of the storage, which its views share; name: of the node that made it, or of what
    keeps it; where: FILE:LINE; module: path; detail: its shape; holder: an object by which the program reaches it, or
    None; root: the Item whose graph keeps it, or None; group: equal for tensors that are made again in each step,
    whether their operators were observed or not."""
    __slots__ = ("bytes", "kind", "name", "where", "module", "detail", "holder", "root", "group")

    def __init__(self, size, kind, name, where="", module="", detail="", holder=None, root=None, group=""):
        self.bytes = size
        self.kind = kind
        self.name = name
        self.where = where
        self.module = module
        self.detail = detail
        self.holder = holder
        self.root = root
        self.group = group or name


def report(items):
    """The totals and the lists of a report."""
    kinds = {kind: {"bytes": 0, "count": 0} for kind in KINDS}
    nodes, modules = {}, {}
    for item in items:
        kinds[item.kind]["bytes"] += item.bytes
        kinds[item.kind]["count"] += 1
        _add(nodes, (item.name, item.kind), item.name, item)
        if item.module:
            _add(modules, (item.module, item.kind), item.module, item)
    for row in modules.values():
        row["detail"] = row["where"] = ""
    return {"kinds": kinds, "nodes": _largest(nodes), "modules": _largest(modules)}


def _add(rows, key, name, item):
    row = rows.setdefault(key, {"name": name, "kind": item.kind, "where": item.where, "detail": item.detail,
                                "bytes": 0, "count": 0})
    row["bytes"] += item.bytes
    row["count"] += 1
    if row["detail"] != item.detail:
        row["detail"] = ""


def _largest(rows):
    return sorted(rows.values(), key=lambda row: -row["bytes"])[:_MAX_ROWS]


class Growth:
    """Compares the reports made at ends of steps: what has more tensors in each of them than in the previous one,
    at least one per step, grows. So does what has more bytes in each of three."""

    def __init__(self):
        self._looks = []  # (step, {group: (bytes, count)}), the oldest first

    def compare(self, step, items):
        """Adds the items at the end of a step, after the first. Returns (the first of the steps that were compared,
        [(bytes that it grew by, tensors, [Item])]), or (None, []) when there is nothing to compare with."""
        groups, those = {}, {}
        for item in items:
            root = item.root or item
            group = root.kind if root.kind in STAY else OTHER, root.group, root.detail
            size, count = groups.get(group, (0, 0))
            groups[group] = size + item.bytes, count + 1
            those.setdefault(group, {})[id(root)] = root
        self._looks = [look for look in self._looks if look[0] < step][-_MAX_LOOKS:]
        self._looks.append((step, groups))
        looks = [look for look in self._looks[:-1] if step - look[0] >= _FEWEST]
        if not looks:
            return None, []
        looks.append(self._looks[-1])
        found = [(groups[group][0] - looks[0][1].get(group, (0, 0))[0],
                  groups[group][1] - looks[0][1].get(group, (0, 0))[1], list(those[group].values()))
                 for group in groups if _grows(looks, group)]
        return looks[0][0], sorted(found, key=lambda row: -row[0])[:_MAX_LEAKS]


def _grows(looks, group):
    more, larger = True, len(looks) > 2
    for (before, old), (after, new) in zip(looks, looks[1:]):
        size, count = old.get(group, (0, 0))
        now, many = new[group] if group in new else (0, 0)
        more = more and many - count >= after - before
        larger = larger and now > size
    return more or larger


def growth_row(first, step, grown, holder_of):
    """A row of the report's growth. grown: of Growth.compare; holder_of(object): what keeps it, in words. A few of
    the tensors are examined: the row has what holds most of them, and the node and the line that these have in common.
    """
    size, count, items = grown
    found = {}
    for item in items[::max(1, len(items) // _SAMPLES)][:_SAMPLES]:
        holder = holder_of(item.holder) if item.holder is not None else ""
        found.setdefault(_DIGITS.sub("#", holder), []).append((holder, item))
    same = max(found.values(), key=len)
    names, places = {item.name for _, item in same}, {item.where for _, item in same if item.where}
    return {"name": names.pop() if len(names) == 1 else same[0][1].detail, "holder": same[-1][0],
            "where": places.pop() if len(places) == 1 else "", "bytes": size, "count": count,
            "per_step": size / (step - first), "first_step": first, "last_step": step}


def register(commands, count):
    """Adds the commands of memory to a table. count(agent, end): the report; end: of the end of the step."""

    def report_of(agent, args, _node):
        if args.strip() not in ("", "end"):
            raise CommandError("memory-report takes 'end' or nothing, not '%s'" % args.strip())
        return count(agent, args.strip() == "end")

    commands.register("memory-report", report_of, "who holds the memory, as `info memory` shows it", "[end]")
    commands.register("memory-metrics", memory_metrics.command, "report memory_rss, memory_allocated and memory_peak",
                      "[on | off]")
