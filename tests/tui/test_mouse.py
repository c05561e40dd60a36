# SPDX-License-Identifier: GPL-3.0-or-later
"""The mouse in the panes: what a terminal sends, and that it is asked for only while it is wanted."""
import signal
import unittest

import harness
from terminal import PLAIN, Terminal

ON = b"\x1b[?1000h"
OFF = b"\x1b[?1000l"
SGR_ON = b"\x1b[?1006;1000h"
SGR_OFF = b"\x1b[?1006;1000l"
WHEEL_UP, WHEEL_DOWN = 64, 65


class MouseTerminal(Terminal):
    """With the mouse on; the mouse's sequences as a terminal of that type sends them."""

    def __init__(self, term="xterm-256color", **options):
        super().__init__(term=term, **options)
        self.sgr = term.startswith("xterm")

    def __enter__(self):
        super().__enter__()
        self.expect_ready()
        self.send("set mouse on\r")
        self.expect_raw(SGR_ON if self.sgr else ON)
        return self

    def press(self, button, row, col):
        if self.sgr:
            self.send(f"\x1b[<{button};{col + 1};{row + 1}M")
            if button == 0:
                self.send(f"\x1b[<0;{col + 1};{row + 1}m")
        else:
            self.send("\x1b[M" + chr(32 + button) + chr(33 + col) + chr(33 + row))
            if button == 0:
                self.send("\x1b[M" + chr(32 + 3) + chr(33 + col) + chr(33 + row))

    def click(self, pattern, col=4):
        row = self.row_of(pattern)
        assert row is not None, f"no {pattern} on\n{self.text()}"
        self.press(0, row, col)

    def expect_reversed(self, pattern):
        """The row that the pattern fits is the one under a cursor."""
        def is_so():
            row = self.row_of(pattern)
            return row is not None and self.screen.buffer[row][20].reverse
        self.wait(f"the cursor on {pattern}", is_so)


class Clicks(unittest.TestCase):
    def test_tree(self):
        for term in ("xterm-256color", "tmux-256color", "screen", "linux"):
            with self.subTest(term=term), MouseTerminal(term) as t:
                t.click(r"▸ network|▾ network")
                t.expect_reversed(r"[▸▾] network")
                t.click(r"▸ network")
                t.expect(r"▾ network")
                t.press(WHEEL_UP, 5, 4)
                t.expect_reversed(r"▾ Default")
                t.send("?")  # the graph has the focus: there it is a key
                t.expect(r"^The screen")

    def test_a_pane_below_the_wheel_scrolls(self):
        with MouseTerminal() as t:
            t.send("help all\r")
            t.expect(r"^  complete ")
            t.press(WHEEL_UP, 18, 10)
            t.expect(r"console \(\d+ lines back\)")
            t.press(WHEEL_DOWN, 18, 10)
            t.expect(r"^─ console ─")
            t.send("step\r")  # and the prompt still has the focus
            t.expect(r"^Stopped at the end of step 1")

    def test_watchpoints_and_hits(self):
        with MouseTerminal() as t:
            t.send("watch TL max_gt=-1e9 on all\rwatch TO on weights\rlayout watch\r")
            t.expect(r"^─ watch 2 ─")
            t.send("continue\r")
            t.expect(r"^ +1 \S stop .* [1-9]\d* *│")
            t.click(r"^ +2 \S stop")
            t.expect_reversed(r"^ +2 \S stop")
            t.click(r"^ +1 \S stop")
            t.expect_reversed(r"^ +1 \S stop")
            t.click(r"^ +1 \S stop")
            t.expect(r"hits of watchpoint 1")

    def test_text_panes(self):
        with MouseTerminal() as t:
            t.send("node Add-op2\rlayout stack\r")
            t.expect(r"^>#0  model\.c:\d+")
            t.click(r" #1  model\.c")
            t.expect_reversed(r" #1  model\.c")
            t.click(r" #1  model\.c")
            t.expect(r"^>#1  model\.c")


class Off(unittest.TestCase):
    def test_nothing_is_sent_before(self):
        with Terminal(term="xterm-256color") as t:
            t.expect_ready()
            t.quit()
            self.assertNotIn(b"?1000", t.raw)

    def test_switched_off_on_every_way_out(self):
        ways = {"set mouse off": lambda t: t.send("set mouse off\r"),
                "the plain prompt": lambda t: t.send(PLAIN),
                "tui disable": lambda t: t.send("tui disable\r"),
                "Ctrl-Z": lambda t: t.send("\x1a")}
        for name, leave in ways.items():
            with self.subTest(way=name), MouseTerminal() as t:
                mark = len(t.raw)
                leave(t)
                t.expect_raw(SGR_OFF, mark)
                t.process.send_signal(signal.SIGCONT)

    def test_switched_off_at_the_end(self):
        for term, off in (("xterm-256color", SGR_OFF), ("screen", OFF)):
            with self.subTest(term=term), MouseTerminal(term) as t:
                mark = len(t.raw)
                t.quit()
                self.assertIn(off, t.raw[mark:])

    def test_switched_off_by_a_fault(self):
        for number in (signal.SIGSEGV, signal.SIGABRT):
            with self.subTest(signal=number), MouseTerminal() as t:
                mark = len(t.raw)
                t.process.send_signal(number)
                t.wait_exit()
                self.assertIn(SGR_OFF, t.raw[mark:])

    def test_on_again_behind_the_plain_prompt(self):
        with MouseTerminal() as t:
            t.send(PLAIN)
            t.expect_raw(SGR_OFF)
            mark = len(t.raw)
            t.send(PLAIN)
            t.expect_raw(SGR_ON, mark)

    def test_a_terminal_without_one(self):
        with Terminal(term="vt100") as t:
            t.expect_ready()
            t.command("set mouse on", r"vt100 has no mouse that is known here")


if __name__ == "__main__":
    harness.main()
