# SPDX-License-Identifier: GPL-3.0-or-later
"""The mouse in the panes: what a terminal sends, and that it is asked for only while it is wanted."""
import re
import signal
import unittest

import harness
from terminal import PLAIN, SINGLE_KEY, Terminal
from test_themes import FullScreen, FullStream

ON = b"\x1b[?1000h"
OFF = b"\x1b[?1000l"
SGR_ON = b"\x1b[?1006;1000h"
SGR_OFF = b"\x1b[?1006;1000l"
WHEEL_UP, WHEEL_DOWN = 64, 65


TERMS = ("xterm-256color", "tmux-256color", "screen", "linux")
CURSOR = re.compile(r"\[([\d, ]*)\] = ")  # of the tensor


class MouseTerminal(Terminal):
    """With the mouse on; the mouse's sequences as a terminal of that type sends them."""

    def __init__(self, term="xterm-256color", rows=24, cols=80, **options):
        super().__init__(term=term, rows=rows, cols=cols, **options)
        self.sgr = term.startswith("xterm")
        self.screen = FullScreen(cols, rows)
        self.stream = FullStream(self.screen)

    def __enter__(self):
        super().__enter__()
        self.expect_ready()
        self.send("set mouse on\r")
        self.expect_raw(SGR_ON if self.sgr else ON)
        return self

    def sequence(self, button, row, col):
        """A press; of a button, the release, too."""
        if self.sgr:
            place = f"{col + 1};{row + 1}"
            return f"\x1b[<{button};{place}M" + (f"\x1b[<{button};{place}m" if button == 0 else "")
        place = chr(33 + col) + chr(33 + row)
        return "\x1b[M" + chr(32 + button) + place + ("\x1b[M" + chr(32 + 3) + place if button == 0 else "")

    def press(self, button, row, col):
        self.send(self.sequence(button, row, col))

    def find(self, pattern):
        row = self.row_of(pattern)
        assert row is not None, f"no {pattern} on\n{self.text()}"
        return row

    def click(self, pattern, col=4, times=1):
        """So often that nothing lies between: what a fast hand, or a slow line, makes of a double click."""
        self.send(self.sequence(0, self.find(pattern), col) * times)

    def expect_reversed(self, pattern):
        """The row that the pattern fits is the one under a cursor."""
        def is_so():
            row = self.row_of(pattern)
            return row is not None and self.screen.buffer[row][20].reverse
        self.wait(f"the cursor on {pattern}", is_so)

    def prompt(self):
        """A click brings the focus back to it."""
        self.click(r"^─ console")
        self.wait("the prompt", lambda: not self.screen.cursor.hidden)


