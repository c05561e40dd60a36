# SPDX-License-Identifier: MIT
"""python -m gradb [-m MODULE | SCRIPT] ARGS: runs a training script so that gradb can see it; what
`gradb run` does by the environment, for interpreters that are started with -I or -E."""
import os
import runpy
import sys

USAGE = "usage: python -m gradb [-m MODULE | SCRIPT] [ARGUMENT...]"


def main():
    """Runs the script or module as if it had been started by itself."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(USAGE, file=sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    from gradb import _hook
    _hook.arm()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
