# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal that takes nothing, stopped by C-s or read by nobody: the training is answered, signals are heard, and what
was printed comes when it goes on. And at a prompt, where nothing is to be stopped, C-s is a key."""
import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import termios
import time
import unittest

import harness
from terminal import Terminal

STOP, GO_ON = "\x13", "\x11"
INTERRUPT, END_OF_INPUT = "\x03", "\x04"
RC = "set recommend off\nset confirm off\n"
LINES = 12000


def flags(t):
    """Of the terminal: does C-s stop it, does it wait for whole lines."""
    now = termios.tcgetattr(t.slave)
    return bool(now[0] & termios.IXON), bool(now[3] & termios.ICANON)


class Case(unittest.TestCase):
    @contextlib.contextmanager
    def open(self, options=("--no-tui",), rc=RC, **more):
        with tempfile.TemporaryDirectory(prefix="gradb-run-") as runtime:
            with Terminal(term="xterm-256color", rc=rc, options=options, env={"XDG_RUNTIME_DIR": runtime}, **more) as t:
                t.runtime = runtime
                yield t

    def state(self, t):
        """Of the training, as gradb tells another terminal: it answers from its loop."""
        done = subprocess.run([harness.GRADB, "sessions", "--json"], env=dict(os.environ, XDG_RUNTIME_DIR=t.runtime),
                              capture_output=True, text=True, check=False, timeout=harness.DEADLINE)
        found = harness.records(done)
        return found[0]["state"] if found else None

    def expect_state(self, t, state):
        harness.wait_for(f"the training {state}", lambda: self.state(t) == state)

    def check_restored(self, t):
        self.assertEqual(termios.tcgetattr(t.slave), t.before)


class Stopped(Case):
    """C-s while a command waits for the training."""

    @contextlib.contextmanager
    def stopped(self):
        with self.open() as t:
            t.expect_raw(b"Stopped")
            t.expect_raw(b"gradb)")
            t.send("continue\r")
            t.expect(r"^Continuing")
            harness.wait_for("the terminal as commands have it", lambda: flags(t) == (True, True))
            t.send(STOP)
            self.expect_state(t, "running")
            t.process.send_signal(signal.SIGINT)  # the key would let the terminal go on
            self.expect_state(t, "stopped")
            self.assertTrue(t.is_quiet())
            yield t

    def test_goes_on(self):
        with self.stopped() as t:
            mark = len(t.raw)
            t.send(GO_ON)
            t.expect_raw(b"Interrupted", mark)
            t.expect_raw(b"gradb)", mark)
            t.command("echo all of $(it)", r"^all of")
            self.assertEqual(t.quit(asks=False), 0)
            self.check_restored(t)

    def test_terminate(self):
        with self.stopped() as t:
            t.process.terminate()
            self.assertEqual(t.process.wait(timeout=harness.DEADLINE), 128 + signal.SIGTERM)
            self.check_restored(t)

    def test_hangup(self):
        """It stays without the terminal, and another one finds what this one did not take."""
        with self.stopped() as t:
            t.process.send_signal(signal.SIGHUP)
            harness.wait_for("gradb without the terminal", lambda: self.terminal_of(t) == "")
            self.check_restored(t)
            with Terminal(start=("/bin/sh", "-c", f"exec {harness.GRADB} attach"),
                          env={"XDG_RUNTIME_DIR": t.runtime}) as other:
                other.expect(r"Interrupted")
                other.send("\x15quit\r")
                self.assertEqual(t.process.wait(timeout=harness.DEADLINE), 0)
                other.wait_exit()

    def terminal_of(self, t):
        done = subprocess.run([harness.GRADB, "sessions", "--json"], env=dict(os.environ, XDG_RUNTIME_DIR=t.runtime),
                              capture_output=True, text=True, check=False, timeout=harness.DEADLINE)
        return json.loads(done.stdout)["terminal"]


class Unread(Case):
    """More output than a terminal holds that nobody reads."""

    @contextlib.contextmanager
    def full(self, **more):
        with self.open(rc=RC + "set pagination off\n", **more) as t:
            t.expect_raw(b"gradb)")
            path = os.path.join(t.home.name, "many.gradb")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"echo line {number} {'-' * 100}\\n\n" for number in range(LINES))
            t.mark = len(t.raw)
            t.send(f"source {path}\r")
            end = time.monotonic() + harness.DEADLINE
            while select.select([], [t.slave], [], 0.05)[1]:
                self.assertLess(time.monotonic(), end, "the terminal is never full")
            yield t

    def read_until(self, t, what):
        """Not through the screen: there is too much of it."""
        found = b""
        end = time.monotonic() + harness.DEADLINE
        while what not in found:
            self.assertLess(time.monotonic(), end, f"{what!r} never comes: {found[-300:]!r}")
            if select.select([t.master], [], [], 0.05)[0]:
                found += os.read(t.master, 65536)
        return found

    def test_nothing_is_lost(self):
        with self.full() as t:
            self.assertEqual(self.state(t), "stopped")
            found = self.read_until(t, b"gradb)")
            numbers = [line.split()[1] for line in found.splitlines() if line.startswith(b"line ")]
            self.assertEqual(numbers, [b"%d" % number for number in range(LINES)])
            self.assertEqual(t.quit(asks=False), 0)
            self.check_restored(t)

    def test_interrupt(self):
        """The rest is given up, and what is typed next is answered."""
        with self.full(program=False) as t:
            t.send(INTERRUPT)
            self.read_until(t, b"gradb)")
            t.send("echo sti" + "ll here\r")
            self.read_until(t, b"still here")
            self.assertEqual(t.quit(asks=False), 0)
            self.check_restored(t)

    def test_terminate(self):
        with self.full() as t:
            t.process.terminate()
            self.assertEqual(t.process.wait(timeout=harness.DEADLINE), 128 + signal.SIGTERM)
            self.check_restored(t)


class Keys(Case):
    def test_search(self):
        """C-s searches forward, at the prompt and in the panes; while a command runs it is the terminal's."""
        for options in (("--no-tui",), ("--tui",)):
            with self.subTest(options=options), self.open(options, program=False) as t:
                t.expect_raw(b"gradb)")
                harness.wait_for("C-s as a key", lambda: flags(t) == (False, False))
                t.send("echo one\r")
                t.send(STOP + "one")
                t.expect(r"i-search\)`one'")
                t.send("\x07\x15")
                mark = len(t.raw)
                t.send("echo sti" + "ll here\r")
                t.expect_raw(b"still here", mark)
                t.send(STOP)
                t.process.terminate()
                self.assertEqual(t.wait_exit(), 128 + signal.SIGTERM)
                self.check_restored(t)

    def test_stopped_outside_the_panes(self):
        """What C-s stopped while a program had the terminal goes on when the panes come back."""
        with self.open(("--tui",), program=False) as t:
            t.expect_raw(b"gradb)")
            t.send("shell true\r")
            t.expect_raw(b"Press Enter to return")
            harness.wait_for("a whole line to be read", lambda: flags(t) == (True, True))
            mark = len(t.raw)
            t.send(STOP + "\r")
            t.expect_raw(b"\x1b[?2004h", mark)
            t.command("echo all of $(it)", r"^all of")
            self.assertEqual(t.quit(asks=False), 0)
            self.check_restored(t)

    def test_end_of_input_at_a_question(self):
        """C-d where the output of a command pauses ends that pause, and not the prompt behind it."""
        with self.open(program=False, rows=10) as t:
            t.expect_raw(b"gradb)")
            for number in range(2):
                mark = len(t.raw)
                t.send("help keys\r")
                t.expect_raw(b"Enter: more", mark)
                harness.wait_for("a whole line to be read", lambda: flags(t) == (True, True))
                t.send(END_OF_INPUT)
                t.expect_raw(b"gradb)", mark)
                harness.wait_for("the prompt", lambda: flags(t) == (False, False))
                mark = len(t.raw)
                t.send(f"echo num" + f"ber {number}\r")
                t.expect_raw(b"number %d" % number, mark)
            self.assertEqual(t.quit(asks=False), 0)
            self.check_restored(t)


if __name__ == "__main__":
    harness.main()
