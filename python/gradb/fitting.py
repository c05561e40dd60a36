# SPDX-License-Identifier: MIT
"""Out of memory, for the agents of all frameworks: what messages say, and what would fit, by what was measured. Nothing
is claimed without a measurement."""
import re

from . import _lib, memory

_SAYS = re.compile(r"DefaultCPUAllocator: (?:can't allocate|not enough) memory|out of memory|std::bad_alloc"
                   r"|[Aa]lloc(?:ate)?(?: \w+)? ?[Mm]em(?:ory)?\w* failed|[Mm]emory not enough|not enough memory"
                   r"|[Ff]ailed to alloc(?:ate)? memory|cannot allocate memory|Cannot allocate memory"
                   r"|Unable to allocate [\d.]+ \wi?B", re.IGNORECASE)
_ASKED = re.compile(r"(?:tried to allocate|[Tt]ry(?:ing)? to allocate|[Uu]nable to allocate|alloc(?:ate)? size[:=]?"
                    r"|memory size[:=]?|size[:=]) ?\(?(\d+(?:\.\d+)?) ?(bytes|[KMGT]i?B|B)?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "bytes": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
          "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_SPREAD = 0.1       # of slopes at different steps, above which no line is drawn
_UNEXPLAINED = 1.5  # times what earlier steps predict: another cause than the batch
_NOTHING = 0.05     # of what is held: activations below this do not matter
_MOST = 5           # candidates that are reported
_LEAST = 0.02       # of all activations, that a candidate must save


def says_so(text):
    """Whether a message says that memory is short."""
    return _SAYS.search(text) is not None


def asked(text):
    """The bytes that a message says were asked for; None when it does not."""
    found = _ASKED.search(text)
    return int(float(found.group(1)) * _UNITS[(found.group(2) or "").lower()]) if found is not None else None


def size(count):
    """"1.5 MiB"."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return ("%d %s" if unit == "bytes" or count == int(count) else "%.1f %s") % (count, unit)
        count /= 1024.0
    return ""


def batch(measured, failed, items):
    """Which batch would fit. measured: [(bytes that the forward pass added, bytes that the backward pass added at its
    peak, batch)] of steps that were observed wholly; failed: has held (bytes when it failed), floor (before the forward
    pass), phase, batch."""
    activations = sum(item.bytes for item in items if item.kind in (memory.ACTIVATIONS, memory.INPUTS))
    held = failed.held if failed.held is not None else sum(item.bytes for item in items)
    if failed.phase == "optimizer" and activations < _NOTHING * held:
        return {"refused": "a smaller batch does not help: activations hold %s of the %s in tensors%s" % (
            size(activations), size(held), _state(items))}
    known = [entry for entry in measured if entry[0] > 0 and entry[2] > 0]
    if failed.held is not None and failed.floor is None and measured:
        return {"refused": "the network had not run in the step when memory ran out: what belongs to its batch is "
                           "unknown"}
    if failed.held is None or failed.floor is None or not measured:
        return {"refused": "no step was observed to its end, so the slope was not measured: `catch oom` from the "
                           "start, with a batch that fits"}
    if not known:
        return {"refused": "the batch is unknown: the network was called without a tensor in the observed steps"}
    slope, constant, words = _line(known)
    if slope is None:
        return {"refused": words}
    extra = max(more for _, more, _ in known)
    fixed = failed.floor + constant + extra
    rows = int((failed.held - fixed) // slope)
    here = fixed + slope * failed.batch
    if failed.batch and (rows >= failed.batch or failed.held + (failed.asked or 0) > _UNEXPLAINED * here):
        return {"refused": "earlier steps do not explain it: by their slope a batch of %d needs %s, but %s were held "
                           "and %s asked for" % (failed.batch, size(int(here)), size(failed.held),
                                             size(failed.asked) if failed.asked is not None else "more")}
    reply = {"slope": slope, "fixed": fixed, "held": failed.held, "steps": len(known),
             "batches": sorted({rows for _, _, rows in known}),
             "model": "%s before the forward pass + %s per row (%s) + %s in the backward pass" % (
                 size(failed.floor + constant), size(slope), words, size(extra))}
    if failed.batch:
        reply["batch"] = failed.batch
        rows = min(rows, failed.batch - 1)
    most = max(rows for _, _, rows in known)  # it did fit
    if rows < most and (not failed.batch or failed.batch <= most):
        return dict(reply, refused="a step with a batch of %d did fit before: something else holds more now (%s before "
                                   "the forward pass)" % (most, size(failed.floor)))
    return dict(reply, fits=max(rows, most))


def _state(items):
    """What the state of the optimizer takes now, and for all parameters if each needs as much as the one that has
    most."""
    weights = {item.name: item.bytes for item in items if item.kind == memory.WEIGHTS}
    state = {}
    for item in items:
        name = item.name.split("/", 2)[-1].rpartition(".")[0] if item.kind == memory.OPTIMIZER else ""
        if name in weights:
            state[name] = state.get(name, 0) + item.bytes
    if not state:
        return ""
    ratio = max(held / weights[name] for name, held in state.items())
    return ("; the optimizer holds state of %s for %d of %d parameters, and would need %s for all of them if each "
            "takes %.2g times its own size, as the most so far" % (size(sum(state.values())), len(state), len(weights),
                                                             size(int(ratio * sum(weights.values()))), ratio))


def _line(known):
    """(bytes per row, bytes without rows, how it was measured); the slope is None when there is none."""
    sizes = sorted({rows for _, _, rows in known})
    if len(sizes) > 1:
        small = max(added for added, _, rows in known if rows == sizes[0])
        large = max(added for added, _, rows in known if rows == sizes[-1])
        slope = (large - small) / (sizes[-1] - sizes[0])
        if slope <= 0:
            return None, 0, "the forward pass did not add more at a batch of %d than at %d: no slope" % (
                sizes[-1], sizes[0])
        return slope, max(0, int(small - slope * sizes[0])), "by %d steps with batches of %d to %d" % (
            len(known), sizes[0], sizes[-1])
    slopes = [added / rows for added, _, rows in known]
    if max(slopes) - min(slopes) > _SPREAD * max(slopes):
        return None, 0, "forward passes with the same batch added %s to %s per row: no slope" % (
            size(min(slopes)), size(max(slopes)))
    return max(slopes), 0, "by %d step%s with a batch of %d" % (len(known), "s" * (len(known) > 1), sizes[0])


def _exits(nodes):
    """Path of a module -> names of the nodes in it whose outputs forward nodes outside of it read."""
    found = {}
    for reader in nodes:
        for node, _ in filter(None, reader.edges if reader.phase == _lib.FORWARD else ()):
            path = node.name.rpartition("/")[0] if node.phase == _lib.FORWARD else ""
            while path and not reader.name.startswith(path + "/"):
                found.setdefault(path, set()).add(node.name)
                path = path.rpartition("/")[0]
    return found


def _stays(inside, exits):
    """Bytes of a module's outputs, at most. They stay, as the inputs of what follows. An output that is not an item of
    its own is a view of one, so it is taken for the largest of those."""
    known = [item for item in inside if item.name in exits]
    others = sorted((item.bytes for item in inside if item.name not in exits), reverse=True)
    return sum(item.bytes for item in known) + sum(others[:max(0, len(exits) - len(known))] if exits else others[:1])


def checkpoints(items, modules, seconds, nodes):
    """Modules whose activations could be computed again: what each would save, and what it would cost. modules: their
    paths; seconds: name of a node -> of its last forward pass; nodes: of the graph."""
    exits = _exits(nodes)
    kept = [item for item in items if item.kind == memory.ACTIVATIONS and item.module and item.root is not item]
    total = sum(item.bytes for item in kept)
    found = []
    for path in modules:
        inside = [item for item in kept if item.module == path or item.module.startswith(path + "/")]
        if len(inside) < 2 or "/" not in path:
            continue  # the whole network would save nothing
        saved = sum(item.bytes for item in inside) - _stays(inside, exits.get(path, ()))
        if saved < _LEAST * total:
            continue
        times = [took for name, took in seconds.items() if name.startswith(path + "/")]
        row = {"module": path, "bytes": saved}
        if times:
            row["seconds"] = sum(times)
        found.append(row)
    found.sort(key=lambda row: (-row["bytes"], -len(row["module"])))
    different = []
    for row in found:  # of modules one inside another that save the same, the innermost
        if not any(row["bytes"] == other["bytes"] and other["module"].startswith(row["module"]) for other in different):
            different.append(row)
    return different[:_MOST]
