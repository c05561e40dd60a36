# SPDX-License-Identifier: MIT
"""Runs a script as if gradb could not look into it otherwise: forced.py HOW SCRIPT [ARGUMENT...]. HOW: step: compiled calls
cannot be rehearsed; rehearsal: they cannot run uncompiled; cells: MindSpore does not report operators, as before 2.9."""
import os
import runpy
import sys

import mindspore


def raises(*_):
    """A call that cannot run uncompiled."""
    raise RuntimeError("not without a compiler")


if sys.argv[1] == "cells":
    del mindspore.MsDispatchMode
elif "GRADB_DISABLE" not in os.environ:
    from gradb.mindspore import operators, rehearsal
    if sys.argv[1] == "step":
        rehearsal.why_not = lambda changed: "of a test"
    else:
        operators.Looking._in_python = raises
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
