# SPDX-License-Identifier: GPL-3.0-or-later
"""What replaces an interpreter in a command line, where a program's imports would take longer than the program."""
import functools
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import harness

HERE = pathlib.Path(__file__).resolve().parent
CACHE = harness.BUILD.resolve() / "tests" / "pycache"  # so that gradb's package is not compiled for each case


class _Warm:
    """A process that has imported a module (warm.py). It ends when this process does."""

    def __init__(self, python, module, environment):
        self.folder = tempfile.mkdtemp(prefix="gradb-warm-")
        # Code in a folder of this name counts as a library's; the program's own frames are the same as without us.
        packages = os.path.join(self.folder, "site-packages")
        os.mkdir(packages)
        path = os.path.join(self.folder, "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(path)
            listener.listen()
            self.process = subprocess.Popen(
                [python, shutil.copy(HERE / "warm.py", packages), str(listener.fileno()), str(CACHE), module],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[listener.fileno()], env=environment,
                cwd=self.folder)
        self.command = ["/usr/bin/python3", "-I", "-S", str(HERE / "stand_in.py"), path]


@functools.lru_cache(maxsize=None)
def _process(python, module, environment):
    return _Warm(python, module, dict(environment))


def command(python, module, environment):
    """Replaces [python] at the start of a command line, for `SCRIPT ARGUMENT...` or `-c CODE ARGUMENT...`: runs the
    program in a process that has imported the module already. environment: of that import."""
    return _process(python, module, tuple(sorted(environment.items()))).command
