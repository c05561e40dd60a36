# SPDX-License-Identifier: GPL-3.0-or-later
"""Random keys, pasted text, clicks and sizes against the real program on terminals of several kinds, with a training
process or the record of one: it does not crash, and gives the terminal back however it is ended. Where the keys end the
program, another one is started, until the time is over.

GRADB_FUZZ_SECONDS: how long each test takes. GRADB_FUZZ_SEED: the run to repeat, 0: another one each time; each run says
its own. GRADB_FUZZ_FIRST: the number of the program to begin with: each has keys of its own, whatever came before it.
GRADB_FUZZ_KIND: "TERM CODESET live|record", for one kind of terminal only."""
import itertools
import os
import random
import re
import select
import signal
import termios
import time
import unittest

import harness
from terminal import Terminal

SECONDS = float(os.environ.get("GRADB_FUZZ_SECONDS", "4"))
FIRST = int(os.environ.get("GRADB_FUZZ_FIRST", "1"))
SEED = int(os.environ.get("GRADB_FUZZ_SEED", "3001")) or random.SystemRandom().randrange(1, 1 << 31)

KEYS = (["\x18o", "\x18p", "\x181", "\x182", "\x18s", "\x18a", "\x18\x01", "\x0c", "\t", "\x1b[Z", "\x1b", "\x1b\x1b"]
        + [f"\x1b[{c}" for c in "ABCDHF"] + [f"\x1b[{n}~" for n in range(1, 25)] + list("jkgGnN/?=+-[]yxMmaeqpbdiulw<> ")
        + ["\r", "\x7f", "\x02", "\x06", "\x15", "\x04\x08", "\x0e", "\x10", "\x12", "\x03"])
LINES = ["next", "step", "node 3", "break MatMul", "watch nan all",
         "watch tensor_too_large where type:MatMul param=1", "info hits", "layout graph", "layout tensor",
         "layout watch", "layout stack", "layout split", "focus next", "focus prev", "winheight 5", "winheight 0",
         "set theme light", "set theme safe", "set theme dark", "set colors 8", "set colors 16", "set colors auto",
         "set mouse on", "set mouse off", "help", "help keys", "print head.weight", "tensor head.weight",
         "info history", "display loss", "undisplay 1", "focus tensor", "focus hits", "focus history", "focus source",
         "focus log", "set altscreen off", "why loss", "bind F2 next", "refresh", "continue", "detach"]
LETTERS = "abc XYZ019$%*[]():,.\"'\\/äΩ漢́\u200d\x00\x7f"
TERMS = ("xterm-256color", "vt100", "linux", "xterm", "screen-256color")
KIND = os.environ.get("GRADB_FUZZ_KIND", "")
EDITS = ["\x12", "\x13", "\x07", "\x1b3", "\x1b-", "\x19", "\x1by", "\x0b", "\x17", "\x1b\x7f", "\x1bd", "\x1f",
         "\x18(", "\x18)", "\x18e", "\x18\x15", "\x14", "\x1bt", "\x1bu", "\x1bl", "\x1bc", "\x1b?", "\x1b*", "\t\t",
         "\x1bp", "\x1bn", "\x16", "\x1d", "\x1b\x1d", "\x1b.", "\x1b\x19", "\x1b<", "\x1b>", "\x1br", "\x1b#",
         "\x18\x12", "\x18\x18", "\x00", "\x1b\x0a", "\x0a", "a", "wa", "info ", " ", "3", "\x7f", "\x01", "\x05",
         "\x1b", "\x1b[", "\x1bO"]
SIZES = [(24, 80), (30, 100), (60, 200), (10, 40), (9, 39), (1, 1), (2, 7), (43, 132), (3, 200), (80, 20), (200, 500),
         (10, 39), (9, 40)]


