# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python with the libraries whose files are read: GRADB_DUMP_PYTHON, or build/dump-venv of ./dev."""
import os
import pathlib
import subprocess

import harness

SCRIPTS = pathlib.Path(__file__).resolve().parent


def python():
    """Its path, or None."""
    given = os.environ.get("GRADB_DUMP_PYTHON")
    venv = harness.BUILD.resolve().parent / "dump-venv" / "bin" / "python"
    if given:
        return pathlib.Path(given)
    return venv if venv.exists() else None


def missing(*modules):
    """Why a test that needs these modules cannot run; "" if it can."""
    if python() is None:
        return "no build/dump-venv: ./dev makes it where pip can install packages"
    tried = subprocess.run([python(), "-c", "import " + ", ".join(modules)], capture_output=True, text=True,
                           timeout=2 * harness.DEADLINE, check=False)
    return "" if tried.returncode == 0 else tried.stderr.strip().splitlines()[-1]


def write(script, *args):
    """Runs one of the scripts in this directory."""
    done = subprocess.run([python(), SCRIPTS / script, *args], capture_output=True, text=True,
                          timeout=4 * harness.DEADLINE, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{script}: {done.stderr}")
    return done.stdout
