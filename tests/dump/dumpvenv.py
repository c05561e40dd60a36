# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs scripts in the Python with the libraries whose files are read."""
import pathlib
import subprocess

import harness
import venvs

SCRIPTS = pathlib.Path(__file__).resolve().parent


def missing(*modules):
    """Why a test that needs these modules cannot run; "" if it can."""
    if venvs.python("dump") is None:
        return "no build/dump-venv: ./dev makes it where pip can install packages"
    tried = subprocess.run([venvs.python("dump"), "-c", "import " + ", ".join(modules)], capture_output=True, text=True,
                           timeout=2 * harness.DEADLINE, check=False)
    return "" if tried.returncode == 0 else tried.stderr.strip().splitlines()[-1]


def write(script, *args):
    """Runs one of the scripts in this directory."""
    done = subprocess.run([venvs.python("dump"), SCRIPTS / script, *args], capture_output=True, text=True,
                          timeout=4 * harness.DEADLINE, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{script}: {done.stderr}")
    return done.stdout