class Fuzz(unittest.TestCase):
    def setUp(self):
        self.random = None  # of the program that is played with
        self.number = FIRST - 1
        self.recorded = None

    def says(self):
        return f"seed {SEED}, program {self.number}"

    def some_keys(self):
        kind = self.random.random()
        if kind < 0.70:
            return "".join(self.random.choices(KEYS, k=self.random.randint(1, 8))).encode()
        if kind < 0.74:
            return self.some_edit()
        if kind < 0.78:
            return self.some_paste()
        if kind < 0.82:
            return self.some_click()
        if kind < 0.90:
            # C-u empties the line; at a list the letters are keys as others.
            return ("\x15" + self.random.choice(LINES) + "\r").encode()
        if kind < 0.97:
            return "".join(self.random.choices(LETTERS, k=self.random.randint(1, 12))).encode()
        # C-z and C-\\ suspend and kill any program: not without a shell behind it.
        return self.random.randbytes(self.random.randint(1, 12)).translate(None, b"\x1a\x1c")

    def some_edit(self):
        """What readline has of its own: searches, counts, keyboard macros, cutting and putting back, vi's keys."""
        return "".join(self.random.choices(EDITS, k=self.random.randint(1, 10))).encode()

    def some_paste(self):
        text = "".join(self.random.choices(LETTERS + "\r\n\t\x1b", k=self.random.randint(0, 200)))
        end = "\x1b[201~" if self.random.random() < 0.9 else "\x03"
        return f"\x1b[200~{text}{end}".encode()

    def some_click(self):
        button = self.random.choice([0, 0, 1, 2, 32, 35, 64, 65, 4, 128])
        row, column = self.random.randint(0, 210), self.random.randint(0, 510)
        return f"\x1b[<{button};{column};{row}{self.random.choice('Mm')}".encode()

    def feed(self, terminal, data):
        """What the program writes meanwhile is read, so that neither waits for the other."""
        while data:
            readable, writable, _ = select.select([terminal.master], [terminal.master], [], 1)
            if readable:
                self.take(terminal)
            if writable:
                data = data[os.write(terminal.master, data):]
            if terminal.process.poll() is not None:
                return

    def take(self, terminal):
        terminal.raw = (terminal.raw + os.read(terminal.master, 65536))[-65536:]

    def play(self, terminal, end):
        """Until then, or until a random command has ended the program."""
        while time.monotonic() < end and terminal.process.poll() is None:
            if self.random.random() < 0.08:
                terminal._set_size(*self.random.choice(SIZES))
            self.feed(terminal, self.some_keys())
            while select.select([terminal.master], [], [], 0.001)[0]:
                self.take(terminal)

    def finish(self, terminal, before):
        """before: the end of what it wrote before it was asked to end."""
        deadline = time.monotonic() + harness.DEADLINE
        while terminal.process.poll() is None:
            if select.select([terminal.master], [], [], 0.05)[0]:
                self.take(terminal)
            self.assertLess(time.monotonic(), deadline,
                            f"{self.says()}: it does not end: {before!r} ... {terminal.raw[-1000:]!r}")
        while select.select([terminal.master], [], [], 0.1)[0]:
            self.take(terminal)
        return terminal.process.returncode

    def record(self):
        """What gradb wrote of a few steps."""
        if self.recorded is not None:
            return self.recorded
        path = harness.folder_of(self) / "record.gdhist"
        lines = [f"set history-file {path}", "trace -step 'max > 1e30' on weights", "step 5"]
        program = [harness.CHARLM, *harness.SMALL, "--batch", "2", "--threads", "1", "--steps", "1000"]
        done = harness.run_gradb("-nx", "-q", "--batch", *harness.typed(*lines), "run", "--", *map(str, program))
        self.assertTrue(os.path.exists(path), done.stdout + done.stderr)
        self.recorded = path
        return path

    def terminal(self):
        kind = KIND.split() or [self.random.choice(TERMS), self.random.choice(("UTF-8", "ASCII")),
                                self.random.choice(("live", "live", "record"))]
        mouse, editing = self.random.choice(("on", "off")), self.random.choice(("emacs", "emacs", "vi"))
        print(f"# {self.says()}: {' '.join(kind)}, mouse {mouse}, {editing}", flush=True)
        more = {"look_at": self.record()} if kind[2] == "record" else {}
        inputrc = harness.folder_of(self) / "inputrc"
        inputrc.write_text(f"set editing-mode {editing}\n")
        env = {"INPUTRC": inputrc, "LC_ALL": "C" if kind[1] == "ASCII" else "C.UTF-8"}
        return Terminal(term=kind[0], rc=f"set recommend off\nset confirm off\nset mouse {mouse}\n", env=env, **more)

    def last_words(self, terminal):
        said = terminal.raw.decode(errors="replace")
        report = re.search(r"==ERROR: |runtime error", said)
        return said[report.start():][:8000] if report else said[-4000:]

    def check_one(self, end, end_it, statuses):
        self.number += 1
        self.random = random.Random(f"{SEED} {self.id()} {self.number}")
        with self.terminal() as t:
            self.addCleanup(harness.end_all_of, t.home.name)
            t.expect_raw(b"gradb")
            self.play(t, end)
            before = t.raw[-2000:]
            if t.process.poll() is None:
                end_it(t)
            status = self.finish(t, before)
            said = self.last_words(t)
            self.assertNotIn("Sanitizer", said, self.says())
            self.assertNotIn("runtime error", said, self.says())
            self.assertIn(status, statuses, f"{self.says()}: {said}")
            self.assertEqual(termios.tcgetattr(t.slave), t.before, f"{self.says()}: the terminal is not as it was")
        harness.end_all_of(t.home.name)

    def check(self, end_it, statuses):
        end = time.monotonic() + SECONDS
        self.check_one(end, end_it, statuses)
        while time.monotonic() < end:
            self.check_one(end, end_it, statuses)

    def test_terminated(self):
        self.check(lambda t: t.process.send_signal(signal.SIGTERM), (0, 128 + signal.SIGTERM))

    def test_quit(self):
        def leave(terminal):
            terminal._set_size(24, 80)
            end = time.monotonic() + harness.DEADLINE
            # Whatever is open, running or asked: this leads out of it. One after the other: what was typed before a
            # C-c and not read yet is dropped by the terminal.
            ways = itertools.cycle([b"\x03", b"\x1b\x1bqq\x18a", b"\x03", b"\x15quit\r", b"y\r"])
            while time.monotonic() < end and terminal.process.poll() is None:
                self.feed(terminal, next(ways))
                heard = min(end, time.monotonic() + 1)
                while time.monotonic() < heard and select.select([terminal.master], [], [], 0.1)[0]:
                    self.take(terminal)

        self.check(leave, (0,))


if __name__ == "__main__":
    harness.main()
