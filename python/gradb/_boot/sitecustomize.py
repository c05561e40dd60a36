# SPDX-License-Identifier: MIT
"""On PYTHONPATH under `gradb run`: every Python that is started there runs this first.

It arms the hook that waits for torch, takes its folder off sys.path again, and runs the sitecustomize that it
hides, whose errors stay that one's own. Also read by interpreters that gradb's package is too new for (Python 2
among them), which are left alone.
"""
import os
import sys


def _arm(here):
    package = os.path.dirname(os.path.dirname(here))
    sys.path.insert(0, package)
    try:
        from gradb import _hook
    finally:
        sys.path.remove(package)
    _hook.arm()


def _begin():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    if sys.version_info < (3, 8) or not os.environ.get("GRADB_ADDRESS"):
        return
    if os.environ.get("GRADB_DISABLE", "0") not in ("", "0"):
        return
    try:
        _arm(here)
    except Exception as error:  # the program runs without us
        sys.stderr.write("gradb: PyTorch will not be seen: %s\n" % error)


def _chain():
    """Imports the sitecustomize that would have been found without this one."""
    own = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError as error:
        if getattr(error, "name", __name__) != __name__ or __name__ not in str(error):
            raise
    finally:
        sys.modules.setdefault(__name__, own)


_begin()
_chain()
