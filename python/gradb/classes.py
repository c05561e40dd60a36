# SPDX-License-Identifier: MIT
"""The classes of a model's modules or cells, as the debugger learns them: with the first node of each."""

EVALUATION = "eval/"  # scope of what runs in evaluation


class Classes:
    """of: path of a module -> the name of its class."""

    def __init__(self):
        self.of = {}
        self._told = set()  # paths that the debugger knows

    def attrs(self, path):
        """The attribute of a node in that scope: the classes from the root down; nothing if they are known."""
        if not path or path in self._told:
            return ()
        found = []
        while path:
            self._told.add(path)
            found.append(self.of.get(path[len(EVALUATION):] if path.startswith(EVALUATION) else path, ""))
            path = path.rpartition("/")[0]
        return (("module", "/".join(reversed(found))),) if any(found) else ()
