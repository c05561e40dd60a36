# SPDX-License-Identifier: GPL-3.0-or-later
"""One journey through the panes at every size, each of its screens compared with tests/tui/screens.

What differs from run to run is replaced by fixed words before. UPDATE=1 in the environment writes the
files anew: read them before they are committed."""
import difflib
import itertools
import os
import re
import termios
import unittest

import harness
from terminal import SINGLE_KEY, Terminal

SCREENS = harness.SOURCE / "tests" / "tui" / "screens"
ASCII = {"LC_ALL": "C"}
RC = "set recommend off\nset watch-when exact\nbind C-x g focus console\n"
CONSOLE, NEXT_PANE, ESCAPE = "\x18g", "\x18o", "\x1b"
TRAINER = ("--data", str(harness.SOURCE / "COPYING"), "--seed", "7", "--steps", "1000000")

WORDS = (
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"charlm \d+\.\d+\.\d+", "charlm N.N.N"),
    (r"loss \d\S*", "loss LOSS"),
    (r"(PORT=|-R )\d+(:\S+)?", r"\1PORT"),
    (r"[\d.]+ steps?/s", "RATE"),
    (r" +(\d+%|-)(?=[│|]| *$)", " COST"),
)
# Of what a watchpoint costs nothing is kept, wherever it was folded.
COST = re.compile(r"(?<=hits), [^│|\n]*?(?= *[│|])|^[\w%. (]*ms\)(?= *[│|])", re.MULTILINE)


def form_of(lines):
    """The form over the panes and nothing of what lies behind it; None without one."""
    for row, line in enumerate(lines):
        title = re.search(r"[─-]{2} a new watchpoint [─-]+", line)
        if title:
            left, right = title.span()
            ends = [i for i in range(row + 1, len(lines)) if re.fullmatch(r"[─-]+", lines[i][left:right])]
            return [line[left:right] for line in lines[row:ends[0] + 1]] if ends else None
    return None


def steady(text):
    """The screen without what differs from run to run. Of the console the prompt alone: what is printed
    holds paths, and how they fold depends on their length."""
    lines = text.splitlines()
    form = form_of(lines)
    at = next((i for i, line in enumerate(lines) if re.match(r"[─-] console [─-]", line)), len(lines) - 2)
    kept = (form or lines[:at + 1] + [line for line in lines[-2:-1] if at < len(lines) - 2]) + lines[-1:]
    text = "\n".join(kept)
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    text = COST.sub(lambda found: " " * len(found[0]), text)
    lines = []
    for line, same in itertools.groupby(line.rstrip() for line in text.splitlines()):
        count = len(list(same))
        lines += [line] * count if count < 3 else [line, f"({count - 1} more such rows)"]
    return "\n".join(lines)


class Album:
    """The screens of one journey, in one file; and the key Down of its terminal."""

    def __init__(self, name, down):
        self.down = down
        self.path = SCREENS / f"{name}.txt"
        self.update = bool(os.environ.get("UPDATE"))
        self.seen = []
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        self.golden = {part.split("\n", 1)[0]: part.split("\n", 1)[1].rstrip("\n")
                       for part in text.split("\n=== ")[1:]}

    def look(self, t, name):
        """The screen becomes, or is, the one in the file."""
        self.seen.append(name)
        if self.update:
            t.wait("a screen that stands still", lambda: all(t.is_quiet() for _ in range(5)))
            self.golden[name] = steady(t.text())
            return
        wanted = self.golden.get(name, "(there is no such screen)")
        try:
            t.wait(name, lambda: steady(t.text()) == wanted)
        except AssertionError as error:
            found = difflib.unified_diff(wanted.splitlines(), steady(t.text()).splitlines(), "wanted", "found",
                                         lineterm="")
            raise AssertionError(f"{self.path.name}, {name}:\n" + "\n".join(found)) from error

    def close(self):
        if self.update:
            SCREENS.mkdir(exist_ok=True)
            text = "".join(f"\n=== {name}\n{self.golden[name]}\n" for name in self.seen)
            self.path.write_text("Written by test_journey.py.\n" + text, encoding="utf-8")


def choose(t, letter, pattern):
    """Types the letter until that condition is the form's."""
    def number():
        found = re.search(r">  (\d+) of \d+", t.text())
        return found and int(found[1])
    t.wait("a choice", number)
    while not re.search(f"< {pattern} >", t.text()):
        before = number()
        t.send(letter)
        t.wait("the next choice", lambda: number() not in (None, before))


