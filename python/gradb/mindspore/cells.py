# SPDX-License-Identifier: MIT
"""Cells as nodes, where operators cannot be seen: `net/fc1/Dense`, its second run in a step `net/fc1/Dense_1`.

Which cell made a value that another one reads is known by a key of the value, which the caller chooses: an address, or
a digest. What runs between two cells is not known: a value that no cell made is a node of its own,
`net/fc1/Dense.input`."""
from .. import _lib
from . import stack, values


class Cells:
    """What the cells of one step made and read."""

    def __init__(self, agent):
        self._graph, self._parameters = agent.graph, agent.parameters
        self._made = {}  # key -> (Node, slot), by the cell that made it last
        self._open = {}  # the same, for those that no cell has read; with the path of the cell
        self.unknown = []
        self._readers = {}  # (Node, slot) -> [(Node, number of the input)]

    def read(self, cell, path, read, made):
        """The (Node, slot) pairs that a cell has read: its parameters, and what other cells made. read, made: keys of
        its inputs and its outputs; None: without. A cell that others are inside of passes the value of the last of them
        on, or computes with all that no other has read. unknown: numbers of the inputs that no cell has made."""
        passed = [self._made[key] for key in made if key in self._made]
        inside = [maker for key, (maker, place) in self._open.items() if place.startswith(path + "/")]
        found = passed or [self._made[key] for key in read if key in self._made] + inside
        for key in [key for key, (maker, _) in self._open.items() if maker in found]:
            del self._open[key]
        self.unknown = [] if passed or inside else [number for number, key in enumerate(read) if key not in self._made]
        return self._parameters.inputs_of(cell) + list(dict.fromkeys(found))

    def inputs(self, name, values_read, frames):
        """[(Node, value)] of a cell's inputs that no cell has made, by the name of the cell's node."""
        found = []
        for number in self.unknown:
            if values_read[number] is None:
                continue
            full = "%s.input%s" % (name, number or "")
            node = self._graph.add(full, _lib.OTHER, "Value", phase=_lib.FORWARD,
                                   outputs=(values.shape_of(values_read[number]),), stack=frames)
            if node is not None:
                found.append((node, values_read[number]))
        return found

    def ran(self, node, path, read, made):
        """The cell's node has been made."""
        for number, key in enumerate(read):
            maker = self._made.get(key)
            if maker is not None and key not in made:
                self._readers.setdefault(maker, []).append((node, number))
        for slot, key in enumerate(made):
            if key is not None:
                self._made[key] = (node, slot)
                self._open[key] = ((node, slot), path)

    def has(self, key):
        """Whether a cell has made that value."""
        return key in self._made

    def readers(self, node):
        """(Node, number of its input) of the cells that read what a node made."""
        return [reader for (maker, _), readers in self._readers.items() if maker is node for reader in readers]

    def forget(self, number):
        """The values of that node are not held any more: their addresses may be those of others."""
        for table, maker_of in ((self._made, lambda item: item), (self._open, lambda item: item[0])):
            for key in [key for key, item in table.items() if maker_of(item)[0].id == number]:
                del table[key]


def lines_of(parameters, path):
    """Where a cell is called, as far as the source of the cells around it says; for stack.frames()'s callers."""
    found = []
    while "/" in path:
        path, _, name = path.rpartition("/")
        cell = parameters.cell_at(path)
        if cell is not None:
            found.append(stack.call_in(cell, name))
    return tuple(frame for frame in found if frame is not None)
