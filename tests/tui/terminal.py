# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal of its own for gradb, whose screen is read back by pyte."""
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import time

import pyte

import harness

NEXT_PANE = "\x18o"
PLAIN = "\x18a"
SINGLE_KEY = "\x18s"  # on and off


class Terminal:
    """gradb --tui on a terminal of its own, debugging a small charlm unless told otherwise.

    look_at: a record to open instead. run: the command line of another program. rc: the lines of its gradbrc. steps: after so many the training ends by itself. start: what to start
    instead of gradb; it finds gradb's own command line in "$@" of a shell."""

    def __init__(self, rows=24, cols=80, env=None, term="linux", program=True, options=("--tui",),
                 rc="set recommend off\n", steps=1000000, start=(), look_at=None, run=None):
        self.home = tempfile.TemporaryDirectory(prefix="gradb-home-")
        os.makedirs(self.home.name + "/config/gradb")
        with open(self.home.name + "/config/gradb/gradbrc", "w", encoding="utf-8") as file:
            file.write(rc)
        self.master, self.slave = pty.openpty()
        self.screen = pyte.Screen(cols, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self._set_size(rows, cols)
        self.before = termios.tcgetattr(self.slave)
        full_env = dict(os.environ, HOME=self.home.name, XDG_CONFIG_HOME=self.home.name + "/config",
                        XDG_STATE_HOME=self.home.name + "/state", TERM=term, LC_ALL="C.UTF-8")
        for name in ("GRADB_ADDRESS", "NO_COLOR", "LINES", "COLUMNS"):
            full_env.pop(name, None)
        full_env.update(env or {})
        argv = [str(harness.GRADB), *options, "-q", "--listen", "127.0.0.1:0"]
        if look_at is not None:
            argv += ["open", str(look_at)]
        elif run is not None:
            argv += ["run", "--", *map(str, run)]
        elif program:
            argv += ["run", "--", str(harness.CHARLM), *harness.SMALL, "--batch", "2", "--threads", "1", "--steps", str(steps)]
        else:
            argv += ["listen"]
        self.process = subprocess.Popen([*start, *argv], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        env=full_env, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    @classmethod
    @contextlib.contextmanager
    def ready(cls, **options):
        """The same when its graph is known and the prompt is there."""
        with cls(**options) as terminal:
            terminal.expect_ready()
            yield terminal

    def _set_size(self, rows, cols):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def resize(self, rows, cols):
        self.screen.resize(rows, cols)
        self._set_size(rows, cols)

    def read(self, seconds):
        """Takes in what has arrived, waiting at most so long for the first of it."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            data = os.read(self.master, 65536)
            self.raw += data
            self.stream.feed(data)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait(self, what, predicate):
        end = time.monotonic() + harness.DEADLINE
        while not predicate():
            if time.monotonic() > end:
                raise AssertionError(f"the screen never showed {what}:\n{self.text()}")
            if self.process.poll() is not None:
                self.read(0.1)
                if predicate():
                    return
                raise AssertionError(f"gradb ended ({self.process.returncode}) before {what}:\n"
                                     + self.text() + self.raw[-2000:].decode(errors="replace"))
            self.read(0.05)

    def expect(self, pattern):
        regex = re.compile(pattern, re.MULTILINE)
        self.wait(repr(pattern), lambda: regex.search(self.text()))

    def expect_not(self, pattern):
        regex = re.compile(pattern, re.MULTILINE)
        self.wait("no " + repr(pattern), lambda: not regex.search(self.text()))

    def expect_raw(self, data, start=0):
        self.wait(repr(data), lambda: data in self.raw[start:])

    def send(self, text, then=None):
        """Types; with `then`, also waits until the terminal receives these bytes."""
        mark = len(self.raw)
        os.write(self.master, text.encode())
        if then:
            self.expect_raw(then, mark)

    def command(self, line, pattern):
        self.send(line + "\r")
        self.expect(pattern)

    def go_to(self, pane):
        """From the prompt: the pane is shown, and the keyboard goes there."""
        self.send(f"focus {pane}\r")
        self.expect(rf"^\(gradb\) focus {pane}\n\(gradb\)$")
        self.send(NEXT_PANE)
        self.expect(r": prompt$")  # which is what the bottom line says of panes

    def wait_exit(self):
        end = time.monotonic() + harness.DEADLINE
        while self.process.poll() is None:
            self.read(0.05)
            if time.monotonic() > end:
                raise AssertionError(f"gradb does not end:\n{self.text()}")
        for _ in range(100):
            if not select.select([self.master], [], [], 0.05)[0]:
                break
            self.read(0)
        return self.process.returncode

    def quit(self, asks=True):
        """Types the command; gradb asks while a training process is connected. Returns its exit status."""
        self.send("quit\r")
        if asks:
            self.expect(r"\(y or n\)")
            self.send("y")
        return self.wait_exit()

    def is_quiet(self):
        """Nothing was sent for a moment: the screen stands still."""
        mark = len(self.raw)
        self.read(0.3)
        return len(self.raw) == mark

    @contextlib.contextmanager
    def trainer(self, address, *options):
        """A small charlm that connects by itself."""
        argv = [str(harness.CHARLM), *harness.SMALL, "--batch", "2", "--threads", "1", *(options or ("--steps", "1000000"))]
        env = dict(os.environ, GRADB_ADDRESS=address)
        process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        harness.end_all_of(self.home.name)
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)
        self.home.cleanup()

    def expect_ready(self):
        self.expect(r"graph: \d+ nodes")
        self.expect(r"^\(gradb\)")
        self.expect(r"stopped")

    def row_of(self, pattern):
        for number, line in enumerate(self.screen.display):
            if re.search(pattern, line):
                return number
        return None