def from_the_console(t, line, pane):
    """Runs a command, then the focus goes to the pane."""
    t.send(CONSOLE)
    t.expect(r"^\(gradb\) focus console\n\(gradb\)$")
    t.send(f"{line}\r")
    t.expect(rf"^\(gradb\) {re.escape(line)}$")
    t.go_to(pane)


def walk(t, album, rows, cols):
    """The journey. Small windows show one pane at a time; here all do."""
    t.expect(r"listening on 127\.0\.0\.1:\d+")
    album.look(t, "waiting for a trainer")
    address = re.search(r"listening on (127\.0\.0\.1:\d+)", t.text()).group(1)
    with t.trainer(address, *TRAINER) as trainer:
        t.expect_ready()
        album.look(t, "connected")
        look_at_the_graph(t, album)
        watch(t, album)
        follow(t, album)
        look_at_values(t, album)
        look_at_the_source(t, album, rows, cols)
        trainer.kill()
        t.expect(r"^ .*  lost")
        album.look(t, "the trainer was killed")


def look_at_the_graph(t, album):
    t.send(NEXT_PANE + "\r")
    album.look(t, "folded")
    t.send("\rjj\r")
    album.look(t, "unfolded")
    t.send("=type:matmul op1")
    album.look(t, "filtered")
    t.send(ESCAPE)
    t.expect_not(r"^=")


def watch(t, album):
    from_the_console(t, "layout watch", "watch")
    t.send(SINGLE_KEY + "a")
    t.expect(r"a new watchpoint")
    choose(t, "t", r"tensor_too_large \(TL\)")
    t.send(2 * album.down + "60")
    t.expect(r"max_gt +60")
    album.look(t, "the form")
    t.send("\r")
    t.expect_not(r"a new watchpoint")
    album.look(t, "watched")
    t.send("C")
    t.expect(r"max|69 > 60")
    album.look(t, "a hit")


def follow(t, album):
    t.send(SINGLE_KEY + "\r\r")  # to the hits of the watchpoint; to the node of the first
    t.expect(r">1 +1 TL")
    album.look(t, "jumped to the hit")
    from_the_console(t, "layout graph", "node")
    t.send("/Gather-op1\r\r")
    t.expect(r"^\(gradb\) node Default/network/embed/Gather-op1$")
    album.look(t, "at the node that it feeds")
    t.send("/data.input:0\r\r")
    t.expect(r"^\(gradb\) node Default/data/input$")
    album.look(t, "back by the input's edge")


def look_at_values(t, album):
    t.send("t")
    t.expect(r"^\(gradb\) tensor Default/data/input")
    album.look(t, "the tensor")
    t.send("jlll")
    album.look(t, "moved in it")


def look_at_the_source(t, album, rows, cols):
    from_the_console(t, "layout stack", "stack")
    album.look(t, "the stack and the source")
    t.resize(14, 50)
    t.wait("the small screen", lambda: "stopped" in t.screen.display[13])
    album.look(t, "made small")
    t.resize(rows, cols)
    t.wait("the whole screen", lambda: "stopped" in t.screen.display[rows - 1])
    album.look(t, "and as before")


class Journey(unittest.TestCase):
    def check(self, name, rows, cols, env=None, down="\x1b[B", **more):
        album = Album(name, down)
        with Terminal(rows=rows, cols=cols, env=env, program=False, rc=RC, **more) as t:
            walk(t, album, rows, cols)
            t.send(CONSOLE)
            t.expect(r"^\(gradb\) focus console\n\(gradb\)$")
            self.assertEqual(t.quit(asks=False), 0)
            self.assertEqual(termios.tcgetattr(t.slave), t.before)
            if env == ASCII and not more:
                self.assertTrue(t.raw.isascii())
        album.close()
        self.assertEqual(list(album.golden), album.seen, "the file has other screens")

    def test_80x24(self):
        self.check("80x24", 24, 80)

    def test_80x24_ascii(self):
        self.check("80x24-ascii", 24, 80, ASCII)

    def test_100x30(self):
        self.check("100x30", 30, 100)

    def test_100x30_ascii(self):
        self.check("100x30-ascii", 30, 100, ASCII)

    def test_132x43(self):
        self.check("132x43", 43, 132)

    def test_200x60(self):
        self.check("200x60", 60, 200)

    def test_200x60_ascii(self):
        self.check("200x60-ascii", 60, 200, ASCII)

    def test_vt100(self):
        self.check("80x24-ascii", 24, 80, ASCII, term="vt100", down="\x1bOB")


if __name__ == "__main__":
    harness.main()
