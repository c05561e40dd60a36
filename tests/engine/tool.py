# SPDX-License-Identifier: GPL-3.0-or-later
"""engine_tool as a process: one command in, the lines of its answer out."""
import subprocess

import harness
import numpy as np

TOOL = harness.BUILD / "tests" / "engine" / "engine_tool"


class Refused(Exception):
    """The command's error line."""


def dims(shape):
    return ",".join(map(str, shape)) if shape else "-"


def hexed(array):
    return np.ascontiguousarray(array).tobytes().hex() or "-"


class Tool:
    def __init__(self):
        self.process = subprocess.Popen([str(TOOL)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, encoding="utf-8")

    def ask(self, *fields):
        """The answer's text, without its last newline."""
        self.process.stdin.write(" ".join(map(str, fields)) + "\n")
        self.process.stdin.flush()
        lines = []
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"engine_tool ended with {self.process.wait()} at {fields!r:.500}")
            if line == ".\n":
                break
            lines.append(line.rstrip("\n"))
        if lines and lines[0].startswith("error "):
            raise Refused(lines[0][6:])
        return "\n".join(lines)

    def close(self):
        """Waits for the end: a sanitizer reports leaks there."""
        self.process.stdin.close()
        status = self.process.wait(timeout=harness.DEADLINE)
        self.process.stdout.close()
        if status != 0:
            raise AssertionError(f"engine_tool ended with {status}")
