# SPDX-License-Identifier: MIT
"""On PYTHONPATH under `gradb run`: every Python that starts there runs this file first.

It arms the hook that waits for a framework, takes its folder off sys.path again, and runs the sitecustomize that it
hides; errors of that one stay its own. The package is loaded under a private name, because the program may have a
module `gradb` of its own. Interpreters that are too old for the package (Python 2 among them) read this file too, and
are left alone."""
import os
import sys

_NAME = "_gradb_run"


def _arm(here):
    import _frozen_importlib
    import _frozen_importlib_external as files
    package = os.path.dirname(here)
    if _NAME not in sys.modules:
        _frozen_importlib._load(files.spec_from_file_location(
            _NAME, os.path.join(package, "__init__.py"), submodule_search_locations=[package]))
    __import__(_NAME + "._hook")
    sys.modules[_NAME + "._hook"].arm()


def _begin():
    here = os.path.dirname(os.path.abspath(__file__))
    for path in [path for path in sys.path if os.path.abspath(path) == here]:
        sys.path.remove(path)
        sys.path_importer_cache.pop(path, None)
    if sys.version_info < (3, 8) or not os.environ.get("GRADB_ADDRESS"):
        return
    if os.environ.get("GRADB_DISABLE", "0") not in ("", "0"):
        return
    try:
        _arm(here)
    except Exception as error:  # the program runs without gradb
        sys.stderr.write("gradb: cannot attach: %s\n" % error)


def _chain():
    """Imports the sitecustomize that would have been found without this one. Where there is none, Python keeps this
    one."""
    own = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except BaseException:
        sys.modules.setdefault(__name__, own)  # importlib removes it
        raise


_begin()
_chain()
