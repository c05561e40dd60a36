# SPDX-License-Identifier: GPL-3.0-or-later
"""Colours: what each theme sends to each kind of terminal, and that nothing is said by colour alone."""
import re
import unittest

import pyte

import harness
from terminal import NEXT_PANE, Terminal

# What names and sets a colour, but for the terminal's own ones (39 and 49).
COLOR = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")
NAMED = {"black", "red", "green", "brown", "blue", "magenta", "cyan", "white"}
# Where the training stands, a hit, a watch mark, a breakpoint, a scope's fold mark: words and signs in the tree.
SIGNS = {"hit": r"\[!1\]", "watched": r"^ +~ "}


class FullScreen(pyte.Screen):
    """With what xterm has and pyte lacks: scrolling without the cursor, a character repeated."""

    def draw(self, data):
        self.last = data[-1:] or self.last
        super().draw(data)

    last = " "

    def repeat(self, count=1, **_):
        self.draw(self.last * (count or 1))

    def scroll_up(self, count=1, **_):
        x, y = self.cursor.x, self.cursor.y
        self.cursor.y = self.margins.bottom if self.margins else self.lines - 1
        for _ in range(count or 1):
            self.index()
        self.cursor.x, self.cursor.y = x, y

    def scroll_down(self, count=1, **_):
        x, y = self.cursor.x, self.cursor.y
        self.cursor.y = self.margins.top if self.margins else 0
        for _ in range(count or 1):
            self.reverse_index()
        self.cursor.x, self.cursor.y = x, y


class FullStream(pyte.ByteStream):
    csi = dict(pyte.ByteStream.csi, S="scroll_up", T="scroll_down", b="repeat")
    events = frozenset([*pyte.ByteStream.events, "scroll_up", "scroll_down", "repeat"])


class ThemeTerminal(Terminal):
    """Stands at the end of the first step, at a hit; the console has the focus."""

    def __init__(self, rows=24, cols=80, **kwargs):
        super().__init__(rows=rows, cols=cols, **kwargs)
        self.screen = FullScreen(cols, rows)
        self.stream = FullStream(self.screen)

    def __enter__(self):
        super().__enter__()
        self.expect(r"stopped")
        self.command("watch TL abs_mean_gt=1e-9 on head.weight", r"Watchpoint 1: ")
        self.command("step", r"Watchpoint 1, at the end of step 1")
        self.expect(r"\[!1\]")
        return self

    def cells(self, pattern):
        """The cells of the first match of a pattern on the screen, blanks left out."""
        for row, line in enumerate(self.screen.display):
            found = re.search(pattern, line)
            if found:
                cells = [self.screen.buffer[row][col] for col in range(found.start(), found.end())]
                return [cell for cell in cells if cell.data.strip()]
        return []

    def wait_cells(self, pattern, what, predicate):
        def are_so():
            cells = self.cells(pattern)
            return cells and all(predicate(cell) for cell in cells)
        self.wait(f"{pattern!r} {what}: {self.cells(pattern)}", are_so)

    def colors(self):
        return {color for row in self.screen.buffer.values() for cell in row.values()
                for color in (cell.fg, cell.bg)} - {"default"}

    def heat_map(self):
        self.command("tensor Softmax-op10[0, 0]", r"^\[y, x\] current")
        self.send(NEXT_PANE + "M")
        self.expect(r"heat min\.\.max")
        self.expect(r"^ 0 (██|@@)")

    def heat_cells(self):
        """The map's first row: a full cell, then empty ones."""
        return self.cells(r"^ 0 (██|@@)(▁|\.)+")[1:]


