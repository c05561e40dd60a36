# SPDX-License-Identifier: MIT
"""gradb._native: what is done at every operator, in C. Without it Python does the same, several times slower.

`module` is None where it is missing: it was not built, it belongs to another version, the interpreter is older than
3.10 or has no global lock, or GRADB_NATIVE is 0. It is looked for next to this package and where the build or the
installation of libgradb puts it, even where only the loader knows that place.

With GRADB_NATIVE=stable it uses only stable interfaces of CPython and PyTorch, and is slower: see torch/functions.py
and torch/nodes.py."""
import ctypes
import importlib.machinery
import importlib.util
import os
import sys

from . import _lib

_NAME = "_native.abi3.so"
_INTERFACE = 20  # NATIVE_INTERFACE of python/native/native.h
# Relative to the folder of libgradb: as installed, and in a build tree.
_BESIDE = (os.path.join("gradb", _NAME), os.path.join(os.pardir, os.pardir, "python", "native", _NAME))


def _candidates():
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, _NAME)
    for library in _lib.candidates():
        library = library if os.sep in library else _lib.where(library)
        for path in _BESIDE if library else ():
            yield os.path.join(os.path.dirname(library), path)


def _load(path):
    """The module at a path; None when we cannot use it."""
    try:
        name = __name__.rpartition(".")[0] + "._native"
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        found = importlib.util.module_from_spec(spec)
        loader.exec_module(found)
    except (ImportError, OSError):
        return None
    return found if getattr(found, "INTERFACE", 0) == _INTERFACE else None


def _find():
    if os.environ.get("GRADB_NATIVE", "1") == "0":
        return None
    if "t" in getattr(sys, "abiflags", ""):  # free-threaded: it would load, but objects have another layout
        return None
    for path in _candidates():
        found = _load(path) if os.path.exists(path) else None
        if found is not None:
            return found
    return None


module = _find()
# Whether the module may use what is found in the memory of CPython and PyTorch, not only their stable interfaces.
looks = module is not None and os.environ.get("GRADB_NATIVE") != "stable"


def base(name, otherwise=object):
    """The class of the module that holds the attributes which are needed at every operator; `otherwise` where there is
    no module."""
    return getattr(module, name) if module is not None else otherwise


def slots(name, names):
    """Those of the attributes `names` that the module's class of that name does not hold."""
    return tuple(word for word in names if module is None or word not in getattr(module, name).fields)


def address(library, name):
    """The address of a library's function; 0 when it has none of that name."""
    function = getattr(library, name, None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0
