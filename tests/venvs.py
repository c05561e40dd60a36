# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pythons that ./dev makes, with libraries that Debian lacks."""
import os

import harness


def python(name):
    """That of build/NAME-venv, unless GRADB_NAME_PYTHON names another; None: there is none."""
    venv = harness.BUILD.resolve().parent / f"{name}-venv" / "bin" / "python"
    return os.environ.get(f"GRADB_{name.upper()}_PYTHON") or (str(venv) if venv.exists() else None)
