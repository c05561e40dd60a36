# SPDX-License-Identifier: GPL-3.0-or-later
"""dump_tool as a process: what gradb's readers make of a tensor file."""
import json
import subprocess
import unittest

import harness
import numpy as np

TOOL = harness.BUILD / "tests" / "dump" / "dump_tool"


class Refused(Exception):
    """What the reader says is wrong; `code` is the name of its status."""

    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


class Tool:
    def __init__(self):
        self.process = subprocess.Popen([str(TOOL)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, encoding="utf-8")

    def ask(self, do, path, **more):
        """The answer to one question, or Refused."""
        more.update(do=do, path=str(path))
        self.process.stdin.write(json.dumps({k: v for k, v in more.items() if v is not None}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"dump_tool ended with {self.process.wait()} at {more!r:.500}")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"], answer["code"])
        return answer

    def open(self, path, **options):
        return self.ask("open", path, **options)

    def entries(self, path, **options):
        """What the archive holds, by name."""
        return {entry["name"]: entry for entry in self.open(path, **options)["entries"]}

    def read(self, path, name="", slice=None, **options):
        """Values as an array; bfloat16 as the uint16 that they are."""
        answer = self.ask("read", path, name=name, slice=slice, **options)
        dtype = "uint16" if answer["dtype"] == "bfloat16" else answer["dtype"]
        return np.frombuffer(bytes.fromhex(answer["hex"]), dtype).reshape(answer["shape"])

    def run(self, path, first, count, dtype, name=""):
        """`count` elements in C order."""
        answer = self.ask("run", path, name=name, first=first, count=count)
        return np.frombuffer(bytes.fromhex(answer["hex"]), dtype)

    def stats(self, path, name="", prev=None, threads=1):
        """Statistics as a stream, and those of the tensor in memory."""
        answer = self.ask("stats", path, name=name, prev=prev and [str(prev[0]), prev[1]], threads=threads)
        for figures in answer.values():
            for key, value in figures.items():
                figures[key] = float.fromhex(value) if isinstance(value, str) else value
        return answer["streamed"], answer["whole"]

    def json(self, path, unique=False):
        return self.ask("json", path, unique=unique)["tree"]

    def close(self):
        """Waits for the end: a sanitizer reports leaks there."""
        self.process.stdin.close()
        status = self.process.wait(timeout=harness.DEADLINE)
        self.process.stdout.close()
        if status != 0:
            raise AssertionError(f"dump_tool ended with {status}")


class Files(unittest.TestCase):
    """A folder of files, and a dump_tool that reads them."""
    name = "file"

    @classmethod
    def setUpClass(cls):
        cls.dir = harness.folder_of(cls)
        cls.tool = Tool()
        cls.addClassCleanup(cls.tool.close)

    def put(self, data, name=None):
        path = self.dir / (name or self.name)
        path.write_bytes(data)
        return path

    def refused(self, data, pattern, name=None, read=None, **options):
        """Opening it, or reading its tensor `read`, fails with one line that says so."""
        path = self.put(data, name)
        with self.assertRaisesRegex(Refused, pattern, msg=f"{data[:120]!r}") as caught:
            self.tool.open(path, **options) if read is None else self.tool.read(path, read)
        self.assertNotRegex(str(caught.exception), r"[\x00-\x1f\x7f]")
        self.assertIn(str(path), str(caught.exception))


def gradb(path, *commands, options=()):
    """What gradb prints after opening it."""
    done = harness.run_gradb("-q", "-batch", *options, *harness.typed(f"open {path}", *commands))
    return done.stdout + done.stderr
