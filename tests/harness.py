# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by all Python tests: TAP output, deadlines, and gradb as a process.

A test file defines unittest.TestCase classes and ends with `harness.main()`. A test never sleeps: it waits for an event
(a line, a condition, an exit) with a deadline.
"""
import contextlib
import importlib
import json
import os
import pathlib
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BUILD = pathlib.Path(os.environ.get("GRADB_BUILD_ROOT", "build"))
SOURCE = pathlib.Path(os.environ.get("GRADB_SOURCE_ROOT", pathlib.Path(__file__).resolve().parent.parent))
GRADB = BUILD / "src" / "gradb"
CHARLM = BUILD / "examples" / "charlm" / "charlm"
SMALL = ("--layers", "1", "--width", "16", "--heads", "2", "--context", "16")  # charlm's network, when it does not matter
DEADLINE = float(os.environ.get("GRADB_TEST_DEADLINE", "60"))

# A background job of a shell ignores these signals, and the processes that we start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


class TapResult(unittest.TestResult):
    """Prints a TAP line for each test when it ends, and tracebacks on stderr: meson shows only those of a failed test."""

    def __init__(self):
        super().__init__()
        self.number = 0
        self.line_due = False

    def _line(self, word, test, extra=""):
        self.number += 1
        print(f"{word} {self.number} - {test.id().split('.', 1)[-1]}{extra}", flush=True)

    def _bad(self, test, err):
        self.line_due = False
        self._line("not ok", test)
        self._explain(test, err)

    def _explain(self, test, err):
        print(f"{test.id()}:\n{self._exc_info_to_string(err, test)}", file=sys.stderr, flush=True)

    def addSuccess(self, test):
        self._line("ok", test)

    def addError(self, test, err):
        super().addError(test, err)
        self._bad(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._bad(test, err)

    def startTest(self, test):
        super().startTest(test)
        self.line_due = False

    def addSubTest(self, test, subtest, err):
        """Prints the traceback of a failed subtest. The line of the test follows when it ends."""
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.line_due = True
            self._explain(subtest, err)

    def stopTest(self, test):
        if self.line_due:
            self._line("not ok", test)
        super().stopTest(test)
        if _homes:
            end_all_of(*_homes)
            _homes.clear()

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line("ok", test, f" # SKIP {reason}")


def main():
    """Runs the tests of the calling file, or those named by the arguments, and exits."""
    module = sys.modules["__main__"]
    loader = unittest.TestLoader()
    if sys.argv[1:]:
        suite = loader.loadTestsFromNames(sys.argv[1:], module)
    else:
        suite = loader.loadTestsFromModule(module)
    result = TapResult()
    suite.run(result)
    print(f"1..{result.number}", flush=True)  # a class that is skipped has one line
    os._exit(0 if result.wasSuccessful() else 1)


def folder_of(test):
    """A new folder for a test, or for all tests of a class; removed after them."""
    enter = test.enterClassContext if isinstance(test, type) else test.enterContext
    return pathlib.Path(enter(tempfile.TemporaryDirectory(prefix="gradb-test-"))).resolve()


def write_messages(folder, *names):
    """Generates the Python modules of src/proto/NAME.proto in a folder."""
    subprocess.run(["protoc", f"--proto_path={SOURCE / 'src' / 'proto'}", f"--python_out={folder}",
                    *(f"{name}.proto" for name in names)], check=True)


def load_messages(*names):
    """Generates and imports the Python modules of src/proto/NAME.proto."""
    with tempfile.TemporaryDirectory(prefix="gradb-proto-") as folder:
        write_messages(folder, *names)
        sys.path.insert(0, folder)
        try:
            return [importlib.import_module(f"{name}_pb2") for name in names]
        finally:
            sys.path.remove(folder)


def free_port():
    """A free port, outside of the ephemeral range: another test cannot get it by accident before it is used."""
    while True:
        port = random.randrange(15000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def wait_for(what, predicate, deadline=None):
    """Polls a cheap predicate until it returns a true value, and returns that."""
    end = time.monotonic() + (deadline or DEADLINE)
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"deadline passed while waiting for {what}")
        time.sleep(0.005)


_homes = []  # the home of each gradb that the current test started with run_gradb()


def end_all_of(*homes):
    """Kills each gradb with one of these homes, and what it started: a training process survives a gradb that was
    killed or that detached it."""
    marks = {f"{name}={home}".encode() for home in homes for name in ("HOME", "HARNESS_HOME")}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if not marks.isdisjoint(pathlib.Path("/proc", name, "environ").read_bytes().split(b"\0")):
                os.kill(int(name), signal.SIGKILL)


class Gradb:
    """A gradb that reads commands from a pipe. Collects its output; `expect` waits for a line of it."""

    def __init__(self, *args, listen="127.0.0.1:0", command=("listen",), env=None, cwd=None):
        self.home = tempfile.TemporaryDirectory(prefix="gradb-home-")
        full_env = dict(os.environ, HOME=self.home.name, XDG_CONFIG_HOME=self.home.name + "/config",
                        XDG_STATE_HOME=self.home.name + "/state", TERM="dumb", LC_ALL="C.UTF-8")
        full_env.pop("GRADB_ADDRESS", None)
        full_env.update(env or {}, HARNESS_HOME=self.home.name)  # `env` may replace HOME
        argv = [str(GRADB), "--no-tui", "-q"]
        if listen:
            argv += ["--listen", listen]
        argv += [*args, *command]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace",
                                        bufsize=1, env=full_env, cwd=cwd)
        self.lines = []
        self._queue = queue.Queue()
        self._seen = 0
        threading.Thread(target=self._read, daemon=True).start()
        self.port = None

    def _read(self):
        for line in self.process.stdout:
            self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def expect(self, pattern, deadline=None):
        """Waits for a line that the pattern matches, after the line that matched last. Returns the match."""
        end = time.monotonic() + (deadline or DEADLINE)
        regex = re.compile(pattern)
        while True:
            while self._seen < len(self.lines):
                line = self.lines[self._seen]
                self._seen += 1
                match = regex.search(line)
                if match:
                    return match
            try:
                line = self._queue.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                text = "\n".join(self.lines[-60:])
                raise AssertionError(f"no line matches {pattern!r}; the output ends:\n{text}")
            self.lines.append(line)

    def run(self, line, pattern, deadline=None):
        self.send(line)
        return self.expect(pattern, deadline)

    def wait_listening(self):
        self.port = int(self.expect(r"[Ll]istening on \S*:(\d+)").group(1))
        return self.port

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def finish(self, deadline=None):
        """Closes the input, waits until gradb ends, and returns its exit status."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        return self.process.wait(timeout=deadline or DEADLINE)

    def text(self):
        return "\n".join(self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_all_of(self.home.name)
        self.process.wait()
        self.home.cleanup()


def read_records(text, *types, mixed=False):
    """The JSON records in what gradb printed: all but the first, `start`, or those of some types; mixed: among lines of
    the training."""
    found = [json.loads(line) for line in text.splitlines() if not mixed or line.startswith("{")]
    return [record for record in found if (record.get("type") in types if types else record.get("type") != "start")]


def records(done, *types, mixed=False):
    """read_records of what a finished gradb printed."""
    return read_records(done.stdout, *types, mixed=mixed)


def typed(*commands):
    """The options with which gradb runs these commands."""
    return [word for command in commands for word in ("-ex", command)]


def run_gradb(*args, script=None, input=None, env=None, cwd=None, timeout=None):
    """Runs gradb until it ends; returns subprocess.CompletedProcess with its output as text. Training processes that it
    started and detached are killed at the end of the test. script: the lines of a command file for it."""
    with tempfile.TemporaryDirectory(prefix="gradb-home-") as home:
        full_env = dict(os.environ, HOME=home, XDG_CONFIG_HOME=home + "/config",
                        XDG_STATE_HOME=home + "/state", TERM="dumb", LC_ALL="C.UTF-8")
        full_env.update(env or {}, HARNESS_HOME=home)
        _homes.append(home)
        if script:
            path = pathlib.Path(home, "commands.gdb")
            path.write_text("".join(line + "\n" for line in script))
            args = ("-x", path, *args)
        return subprocess.run([str(GRADB), *map(str, args)], input=input, text=True, errors="replace",
                              capture_output=True, env=full_env, cwd=cwd,
                              timeout=timeout or 2 * DEADLINE, check=False)
