# SPDX-License-Identifier: MIT
"""Waits for torch to be imported, then for the process to begin to train."""
import importlib.util
import sys


class _Finder:
    """First on sys.meta_path until torch comes: lets the others find it and hears when it was run."""

    def __init__(self, name, then):
        self._name = name
        self._then = then

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        run, then = spec.loader.exec_module, self._then

        def exec_module(module):
            run(module)
            then()
        spec.loader.exec_module = exec_module
        return spec


def _is_helper():
    """Whether this is a process that multiprocessing started for its own ends."""
    return any(argument in ("--multiprocessing-fork", "-c") and "resource_tracker" in " ".join(sys.orig_argv)
               for argument in sys.orig_argv) if hasattr(sys, "orig_argv") else False


def arm():
    """From now on an import of torch makes this process one that a debugger can see."""
    if _is_helper():
        return

    def then():
        try:
            import gradb.torch
            gradb.torch.attach_when_training()
        except Exception as error:  # never into the user's import
            print("gradb: PyTorch will not be seen: %s" % error, file=sys.stderr)
    if "torch" in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder("torch", then))
