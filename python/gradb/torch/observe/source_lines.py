# SPDX-License-Identifier: MIT
"""Lines of the program's source that are over before the first step: where a layer was made, where a weight was set."""
import ast
import os
import sys

_MOST_BYTES = 1 << 20
_FILES = 16
_LISTS = ("Sequential", "ModuleList", "ModuleDict")
_SETS = frozenset(("zeros_", "ones_", "constant_", "fill_", "zero_", "normal_", "uniform_", "trunc_normal_"))
_MADE = frozenset(("zeros", "ones", "full", "empty", "randn", "rand", "zeros_like", "ones_like", "full_like"))


def sources_of(observation):
    """The Sources of a run. They are read once: at the end of the program its modules may be gone."""
    known = observation.sources
    if known is None or not known.any():
        known = observation.sources = Sources(observation.agent)
    return known


class Sources:
    """The source files of the program: of the script and of the classes of its modules."""

    def __init__(self, agent):
        self._trees, self._made = {}, {}
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        for file in [main] + sorted(_files_of_modules(agent)):
            if file and len(self._trees) < _FILES and file not in self._trees:
                tree = _parse(file)
                if tree is not None:
                    self._trees[file] = tree

    def any(self):
        """Whether there is a file."""
        return bool(self._trees)

    def trees(self):
        """(file, syntax tree) of each."""
        return list(self._trees.items())

    def module_made(self, path, kind=None):
        """{"file", "line"} where the module with that path ("net/hidden", "net/2") is made, if only one line can be
        it; else {}. kind: the name of its class, where that is known: the only line that makes one."""
        if (path, kind) not in self._made:
            self._made[path, kind] = self._find_module(path) or (self._called(kind) if kind else {})
        return self._made[path, kind]

    def _find_module(self, path):
        names = path.split("/")
        if names[-1].isdigit():
            lists = [(file, node) for file, node in self._nodes(ast.Assign) if _is_called(node.value, _LISTS)
                     and len(names) > 1 and any(_last_name(target) == names[-2] for target in node.targets)]
            found = [(file, item.lineno) for file, node in lists for item in _items(node.value)[int(names[-1]):][:1]]
        else:
            found = self._assigned(names[-1])
        return _only(found)

    def _called(self, kind):
        return _only([(file, node.lineno) for file, node in self._nodes(ast.Call) if _last_name(node.func) == kind])

    def parameter_set(self, name):
        """{"file", "line"} where a parameter ("net/hidden/bias") gets its first values, if only one line can be it: one
        that names it, else the only one that sets any."""
        parts = name.split("/")
        named, assigned, any_ = [], self._assigned(parts[-1]), []
        for file, tree in self._trees.items():
            for node in ast.walk(tree):
                target = _set_by(node)
                if target is None:
                    continue
                any_.append((file, node.lineno))
                chain = _chain(target)
                if parts[-1] in chain and (len(parts) < 2 or parts[-2].isdigit() or parts[-2] in chain):
                    named.append((file, node.lineno))
        return _only(named) or _only(assigned) or _only(any_)

    def _nodes(self, kind):
        return [(file, node) for file, tree in self._trees.items() for node in ast.walk(tree) if isinstance(node, kind)]

    def _assigned(self, name):
        return [(file, node.value.lineno) for file, node in self._nodes(ast.Assign) if isinstance(node.value, ast.Call)
                and any(_last_name(target) == name for target in node.targets)]


def _files_of_modules(agent):
    found = set()
    for root in agent.modules.roots().values():
        for module in root.modules():
            owner = sys.modules.get(type(module).__module__)
            file = getattr(owner, "__file__", None)
            if file and "site-packages" not in file and "dist-packages" not in file:
                found.add(file)
    return found


def _parse(file):
    try:
        if os.path.getsize(file) > _MOST_BYTES:
            return None
        with open(file, encoding="utf-8") as opened:
            return ast.parse(opened.read())
    except (OSError, SyntaxError, ValueError):
        return None


def _only(found):
    lines = set(found)
    if len(lines) != 1:
        return {}
    file, line = lines.pop()
    return {"file": file, "line": line}


def _last_name(node):
    """The last name of a target: `self.hidden` and `hidden` give "hidden"."""
    return getattr(node, "attr", None) or getattr(node, "id", None)


def _chain(node):
    """All names of an expression such as `self.hidden.bias.data[0]`."""
    return [_last_name(one) for one in ast.walk(node) if isinstance(one, (ast.Attribute, ast.Name))]


def _is_called(node, names):
    return isinstance(node, ast.Call) and _last_name(node.func) in names


def _items(call):
    if len(call.args) == 1 and isinstance(call.args[0], (ast.List, ast.Tuple)):
        return call.args[0].elts
    return [] if any(isinstance(one, ast.Starred) for one in call.args) else call.args


def _set_by(node):
    """What a statement or call gives values to, if it does: `init.zeros_(X)`, `X.fill_(0)`, `X.data[0] = 4`."""
    if isinstance(node, ast.Call) and _last_name(node.func) in _SETS:
        if node.args and isinstance(node.args[0], (ast.Attribute, ast.Name, ast.Subscript)):
            return node.args[0]
        return node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        if isinstance(target, (ast.Attribute, ast.Subscript)) and any(
                name in ("data", "weight", "bias") for name in _chain(target)):
            return target
        if any(_is_called(one, ("Parameter",)) for one in ast.walk(node.value)) or (
                _is_called(node.value, _MADE) and any(one.arg == "requires_grad" for one in node.value.keywords)):
            return target
    return None
