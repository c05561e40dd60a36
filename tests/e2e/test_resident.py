# SPDX-License-Identifier: GPL-3.0-or-later
"""A session that outlives its terminal: the terminal is closed, gradb stays, another one takes it over."""
import fcntl
import json
import os
import pathlib
import pty
import select
import stat
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import harness


class Tty:
    """A program on a terminal of its own."""

    def __init__(self, argv, env):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.seen = b""
        self.process = subprocess.Popen([str(a) for a in argv], stdin=slave, stdout=slave, stderr=slave, env=env,
                                        start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def expect(self, text):
        end = time.monotonic() + harness.DEADLINE
        while text.encode() not in self.seen:
            if time.monotonic() > end:
                raise AssertionError(f"never came: {text!r} in {self.seen!r}")
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError as error:
                    raise AssertionError(f"ended before {text!r}: {self.seen!r}") from error
        self.seen = self.seen.split(text.encode(), 1)[1]

    def send(self, line):
        os.write(self.master, line.encode() + b"\n")

    def close(self):
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


class Resident(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="gradb-run-")
        self.addCleanup(self.dir.cleanup)
        os.chmod(self.dir.name, 0o700)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.dir.name, HOME=self.dir.name, TERM="xterm", LC_ALL="C.UTF-8")
        self.ttys = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for tty in self.ttys:
            tty.close()
            if tty.process.poll() is None:
                tty.process.kill()
            tty.process.wait()

    def tty(self, *argv):
        tty = Tty([harness.GRADB, *argv], self.env)
        self.ttys.append(tty)
        return tty

    def start(self):
        tty = self.tty("-q", "-nx", "-ex", "set recommend off", "--listen", "127.0.0.1:0", "run", "--", harness.CHARLM,
                       "--layers", "1", "--width", "16", "--heads", "2", "--context", "16", "--batch", "2",
                       "--threads", "1", "--steps", "1000000")
        tty.expect("(gradb) ")
        return tty

    def sessions(self):
        text = subprocess.run([harness.GRADB, "sessions", "--json"], env=self.env, capture_output=True, text=True,
                              check=True, timeout=harness.DEADLINE).stdout
        return [json.loads(line) for line in text.splitlines()]

    def wait_sessions(self, test):
        end = time.monotonic() + harness.DEADLINE
        while True:
            found = self.sessions()
            if test(found):
                return found
            if time.monotonic() > end:
                raise AssertionError(f"sessions stayed {found}")

    def lose(self, tty):
        tty.close()
        return self.wait_sessions(lambda found: len(found) == 1 and found[0]["terminal"] == "")[0]

    def test_terminal_lost_at_a_stop(self):
        first = self.start()
        facts = self.lose(first)
        self.assertEqual(facts["pid"], first.process.pid)
        self.assertEqual(facts["state"], "stopped")
        sockets = list(pathlib.Path(self.dir.name, "gradb").iterdir())
        self.assertEqual([stat.S_IMODE(s.stat().st_mode) for s in sockets], [0o600])
        second = self.tty("attach")
        second.expect("(gradb) ")
        second.send("step")
        second.expect("step 1")
        second.expect("(gradb) ")
        second.send("disconnect")
        second.expect("disconnected")
        self.assertEqual(second.process.wait(harness.DEADLINE), 0)
        third = self.tty("attach")
        third.expect("(gradb) ")
        third.send("set confirm off")
        third.send("quit")
        self.assertEqual(first.process.wait(harness.DEADLINE), 0)
        self.assertEqual(self.sessions(), [])

    def test_terminal_lost_in_a_run_is_held(self):
        first = self.start()
        first.send("continue")
        self.wait_sessions(lambda found: found[0]["state"] == "running")
        first.close()
        self.wait_sessions(lambda found: found[0]["state"] == "stopped" and found[0]["terminal"] == "")
        self.assertIsNone(first.process.poll())

    def test_panes_move_from_terminal_to_terminal(self):
        first = self.tty("--tui", "-q", "-nx", "-ex", "set recommend off", "--listen", "127.0.0.1:0", "run", "--",
                         harness.CHARLM, "--layers", "1", "--width", "16", "--heads", "2", "--context", "16",
                         "--batch", "2", "--threads", "1", "--steps", "1000000")
        self.wait_sessions(lambda found: found and found[0]["state"] == "stopped")
        self.lose(first)
        second = self.tty("attach")
        second.expect("(gradb)")
        second.send("step")
        self.wait_sessions(lambda found: found[0]["step"] == 1)
        third = self.tty("attach", "--take")
        second.expect("taken over by /dev/pts/")
        self.assertEqual(second.process.wait(harness.DEADLINE), 0)
        third.expect("(gradb)")
        third.process.kill()
        self.wait_sessions(lambda found: found[0]["terminal"] == "")
        last = self.tty("attach")
        last.expect("(gradb)")
        last.send("set confirm off")
        last.send("quit")
        self.assertEqual(first.process.wait(harness.DEADLINE), 0)

    def test_attach_when_there_is_none(self):
        tty = self.tty("attach")
        tty.expect("there is no session")
        self.assertEqual(tty.process.wait(harness.DEADLINE), 1)


if __name__ == "__main__":
    harness.main()
