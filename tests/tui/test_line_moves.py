# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys that move through the former lines and search in them, at the prompt and in the panes, with emacs' keys and vi's:
each shows the line it should, undo works back the changes of that line alone, and what was run stays as it was run."""
import unittest

import harness
from terminal import Terminal

UP, DOWN, OLDER, NEWER, UNDO, ESC = "\x1b[A", "\x1b[B", "\x1br", "\x1bs", "\x1f", "\x1b"
RC = "set recommend off\nset confirm off\n"
FORMER = ["# one", "# two", "# zwölf", "# three"]
INPUTRC = 'set editing-mode %s\n"\\er": history-search-backward\n"\\es": history-search-forward\n' \
    '"\\C-xf": "\\C-rwo\\C-a"\n'

EMACS = [
    # keys, and the line they lead to with a ! typed at its end
    ("new" + UP, "# three"),
    ("new" + UP + DOWN, "new"),
    ("new" + UP + DOWN + UNDO, ""),
    ("new" + UP + "X" + UP + "Y" + DOWN, "# threeX"),
    ("new" + UP + "X" + UP + "Y" + DOWN + UNDO, "# three"),
    ("new" + UP + "X" + UP + "Y" + DOWN + DOWN, "new"),
    ("new" + UP + "X" + UP + "Y" + DOWN + UP, "# zwölfY"),
    ("new" + UP + "X" + UP + "Y" + DOWN + UP + UNDO + UNDO, "# zwölf"),
    ("new" + UP + "X\x1bp" + "tw\r" + DOWN + DOWN + UNDO, "# three"),
    ("new\x1b<", "# one"),
    ("new\x1b<X\x1b>", "new"),
    ("new\x1b<X\x1b>\x1b<" + UNDO, "# one"),
    ("new\x1b9" + UP, "# one"),
    ("new\x12wo", "# two"),
    ("new\x12wo" + DOWN, "# zwölf"),
    ("new\x12wo" + DOWN + DOWN + DOWN, "new"),
    ("new\x12#\x12\x01Q", "Q# zwölf"),
    ("new\x12#\x12\x12", "# two"),
    ("new\x12\x12\x12", "# zwölf"),  # what was searched for last, again
    ("new\x12ö", "# zwölf"),
    ("new\x12öx\x7f", "# zwölf"),
    ("new\x12nowhere", "new"),
    ("new\x12wo\x07", "new"),
    ("new\x12wo\x07" + UNDO, ""),
    (UP + "X\x12wo\x07", "# threeX"),
    (UP + "X\x12wo" + DOWN + DOWN + UNDO, "# three"),
    ("new\x12z\x17", "# zwölf"),
    ("new\x1bptw\r", "# two"),
    ("new\x1bptw\r" + UP, "# one"),
    ("new\x1bp^# t\r", "# three"),
    ("new\x1bpnowhere\r", "new"),
    ("new\x1bpnowhere\r" + UNDO, ""),
    ("new\x1bptw\x07", "new"),
    ("new\x1bptw\x15one\r", "# one"),
    (UP + UP + UP + UP + "\x1bnthree\r", "# three"),
    ("# t" + OLDER, "# three"),
    ("# t" + OLDER + OLDER, "# two"),
    ("# t" + OLDER + OLDER + OLDER + NEWER, "# three"),
    ("# t" + OLDER + OLDER + NEWER + NEWER, "# t"),
    ("# t" + OLDER + OLDER + DOWN, "# zwölf"),
    ("new\x18f", "# two"),  # a search in a macro
]
VI = [
    ("new" + ESC + "k", "# three"),
    ("new" + ESC + "kj", "new"),
    ("new" + ESC + "kAX" + ESC + "kj", "# threeX"),
    ("new" + ESC + "kAX" + ESC + "kju", "# three"),
    ("new" + ESC + "/wo\r", "# two"),
    ("new" + ESC + "/wo\rj", "# zwölf"),
    ("new" + ESC + "/#\rn", "# zwölf"),
    ("new" + ESC + "/#\rnnN", "# zwölf"),
    ("new" + ESC + "/^# t*o\r", "# two"),
    ("new" + ESC + "/z*f\r", "# zwölf"),
    ("new" + ESC + "/nowhere\r", "new"),
    ("new" + ESC + "/wo\x07", "new"),
    ("new" + ESC + "/\x7f", "new"),
    ("new" + ESC + "kAX" + ESC + "/wo\rjju", "# three"),
    ("new" + ESC + "G?three\r", "# three"),
    ("new" + ESC + "G", "# one"),
    ("new" + ESC + "2G", "# two"),
    ("new\x12wo", "# two"),
]


class Moves(unittest.TestCase):
    def open(self, panes, editing):
        inputrc = harness.folder_of(self) / "inputrc"
        inputrc.write_text(INPUTRC % editing)
        return Terminal(rows=24, cols=80, env={"INPUTRC": inputrc}, rc=RC, program=False,
                        options=("--tui",) if panes else ("--no-tui",))

    def expect_line(self, t, line, keys=""):
        """The prompt with this line has the cursor."""
        def shown():
            return t.screen.display[t.screen.cursor.y].rstrip()

        wanted = ("(gradb) " + line).rstrip()
        t.wait(f"{wanted!r} after {keys!r}", lambda: shown() == wanted)

    def begin(self, t):
        self.expect_line(t, "")
        for line in FORMER:
            self.run_line(t, line, line)

    def clear(self, t):
        t.send("\x03")
        self.expect_line(t, "")

    def run_line(self, t, keys, line):
        """A comment: it is remembered, and says nothing."""
        t.send(keys + "\r")
        t.expect(r"^\(gradb\) " + line)
        self.expect_line(t, "")

    def check_table(self, editing, table, to_end):
        for panes in (False, True):
            with self.subTest(panes=panes), self.open(panes, editing) as t:
                self.begin(t)
                for keys, line in table:
                    t.send(keys + to_end + "!")
                    self.expect_line(t, line + "!", keys)
                    self.clear(t)
                self.assertEqual(t.quit(asks=False), 0)

    def test_emacs(self):
        self.check_table("emacs", EMACS, "\x05")

    def test_vi(self):
        self.check_table("vi", VI, ESC + "A")

    def test_what_was_run_stays(self):
        for panes in (False, True):
            with self.subTest(panes=panes), self.open(panes, "emacs") as t:
                self.begin(t)
                self.run_line(t, UP + "X", "# threeX")
                self.run_line(t, UP + UP + UP + "Y" + DOWN + DOWN + DOWN + "# four", "# four")
                for count, line in enumerate(["# four", "# threeX", "# three", "# zwölf", "# two"]):
                    t.send(UP * (count + 1) + "\x05!")
                    self.expect_line(t, line + "!", f"{count + 1} lines up")
                    self.clear(t)
                # C-o runs a former line and shows the one after it
                t.send(UP * 3 + "\x0f")
                self.expect_line(t, "# threeX")
                self.clear(t)
                self.assertEqual(t.quit(asks=False), 0)
                with open(t.home.name + "/state/gradb/history", encoding="utf-8") as file:
                    self.assertEqual(file.read().split("\n")[-7:-2],
                                     ["# zwölf", "# three", "# threeX", "# four", "# three"])


if __name__ == "__main__":
    harness.main()
