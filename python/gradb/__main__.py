# SPDX-License-Identifier: MIT
"""python -m gradb [-m MODULE | SCRIPT] ARGS: runs a training so that gradb can see it; what `gradb run` does by the
environment, for interpreters that ignore that (-I, -E), and for trainings that somebody else starts."""
import os
import runpy
import sys
import types

USAGE = "usage: python -m gradb [-m MODULE | SCRIPT] [ARGUMENT...]"


def _run_script(path):
    """Runs a file as the main module, which stays: what multiprocessing pickles is looked for there."""
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _set_path(folder):
    """The script's folder stands where this module's did, unless the interpreter was told to have neither."""
    if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def main():
    """Runs the script or module as if it had been started by itself. The exit status, where it sets none."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(USAGE, file=sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    from . import _hook
    _hook.arm()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        _set_path(os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    path = arguments[0]
    if not os.access(path, os.R_OK):
        print("gradb: cannot read the script %s" % path, file=sys.stderr)
        return 2
    sys.argv = arguments
    if os.path.isdir(path):  # with a __main__.py in it
        runpy.run_path(path, run_name="__main__")
        return 0
    _set_path(os.path.dirname(os.path.abspath(path)))
    _run_script(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
