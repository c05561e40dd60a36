# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of the panes when the terminal takes nothing any more, and the prompt of the shell that they began in."""
import os
import select
import shutil
import signal
import subprocess
import time
import unittest

import harness
from terminal import Terminal

REDRAW = "\x0c"
PROMPT = "shell-prompt> "
BASH = shutil.which("bash")


class StuckTerminal(unittest.TestCase):
    def stick(self, t):
        """Pictures until the terminal, which nobody reads, takes nothing any more."""
        end = time.monotonic() + harness.DEADLINE
        while select.select([], [t.slave], [], 0)[1]:
            self.assertLess(time.monotonic(), end, "the terminal is never full")
            t.send(REDRAW)
            select.select([t.slave], [], [], 0.02)  # nothing is ever typed to us: a pause

    def check(self, end, statuses):
        with Terminal(rows=60, cols=200, term="xterm-256color", program=False, rc="set confirm off\nset mouse on\n") as t:
            t.expect(r"no training process is connected")
            t.expect(r"^\(gradb\)")
            self.stick(t)
            end(t)
            if statuses:
                self.assertIn(t.process.wait(timeout=harness.DEADLINE), statuses)
            else:
                harness.wait_for("gradb without the terminal", lambda: not self.holds_terminal(t))

    def holds_terminal(self, t):
        """Neither as its controlling terminal nor as an open file."""
        if t.process.poll() is not None:
            return False
        with open(f"/proc/{t.process.pid}/stat", encoding="utf-8") as file:
            if file.read().rsplit(")", 1)[1].split()[4] != "0":
                return True
        files = f"/proc/{t.process.pid}/fd"
        links = [os.readlink(f"{files}/{fd}") for fd in os.listdir(files)]
        return os.ttyname(t.slave) in links

    def test_quit(self):
        self.check(lambda t: t.send("quit\r"), (0,))

    def test_terminate(self):
        self.check(lambda t: t.process.send_signal(signal.SIGTERM), (128 + signal.SIGTERM,))

    def test_hangup(self):  # it may stay, but not at this terminal
        self.check(lambda t: t.process.send_signal(signal.SIGHUP), ())


@unittest.skipIf(BASH is None, "no bash")
class Shell(unittest.TestCase):
    """A shell with job control waits for gradb; when gradb leaves its terminal the shell has it back."""

    def open(self):
        t = Terminal(start=("/bin/sh", "-c", f"exec {BASH} --norc --noprofile -i"),
                     env={"PS1": PROMPT, "XDG_RUNTIME_DIR": ""})
        return t

    def enter(self, t, runtime):
        t.env = dict(os.environ, XDG_RUNTIME_DIR=runtime)
        t.expect("^" + PROMPT.strip())
        t.send(f"export XDG_RUNTIME_DIR={runtime} XDG_STATE_HOME={t.home.name}/state\r")
        t.send(f"{harness.GRADB} --tui -q --listen 127.0.0.1:0 run -- {harness.CHARLM} --layers 1 --width 16"
               " --heads 2 --context 16 --batch 2 --threads 1 --steps 1000000\r")
        t.expect_ready()

    def sessions(self, t):
        done = subprocess.run([harness.GRADB, "sessions", "--json"], env=t.env, capture_output=True, text=True,
                              check=False, timeout=harness.DEADLINE)
        return harness.records(done)

    def is_back(self, t, mark):
        """The shell answers, and knows no job any more that has its terminal."""
        t.expect_raw(PROMPT.encode(), mark)
        mark = len(t.raw)
        t.send("echo still $((40+2))\r")
        t.expect_raw(b"still 42", mark)
        t.expect_raw(PROMPT.encode(), mark + 1)

    def end(self, t):
        for session in self.sessions(t):
            os.kill(session["pid"], signal.SIGTERM)
        harness.wait_for("the sessions' end", lambda: not self.sessions(t))

    def test_disconnect(self):
        with self.open() as t:
            self.enter(t, t.home.name)
            try:
                for _ in range(2):
                    mark = len(t.raw)
                    t.send("disconnect\r")
                    self.is_back(t, mark)
                    pids = [session["pid"] for session in self.sessions(t)]
                    self.assertEqual([os.getsid(pid) for pid in pids], pids)  # one, and not the shell's job
                    t.send(f"{harness.GRADB} attach\r", then=b"\x1b[")
                    t.expect(r"^\(gradb\)")
                    t.expect(r"graph: \d+ nodes")
            finally:
                self.end(t)

    def test_taken_over(self):
        with self.open() as t:
            self.enter(t, t.home.name)
            try:
                mark = len(t.raw)
                with Terminal(start=("/bin/sh", "-c", f"exec {harness.GRADB} attach --take"),
                              env={"XDG_RUNTIME_DIR": t.home.name}) as other:
                    other.expect(r"graph: \d+ nodes")
                    self.is_back(t, mark)
                    other.command("echo forty-two", r"^forty-two$")
            finally:
                self.end(t)


if __name__ == "__main__":
    harness.main()
