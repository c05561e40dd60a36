# SPDX-License-Identifier: GPL-3.0-or-later
"""Random keys and random sizes against the real program on a terminal, with a training process: it does
not crash, and gives the terminal back however it is ended.

GRADB_FUZZ_SECONDS: how long all of it takes. GRADB_FUZZ_SEED: the run to repeat; each run says its own."""
import os
import random
import select
import signal
import termios
import time
import unittest

import harness
from terminal import Terminal

SECONDS = float(os.environ.get("GRADB_FUZZ_SECONDS", "8"))
SEED = int(os.environ.get("GRADB_FUZZ_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)

KEYS = (["\x18o", "\x18p", "\x181", "\x182", "\x18s", "\x18a", "\x18\x01", "\x0c", "\t", "\x1b[Z", "\x1b", "\x1b\x1b"]
        + [f"\x1b[{c}" for c in "ABCDHF"] + [f"\x1b[{n}~" for n in range(1, 25)] + list("jkgGnN/?=+-[]yxMmaeqpbdiulw<> ")
        + ["\r", "\x7f", "\x02", "\x06", "\x15", "\x04\x08", "\x0e", "\x10", "\x12", "\x03"])
LINES = ["next", "step", "node 3", "break MatMul", "watch nan all", "watch tensor_too_large where type:MatMul param=1",
         "info hits", "layout graph", "layout tensor", "layout watch", "layout stack", "layout split", "focus next",
         "focus prev", "winheight 5", "winheight 0", "set theme light", "set theme safe", "set theme dark",
         "set colors 8", "set colors 16", "set colors auto", "set mouse on", "set mouse off", "help", "help keys",
         "print head.weight", "tensor head.weight", "why loss", "bind F2 next", "refresh", "continue", "detach"]
LETTERS = "abc XYZ019$%*[]():,.\"'\\/äΩ漢́\u200d\x00\x7f"
SIZES = [(24, 80), (30, 100), (60, 200), (10, 40), (9, 39), (1, 1), (2, 7), (43, 132), (3, 200), (80, 20)]


class Fuzz(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(f"{SEED} {self.id()}")

    def some_keys(self):
        kind = self.random.random()
        if kind < 0.75:
            return "".join(self.random.choices(KEYS, k=self.random.randint(1, 8))).encode()
        if kind < 0.88:
            # C-u empties the line; at a list the letters are keys as others.
            return ("\x15" + self.random.choice(LINES) + "\r").encode()
        if kind < 0.97:
            return "".join(self.random.choices(LETTERS, k=self.random.randint(1, 12))).encode()
        # C-z and C-\\ suspend and kill any program: not without a shell behind it.
        return self.random.randbytes(self.random.randint(1, 12)).translate(None, b"\x1a\x1c")

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

    def finish(self, terminal):
        deadline = time.monotonic() + harness.DEADLINE
        while terminal.process.poll() is None:
            if select.select([terminal.master], [], [], 0.05)[0]:
                self.take(terminal)
            self.assertLess(time.monotonic(), deadline, f"seed {SEED}: it does not end")
        while select.select([terminal.master], [], [], 0.1)[0]:
            self.take(terminal)
        return terminal.process.returncode

    def check(self, seconds, end_it, statuses):
        with Terminal(term="xterm-256color", rc="set recommend off\nset confirm off\n") as t:
            t.expect_ready()
            self.play(t, time.monotonic() + seconds)
            if t.process.poll() is None:
                end_it(t)
            status = self.finish(t)
            said = t.raw[-4000:].decode(errors="replace")
            self.assertNotIn("Sanitizer", said, f"seed {SEED}")
            self.assertNotIn("runtime error", said, f"seed {SEED}")
            self.assertIn(status, statuses, f"seed {SEED}: {said}")
            self.assertEqual(termios.tcgetattr(t.slave), t.before, f"seed {SEED}: the terminal is not as it was")

    def test_terminated(self):
        print(f"# seed {SEED}", flush=True)
        self.check(SECONDS / 2, lambda t: t.process.send_signal(signal.SIGTERM), (0, 128 + signal.SIGTERM))

    def test_quit(self):
        def leave(terminal):
            terminal._set_size(24, 80)
            for _ in range(200):  # whatever is open, running or asked: this leads out of it
                if terminal.process.poll() is not None:
                    return
                self.feed(terminal, b"\x03\x1b\x1bqq\x18a\x03\x15quit\ry")
                if select.select([terminal.master], [], [], 0.2)[0]:
                    self.take(terminal)

        self.check(SECONDS / 2, leave, (0,))


if __name__ == "__main__":
    harness.main()