class Clicks(unittest.TestCase):
    def test_tree(self):
        for term in TERMS:
            with self.subTest(term=term), MouseTerminal(term) as t:
                t.click(r"^ +▾ Default")
                t.expect_reversed(r"^ +▾ Default")
                t.click(r"^ +▸ network")
                t.expect_reversed(r"^ +▸ network")
                t.press(WHEEL_UP, 5, 4)
                t.expect_reversed(r"^ +▾ Default")
                t.send("?")  # the graph has the focus: there it is a key
                t.expect(r"^The screen")

    def test_a_click_on_the_cursor_opens(self):
        with MouseTerminal() as t:
            t.click(r"^ +▸ network")
            t.expect_reversed(r"^ +▸ network")
            t.press(0, 1, 4)  # elsewhere, so that the next is no second half of a double click
            t.expect_reversed(r"^ +▾ Default")
            t.send("gjj")
            t.expect_reversed(r"^ +▸ network")
            t.click(r"^ +▸ network")
            t.expect(r"^ +▾ network")

    def test_double_click_does_it_once(self):
        for term in TERMS:
            with self.subTest(term=term), MouseTerminal(term) as t:
                t.click(r"^ +▸ network", times=2)  # the graph had no focus
                t.expect(r"^ +▾ network")
                t.expect_reversed(r"^ +▾ network")
                t.click(r"^ +▾ Default")  # answered behind the double click
                t.expect_reversed(r"^ +▾ Default")
                t.expect(r"^ +▾ network")
                t.send("gjj")
                t.expect_reversed(r"^ +▾ network")
                t.click(r"^ +▾ network", times=2)  # folds it, and does not open it again
                t.expect(r"^ +▸ network")
                t.click(r"^ +▾ Default")
                t.expect_reversed(r"^ +▾ Default")
                t.expect(r"^ +▸ network")

    def test_a_press_comes_in_pieces(self):
        with MouseTerminal() as t:
            row = t.find(r"^ +▸ network")
            t.send("\x1b[<0;5;")
            t.expect_raw(b"")
            t.send(f"{row + 1}M")
            t.expect_reversed(r"^ +▸ network")

    def test_what_is_no_press_is_no_fault(self):
        with MouseTerminal() as t:
            for rubbish in ("\x1b[<0;0;0M", "\x1b[<M", "\x1b[<0;1M", "\x1b[<1;2;3M", "\x1b[<35;9;9M",
                            "\x1b[<0;999999;999999M", "\x1b[<" + "1" * 40 + "\x15", "\x1b[M  \x7f", "\x1b[M\x7f\x7f\x7f"):
                t.send(rubbish)
            t.send("\x15echo forty-two\r")
            t.expect(r"^forty-two$")

    def test_keys_right_behind_a_press(self):
        for term in TERMS:
            with self.subTest(term=term), MouseTerminal(term) as t:
                row = t.find(r"^─ console")
                t.send(t.sequence(0, 3, 4) + t.sequence(0, row + 1, 4) + "echo forty-two\r")
                t.expect(r"^forty-two$")

    def test_clicks_everywhere_harm_nothing(self):
        with MouseTerminal() as t:
            for layout in ("graph", "watch", "stack", "split", "tensor"):
                with self.subTest(layout=layout):
                    for row in range(24):
                        for col in (0, 1, 30, 41, 79):
                            t.send("".join(t.sequence(button, row, col) for button in (0, WHEEL_DOWN, 2, WHEEL_UP)))
                    t.send("\x1b")  # what a click may have opened: a form
                    t.expect(r"^─ console")
                    t.prompt()
                    t.send(f"\x15layout {layout}\r")
                    t.send("echo forty-two\r")
                    t.expect(r"^forty-two$")
                    for _ in range(12):  # out of the console again
                        t.send("echo -\r")
                    t.expect_not(r"forty-two")

    def test_wheel_below_the_mouse(self):
        with MouseTerminal() as t:
            t.send("help all\r")
            t.expect(r"^  complete ")
            t.press(WHEEL_UP, 18, 10)
            t.expect(r"console \(\d+ lines back\)")
            t.press(WHEEL_DOWN, 18, 10)
            t.expect(r"^─ console ─")
            t.press(WHEEL_DOWN, 3, 4)  # the graph, which has no focus
            t.send("step\r")  # the prompt still has it
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
            t.click(r"^ #1  model\.c")
            t.expect_reversed(r" #1  model\.c")
            t.click(r"^ #1  model\.c")
            t.expect(r"^\(gradb\) frame 1$")
            t.expect(r"^─ nodes of model\.c:\d+ 1/\d+ ─")

    def test_tensor_cells(self):
        with MouseTerminal() as t:
            t.send("tensor head.weight\r")
            t.expect(r"\[0, 0\] = ")
            row = t.find(r"^ *2 +-?\d")
            for col, wanted in ((20, None), (2, None), (8, "[2, 0]")):
                t.press(0, row, col)
                if wanted:
                    t.expect(re.escape(wanted) + " = ")
            t.press(0, row + 1, 8)
            t.expect(r"\[3, 0\] = ")
            t.press(0, row + 1, 40)
            t.expect(r"\[3, [1-9]\] = ")
            t.click(r"^─ console")
            t.send("echo forty-two\r")
            t.expect(r"^forty-two$")

    def test_forms(self):
        with MouseTerminal() as t:
            t.click(r"^ +▾ Default")
            t.expect_reversed(r"^ +▾ Default")
            t.send(SINGLE_KEY + "a")
            t.expect(r"condition +< ")
            was = re.search(r"condition +< (.*?) >", t.text())[1]
            row = t.find(r"condition +< ")
            t.press(0, row, 30)  # it has the cursor: the next choice
            t.wait("another condition", lambda: re.search(r"condition +< (.*?) >", t.text()) and
                   re.search(r"condition +< (.*?) >", t.text())[1] != was)
            row = t.find(r"^ +on +")
            t.press(0, row, 30)
            t.expect(r"^ +condition +(?!<)\S")
            t.press(WHEEL_UP, row, 30)
            t.press(0, t.find(r"Esc leaves"), t.screen.display[t.find(r"Esc leaves")].index("Esc"))
            t.expect_not(r"Esc leaves")
            t.send("a")
            t.expect(r"Enter runs it")
            row = t.find(r"Enter runs it")
            t.press(0, row, t.screen.display[row].index("Enter"))
            t.expect_not(r"Esc leaves")
            t.expect(r"^Watchpoint 1: ")


class Off(unittest.TestCase):
    def test_nothing_is_sent_before(self):
        with Terminal.ready(term="xterm-256color") as t:
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
            t.send(PLAIN, then=SGR_ON)

    def test_a_terminal_without_one(self):
        with Terminal.ready(term="vt100") as t:
            t.command("set mouse on", r"no mouse support is known for the terminal type vt100")


if __name__ == "__main__":
    harness.main()