class Themes(unittest.TestCase):
    def test_a_theme_takes_effect_at_once(self):
        hit = {"xterm-256color": {"dark": {"ff87ff"}, "light": {"af00af"}, "safe": {"d78700"}},
               "xterm": {"dark": {"magenta"}, "light": {"magenta"}, "safe": {"brown"}},
               "linux": {"dark": {"magenta"}, "light": {"magenta"}, "safe": {"brown"}}}
        for term, themes in hit.items():
            with self.subTest(term=term), ThemeTerminal(term=term) as t:
                for theme in ("light", "safe", "dark"):
                    t.send(f"set theme {theme}\r")
                    t.wait_cells(SIGNS["hit"], f"as {theme} has it",
                                 lambda cell, theme=theme: cell.fg in themes[theme] and cell.bold)

    def test_unknown_theme(self):
        with ThemeTerminal() as t:
            t.command("set theme pink", r"^error: .*dark.*light.*safe")

    def test_as_many_colours_as_there_are(self):
        """A named one where there are few; without colours signs and bold letters say the same."""
        for term, few in (("xterm", True), ("linux", True), ("xterm-256color", False)):
            with self.subTest(term=term), ThemeTerminal(term=term) as t:
                self.assertTrue(t.colors())
                self.assertEqual(t.colors() <= NAMED, few)
                t.heat_map()
                t.wait_cells(r"(?<=██)▁{10,}", "on a ground", lambda cell: cell.bg != "default")
                self.assertEqual(t.colors() <= NAMED, few)

    def test_set_colors_takes_fewer(self):
        with ThemeTerminal(term="xterm-256color") as t:
            self.assertFalse(t.colors() <= NAMED)
            t.send("set colors 8\r")
            t.wait("named colours", lambda: t.colors() and t.colors() <= NAMED)
            t.send("set color never\r")
            t.wait("no colours", lambda: not t.colors())
            t.send("set color always\r")
            t.wait("colours again", t.colors)


class WithoutColour(unittest.TestCase):
    def check(self, t):
        """Not one colour is sent, and what colours say is seen without them."""
        t.wait_cells(SIGNS["hit"], "bold", lambda cell: cell.bold)
        t.heat_map()
        high, low = t.heat_cells()[0], t.heat_cells()[-1]
        self.assertNotEqual(high.data, low.data)
        self.assertIsNone(COLOR.search(t.raw))

    def test_who_turns_it_off(self):
        for what, kwargs in (("NO_COLOR", {"env": {"NO_COLOR": "1"}}),
                             ("--color never", {"options": ("--tui", "--color", "never")}),
                             ("set color never", {"rc": "set recommend off\nset color never\n"}),
                             ("vt100", {"term": "vt100"})):
            with self.subTest(by=what), ThemeTerminal(**{"term": "xterm-256color", **kwargs}) as t:
                self.check(t)

    def test_who_turns_it_on(self):
        for what, kwargs in (("empty NO_COLOR", {"env": {"NO_COLOR": ""}}),
                             ("--color always", {"env": {"NO_COLOR": "1"}, "options": ("--tui", "--color", "always")}),
                             ("set color always", {"env": {"NO_COLOR": "1"},
                                                   "rc": "set recommend off\nset color always\n"})):
            with self.subTest(by=what), ThemeTerminal(term="xterm-256color", **kwargs) as t:
                t.wait("colours", t.colors)

    def test_signs_say_the_same(self):
        """Each thing that has a colour of its own has a sign or a word of its own, too, in every theme."""
        for term in ("xterm-256color", "vt100"):
            for theme in ("dark", "light", "safe"):
                with self.subTest(term=term, theme=theme), ThemeTerminal(term=term) as t:
                    t.send(f"set theme {theme}\r")
                    t.command("break BiasAdd-op25", r"Breakpoint 2")
                    t.expect(r"\[!1\]")          # a hit in it
                    t.expect(r"^ *~")            # something in it is watched
                    t.command("node head.bias", r"^> *\S*.*head\.bias|head\.bias")
                    t.expect(r"\[TL\]")          # a hit
                    t.expect(r"stopped")         # the state
                    t.command("frobnicate", r"^error: ")
                    t.wait_cells(r"^.? ?(?:─ |- |q )?console", "in reverse where the focus is",
                                 lambda cell: cell.reverse or cell.data in "─-q")


class Ascii(unittest.TestCase):
    def test_no_byte_beyond_ascii_is_sent(self):
        """A tour through all panes and layouts."""
        for rows, cols in ((24, 80), (60, 200)):
            with self.subTest(rows=rows, cols=cols), \
                    ThemeTerminal(rows=rows, cols=cols, env={"LC_ALL": "C"}, rc="set recommend off\n"
                                  "bind F5 focus console\n") as t:
                for layout in ("graph", "tensor", "watch", "stack", "split"):
                    t.send(f"layout {layout}\r")
                    for pane in ("graph", "node", "watch", "hits", "stack", "source", "tensor", "history", "log"):
                        t.send(f"focus {pane}\r")
                        t.expect(rf"^(.*\|)?- {pane}|- \S* *{pane}|- (scope|graph)")
                        t.send(NEXT_PANE + "jMm?j?\x1b\x1b[[E")
                        t.wait("the prompt", lambda: not t.screen.cursor.hidden)
                t.command("info hits", r"\(gradb\)")
                self.assertEqual(set(byte for byte in t.raw if byte > 0x7e), set())


if __name__ == "__main__":
    harness.main()
