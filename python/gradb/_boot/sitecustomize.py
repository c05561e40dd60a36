# SPDX-License-Identifier: MIT
"""On PYTHONPATH under `gradb run`: arms an import hook for torch, and runs the sitecustomize that it hides."""
import importlib.machinery
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _chain():
    """Runs the sitecustomize that would have been found without this one."""
    others = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        source = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(source)


def _arm():
    package = os.path.dirname(os.path.dirname(_HERE))
    if package not in sys.path:
        sys.path.append(package)
    from gradb import _hook
    _hook.arm()


try:
    if os.environ.get("GRADB_ADDRESS") and os.environ.get("GRADB_DISABLE", "0") in ("", "0"):
        _arm()
except Exception as error:  # the program runs without us
    print("gradb: PyTorch will not be seen: %s" % error, file=sys.stderr)

import importlib.util  # noqa: E402  (needed by _chain; late so that nothing fails before the hook is armed)

_chain()
