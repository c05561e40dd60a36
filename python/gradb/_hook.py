# SPDX-License-Identifier: MIT
"""Waits until PyTorch or MindSpore is imported and then until the process begins to train.

Every Python process under `gradb run` passes through here: the training itself, but also launchers, DataLoader workers
and compilers' helpers. None of those trains, so none is attached; this is all that they pay.

The program must not notice: sys.meta_path stays as it is, and no frame of ours appears in a traceback. Under `gradb
run` this package has a private name (_boot), so that the program may have a module `gradb` of its own; the program's
`import gradb.torch` still gets this package, once."""
import os
import sys

import _frozen_importlib as _importlib

_FRAMEWORKS = {"torch": "PyTorch", "mindspore": "MindSpore"}
_PACKAGE = __name__.rsplit(".", 1)[0]
_HERE = os.path.dirname(os.path.abspath(__file__))
_find = None  # importlib's function, once ours replaces it
_loads = None  # of on_import


def _unseen(function):
    """Hides the function: Python leaves frames of this file out of tracebacks and of the places of warnings."""
    function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    return function


@_unseen
def _find_spec(name, path, target=None):
    """importlib's own search; then hooks a framework, and gives this package where `gradb` means it."""
    spec = _find(name, path, target)
    if _loads is not None and spec is not None:
        _loads(spec.origin, name)
    if name in _FRAMEWORKS:
        _listen(name, spec)
    elif _PACKAGE != "gradb" and name[:5] == "gradb" and name[5:6] in ("", "."):
        return _own(name, spec)
    return spec


def _listen(name, spec):
    """Learns when the module has run. Others may wrap the loader's method as we do, before us or after us."""
    loader = getattr(spec, "loader", None)
    run = getattr(loader, "exec_module", None)
    members = getattr(loader, "__dict__", {})
    before = members.get("exec_module")
    if run is None or getattr(before, "of_gradb", False):
        return

    @_unseen
    def exec_module(module):
        if members.get("exec_module") is exec_module:
            if before is None:
                del loader.exec_module
            else:
                loader.exec_module = before
        run(module)
        _is_here(name)
    exec_module.of_gradb = True
    try:
        loader.exec_module = exec_module
    except AttributeError:  # the loader takes no attributes: the framework is not hooked
        pass


def _is_here(name):
    try:
        __import__("%s.%s" % (_PACKAGE, name))
        sys.modules["%s.%s" % (_PACKAGE, name)].watch()
    except Exception as error:  # a fault of ours must not break the user's import
        print("gradb: cannot attach to %s: %s" % (_FRAMEWORKS[name], error), file=sys.stderr)


class _Same:
    """A loader that gives a module of this package under another name."""

    def __init__(self, name):
        self._name = name
        self._spec = None

    def create_module(self, _spec):
        """Called by importlib."""
        __import__(self._name)
        module = sys.modules[self._name]
        self._spec = module.__spec__
        return module

    def exec_module(self, module):
        """The module has run already. importlib has replaced its spec."""
        module.__spec__ = self._spec


def _own(name, spec):
    """The spec of `gradb` or of a module in it: a module of the program's own is found as usual, another copy of this
    package becomes this one."""
    package, _, rest = name.partition(".")
    if rest:
        mine = rest != "__main__" and sys.modules.get(package) is sys.modules[_PACKAGE]
    else:
        mine = spec is None or spec.origin is None or os.path.exists(
            os.path.join(os.path.dirname(spec.origin), "_boot", "sitecustomize.py"))
    own = ".".join(filter(None, (_PACKAGE, rest)))
    found = getattr(sys.modules.get(own), "__spec__", None) if mine else None
    if mine and found is None:
        found = _find(own, getattr(sys.modules.get(own.rpartition(".")[0]), "__path__", None))
    if found is None:
        return spec
    return _importlib.ModuleSpec(name, _Same(own), origin=found.origin,
                                 is_package=found.submodule_search_locations is not None)


def on_import(function):
    """Calls function(path, name of the module) when a module has been found and is about to run; None: no more."""
    global _loads
    _loads = function
    if function is not None:
        _replace()


def _replace():
    global _find
    if _find is None:
        _find, _importlib._find_spec = _importlib._find_spec, _find_spec


def arm():
    """From now on a debugger can attach to a training in this process. Called again, it does nothing: `gradb
    run -- python -m gradb` comes here twice."""
    for name in _FRAMEWORKS:
        if name in sys.modules:
            _is_here(name)
    _replace()
