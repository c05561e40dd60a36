# SPDX-License-Identifier: MIT
"""Which lines of a source file have code, and of which function: found by compiling the text, which runs nothing."""
import dis
import os
import sys
import tokenize
import types
import warnings

_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_FUNCTION = 1  # CO_OPTIMIZED: set for functions, and not for modules and classes
_MOST = 64     # files that are kept
_tables = {}   # path -> (time of its last change, Table)


def table(path):
    """The Table of a file; None where it cannot be read or compiled."""
    try:
        changed = os.stat(path).st_mtime_ns
    except OSError:
        return None
    known = _tables.get(path)
    if known is None or known[0] != changed:
        code = _compile(path)
        if len(_tables) >= _MOST:
            _tables.clear()
        known = _tables[path] = (changed, Table(code) if code is not None else None)
    return known[1]


def _compile(path):
    ignored = ("ignore", None, Warning, None, 0)
    try:
        with tokenize.open(path) as file:
            text = file.read()
        # Not warnings.catch_warnings: that would make warnings of the program appear again.
        warnings.filters.insert(0, ignored)
        try:
            return compile(text, path, "exec", dont_inherit=True)
        finally:
            warnings.filters.remove(ignored)
    except (OSError, SyntaxError, ValueError, UnicodeError, RecursionError, MemoryError):
        return None


def lines_of(code):
    """The lines of a code object's own instructions, in the order of the instructions; the line of `def` is not one
    of them."""
    begin = 0
    if sys.version_info >= (3, 11):
        begin = next((place.offset + 2 for place in dis.get_instructions(code) if place.opname == "RESUME"), 0)
        return [line for _, end, line in code.co_lines() if line and end > begin]
    if hasattr(code, "co_lines"):
        return [line for _, _, line in code.co_lines() if line]
    return [line for _, line in dis.findlinestarts(code)]


class _Part:
    """A function, a class body or the module. name: "Net.forward"; first: the first line that it executes."""

    def __init__(self, code, name):
        lines = lines_of(code)
        self.name = name
        self.code_name = code.co_name
        self.header = code.co_firstlineno
        self.is_function = bool(code.co_flags & _FUNCTION)
        self.lines = frozenset(lines)
        self.first = lines[0] if lines else code.co_firstlineno


class Table:
    """See the module."""

    def __init__(self, code):
        self.parts = []
        self._add(code, "")
        self._names = {(part.code_name, part.header): part.name for part in self.parts}
        self.own = {}  # line -> the parts with it, but not a comprehension in a part with it
        for part in self.parts:
            for line in part.lines:
                self.own.setdefault(line, []).append(part)
        for line, parts in self.own.items():
            self.own[line] = [part for part in parts if part.code_name not in _COMPREHENSIONS] or parts
        self._order = sorted(self.own)

    def _add(self, code, name):
        self.parts.append(_Part(code, name or "<module>"))
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                self._add(inner, name + "." + inner.co_name if name else inner.co_name)

    def name_of(self, code):
        """The name of a code object of this file, with its class."""
        return self._names.get((code.co_name, code.co_firstlineno), code.co_name)

    def at(self, line):
        """(line, name of the function) where a program stops that is to stop at that line: the line itself, the first
        one of the function whose `def` it is, or the next one that has code. None: there is none."""
        found = self._headed(line)
        if found is not None:
            return found.first, found.name
        line = next((other for other in self._order if other >= line), 0)
        if not line:
            return None
        found = self._headed(line) or max(self.own[line], key=lambda part: part.header)
        return (line if line in found.lines else found.first), found.name

    def _headed(self, line):
        """The innermost function with that line in its header."""
        heads = [part for part in self.parts if part.is_function and part.header <= line < part.first
                 and part.code_name[0] != "<" and line not in part.lines]
        return max(heads, key=lambda part: part.header) if heads else None

    def functions(self, wish, module):
        """(first line, name) of the functions that are called `wish`: "forward", "Net.forward", "model.Net.forward"."""
        return [(part.first, part.name) for part in self.parts
                if part.is_function and ("." + module + "." + part.name).endswith("." + wish)
                and part.name.endswith(wish.rpartition(".")[2])]

    def has(self, code, line):
        """Whether a code object of this file stops at the line."""
        return any(part.code_name == code.co_name and part.header == code.co_firstlineno
                   for part in self.own.get(line, ()))
