# SPDX-License-Identifier: MIT
"""Waits for torch to be imported; then gradb.torch waits for the process to begin to train.

Every Python process under `gradb run` comes by here: the training itself, but launchers, DataLoader workers and
compilers' helpers as well. None of those trains, so none is attached; for them this is the whole cost.
"""
import sys


class _Finder:
    """First on sys.meta_path until the module has run: lets the others find it, and hears when it has. Those who
    only ask whether there is such a module get the spec as well, and change nothing."""

    def __init__(self, name, then):
        self._name = name
        self._then = then

    def find_spec(self, name, path=None, target=None):
        """The spec of the one module, with a loader that tells of its end; None for all others."""
        if name != self._name:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None) if finder is not self else None
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                self._listen(spec.loader)
                return spec
        return None

    def _listen(self, loader):
        run = getattr(loader, "exec_module", None)
        if run is None:
            return

        def exec_module(module):
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._then()
        loader.exec_module = exec_module


def _torch_is_here():
    try:
        from gradb.torch import first
        first.watch()
    except Exception as error:  # never into the user's import
        print("gradb: PyTorch will not be seen: %s" % error, file=sys.stderr)


def arm():
    """From now on a training with torch in this process is one that a debugger can see. Called again, it does
    nothing: `gradb run -- python -m gradb` comes by here twice."""
    if "torch" in sys.modules:
        _torch_is_here()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder("torch", _torch_is_here))
