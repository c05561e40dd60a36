# SPDX-License-Identifier: MIT
"""What a training consists of, for `info model`, `info optimizer`, `info lr` and `info batch`: what the agents of all
frameworks share."""

_MOST_ROWS = 5000
_MOST_PARTS = 64   # tensors of a batch
_MOST_DEPTH = 4    # containers of a batch, one in another


class Held:
    """A parameter or a buffer of a module. key: what identifies it, for those that several modules share."""
    __slots__ = ("key", "elements", "size", "trained", "buffer", "dtype", "device")

    def __init__(self, key, elements, size, trained, buffer, dtype, device):
        self.key = key
        self.elements = elements
        self.size = size          # bytes in this process
        self.trained = trained    # requires a gradient
        self.buffer = buffer      # not a parameter
        self.dtype = dtype
        self.device = device


class _Open:
    """A module whose parts are being listed. path; row; held: key -> Held, of all modules below, too."""

    def __init__(self, path, row):
        self.path = path
        self.row = row
        self.held = {}

    def close(self):
        self.row.update(_totals(self.held.values()))


class Tree:
    """Rows for modules that are added in order: each before those below it."""

    def __init__(self):
        self.rows = []
        self._open = []
        self._all = {}
        self._more = 0

    def add(self, path, kind, held, mode=""):
        """A module; held: its own Held. One with the path of the module before only wraps: `DataParallel > Net`."""
        while self._open and self._open[-1].path != path and not path.startswith(self._open[-1].path + "/"):
            self._open.pop().close()
        if self._open and self._open[-1].path == path:
            self._open[-1].row["class"] += " > " + kind
        else:
            row = {"module": path, "depth": len(self._open), "class": kind, "mode": mode}
            self._open.append(_Open(path, row))
            if len(self.rows) < _MOST_ROWS:
                self.rows.append(row)
            else:
                self._more += 1
        for one in held:
            self._all[one.key] = one
            for module in self._open:
                module.held[one.key] = one

    def report(self, step):
        """The reply to the command."""
        while self._open:
            self._open.pop().close()
        return {"step": step, "modules": self.rows, "more": self._more, "total": _totals(self._all.values())}


def _totals(held):
    parameters = [one for one in held if not one.buffer]
    buffers = [one for one in held if one.buffer]
    return {"parameters": len(parameters), "elements": sum(one.elements for one in parameters),
            "trainable": sum(one.elements for one in parameters if one.trained),
            "frozen": sum(one.elements for one in parameters if not one.trained),
            "buffers": sum(one.elements for one in buffers),
            "bytes": sum(one.size for one in parameters + buffers),
            "dtypes": sorted({one.dtype for one in parameters}), "devices": sorted({one.device for one in parameters})}


def option(value):
    """A hyperparameter as JSON has it; None for what is not one."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)) and value and len(value) <= 8:
        items = [option(item) for item in value]
        return None if any(item is None for item in items) else items
    return None


def parts_of(batch, is_tensor):
    """(name, tensor) of the tensors in a batch: "0", "1/labels", or "batch" for a tensor alone."""
    found = []
    _collect(batch, "", is_tensor, found, 0)
    return found


def _collect(value, name, is_tensor, found, depth):
    if len(found) >= _MOST_PARTS or depth > _MOST_DEPTH:
        return
    if is_tensor(value):
        found.append((name or "batch", value))
        return
    if isinstance(value, (list, tuple)):
        kind = list if isinstance(value, list) else tuple
        items = enumerate(kind.__iter__(value))  # the program's own methods are not called
    else:
        held = vars(value).get("data") if type(value).__name__ in ("BatchEncoding", "BatchFeature") else value
        if not isinstance(held, dict):
            return
        items = dict.items(held)
    for key, item in items:
        _collect(item, "%s/%s" % (name, key) if name else str(key), is_tensor, found, depth + 1)
        if len(found) >= _MOST_PARTS:
            return
