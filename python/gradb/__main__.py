# SPDX-License-Identifier: MIT
"""python -m gradb ARGS: the debugger, as `gradb ARGS` starts it.

python -m gradb [-m MODULE | SCRIPT] ARGS: runs a training so that gradb can attach to it. `gradb run` does the same
through the environment. This is for interpreters that ignore the environment (-I, -E) and for trainings that something
else starts."""
import os
import runpy
import shutil
import sys
import types

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "gradb")  # in a wheel with the debugger


def debugger():
    """Replaces this process by the debugger, with the same arguments. Returns the exit status where there is none."""
    program = _PROGRAM if os.path.exists(_PROGRAM) else shutil.which("gradb")
    if program is None:
        print("gradb: error: this installation has the agent only, not the debugger: install gradb's wheel or package",
              file=sys.stderr)
        return 2
    try:
        os.execv(program, ["gradb"] + sys.argv[1:])
    except OSError as error:
        print("gradb: error: cannot start %s: %s" % (program, error.strerror), file=sys.stderr)
        return 2


def _is_script(path):
    """Whether the first argument is a training to run here, not the debugger's."""
    return (path == "-m" or path.endswith(".py") or os.path.isfile(path)
            or os.path.isfile(os.path.join(path, "__main__.py")))


def _run_script(path):
    """Runs a file as the main module, which stays loaded: multiprocessing looks there for what it pickles."""
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _set_path(folder):
    """Puts the script's folder where this module's was, unless the interpreter must have neither."""
    if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def main():
    """Starts the debugger, or runs the script or module as if it had been started directly. Returns the exit status,
    where it sets none."""
    arguments = sys.argv[1:]
    if not arguments or not _is_script(arguments[0]):
        return debugger()
    if arguments == ["-m"]:
        print("gradb: error: -m needs the name of a module", file=sys.stderr)
        return 2
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
    if os.path.isdir(path):  # a folder with a __main__.py
        runpy.run_path(path, run_name="__main__")
        return 0
    _set_path(os.path.dirname(os.path.abspath(path)))
    _run_script(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
