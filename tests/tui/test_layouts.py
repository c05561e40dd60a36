# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the panes stand at each size, the commands and keys that move them, what comes before a training and
what interrupts the screen. Writes docs/screens with UPDATE=1 in the environment, else compares with it."""
import os
import re
import signal
import termios
import unittest

import harness
from terminal import NEXT_PANE, PLAIN, Terminal

SCREENS = harness.SOURCE / "docs" / "screens"
LAYOUTS = ("graph", "tensor", "watch", "stack", "split", "picture")
SIZES = ((24, 80), (30, 100), (43, 132), (60, 200))
ASCII = {"LC_ALL": "C"}


def titles(terminal):
    """The words in the panes' title lines."""
    line = "-" if terminal.screen.display and terminal.raw.isascii() else "─"
    found = []
    for row in terminal.screen.display:
        found += re.findall(rf"(?:^|[│|])[{line}] ?([^{line}│|]+?) [{line}]", row)
    return found


class Layouts(unittest.TestCase):
    def check_frame(self, t, rows, cols, layout):
        """The console below, the status line last, nothing beyond the screen, the layout's own panes."""
        self.assertRegex(t.screen.display[rows - 1], r"^ gradb .*stopped")
        console = t.row_of(r"^[─-] console ")
        self.assertIsNotNone(console, t.text())
        self.assertEqual(t.screen.display[console].rstrip(), t.screen.display[console].rstrip("\n").rstrip())
        self.assertEqual(len(t.screen.display[console].rstrip()), cols)
        prompt = t.row_of(r"^\(gradb\) *$")
        self.assertEqual(prompt, rows - 2, t.text())
        self.assertEqual(t.screen.cursor.y, prompt)
        t.command("layout", rf"^{layout}$")

    def test_every_layout_at_every_size(self):
        for env in ({}, ASCII):
            with self.subTest(env=env), Terminal.ready(env=env) as t:
                for rows, cols in SIZES:
                    t.resize(rows, cols)
                    t.send("\x0c")
                    t.wait("the whole width", lambda c=cols, r=rows: "gradb" in t.screen.display[r - 1] and
                           any(len(line.rstrip()) == c for line in t.screen.display))
                    for layout in LAYOUTS:
                        mark = f"at {rows} {cols} {layout}"
                        t.send(f"layout {layout}\r")
                        t.command(f"echo {mark}", rf"^{mark}$")
                        t.expect(r"^\(gradb\)$")
                        self.check_frame(t, rows, cols, layout)
                self.assertEqual(t.raw.isascii(), env == ASCII)

    def test_large_screens_show_more(self):
        with Terminal.ready(rows=43, cols=132) as t:
            t.send("layout split\r")
            t.expect(r"^[─-] graph")
            large = len(titles(t))
            t.resize(24, 80)
            t.wait("the small screen", lambda: "gradb" in t.screen.display[23])
            self.assertGreaterEqual(large, len(titles(t)))

    def test_small_screens_show_one_pane(self):
        with Terminal(rows=20, cols=70) as t:
            t.expect(r"^[─-] console")
            self.assertEqual(titles(t), ["console"])
            t.send("focus graph\r")
            t.expect(r"graph: \d+ nodes")
            self.assertEqual(len(titles(t)), 2, t.text())  # and the prompt, where the keyboard stays
            t.send(NEXT_PANE)
            t.expect_not(r"^─ console")
            self.assertEqual(len(titles(t)), 1, t.text())

    def test_low_and_wide_screens_show_panes_side_by_side(self):
        with Terminal(rows=20, cols=300) as t:
            t.expect(r"│\(gradb\)$")
            t.expect(r"step 0  stopped")
            self.assertEqual(len(titles(t)), 3, t.text())
            self.assertEqual(t.row_of(r"^─ graph: .*─│─ scope ─.*─│─ console ─+$"), 0)
            t.command("layout split", r"^─ graph: .*│─ watch .*│─ scope .*│─ hits .*│─ console ─+$")
            t.command("echo typed", r"│typed$")
            t.command("focus history", r"│─ history ─")
            t.resize(20, 150)  # each side is a column
            t.expect(r"^─ graph: .*│─ scope .*│─ console ─+$")
            t.expect(r"^─ watch ")
            t.send("\x181")
            t.wait("one pane", lambda: len(titles(t)) <= 2)

    def test_winheight(self):
        with Terminal.ready() as t:
            for typed, rows in (("winheight 5", 5), ("winheight +2", 7), ("winheight -1", 6)):
                t.send(typed + "\r")
                t.wait(typed, lambda n=rows: t.row_of(r"^─ console") == 22 - n)
            t.send("winheight usual\r")
            t.expect(r"^\(gradb\) winheight usual$")
            t.wait("the usual height", lambda: t.row_of(r"^─ console") == 12)


class Captures(unittest.TestCase):
    """docs/screens: each layout as it is, for people who read before they start it. A training that takes the
    logarithm of 0 was stopped by a watchpoint."""
    TRAINER = ("--data", str(harness.SOURCE / "COPYING"), "--seed", "7", "--fault", "nan-log")

    @staticmethod
    def steady(text):
        """What is the same in every run: the words outside the console, column by column, however numbers of
        other lengths fold them. No numbers, no bars, no lines."""
        lines = text.splitlines()
        console = re.compile(r"─ console ─")
        end = next((i for i, line in enumerate(lines) if console.search(line)), len(lines))
        beside = console.search(lines[end]).start() if end < len(lines) else 0
        if beside > 0:  # a low, wide screen
            lines, end = [line[:beside - 1] for line in lines[:-1]], len(lines) - 1
        columns = {}
        for line in lines[:end]:
            for number, part in enumerate(line.split("│")):
                part = re.sub(r"[\u2581-\u2588|]+", " ", re.sub("[─┌┐└┘├┤┬┴┼▸◂]+", " ", part))
                part = re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", part)
                columns.setdefault(number, []).extend(part.split())
        return [[word for word in column if not re.fullmatch("[#\\W]+", word)] for column in columns.values()]

    def check(self, name, t):
        path = SCREENS / f"{name}.txt"
        text = t.text().replace(str(harness.SOURCE) + "/", "") + "\n"
        if os.environ.get("UPDATE"):
            SCREENS.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.assertEqual(self.steady(path.read_text(encoding="utf-8")), self.steady(text), name)

    def wait_same(self, name, t):
        """Answers come when they come: until the screen is the one in the file."""
        if os.environ.get("UPDATE"):
            t.wait("a screen that stands still", lambda: all(t.is_quiet() for _ in range(5)))
        else:
            wanted = self.steady((SCREENS / f"{name}.txt").read_text(encoding="utf-8"))
            t.wait(f"docs/screens/{name}.txt", lambda: self.steady(t.text()) == wanted)
        self.check(name, t)

    def stop_at_the_fault(self, t):
        t.command("watch TO on all", r"^Watchpoint 1: ")
        t.command("continue", r"^Watchpoint 1, step \d+, (?:\w+, )?Default/network/loss/Log-op")
        t.command("node Log-op29", r"^Default/network/loss/Log-op29 ")

    def test_layouts(self):
        for rows, cols in ((24, 80), (40, 120), (43, 132), (20, 300)):
            with Terminal(program=False) as t:
                t.expect(r"listening on 127\.0\.0\.1:\d+")
                address = re.search(r"listening on (127\.0\.0\.1:\d+)", t.text()).group(1)
                with t.trainer(address, *self.TRAINER):
                    t.expect_ready()
                    self.stop_at_the_fault(t)
                    t.resize(rows, cols)
                    t.wait("the new size", lambda last=rows - 1: "gradb" in t.screen.display[last])  # before the tree moves
                    for layout in LAYOUTS if cols != 132 else ("split",):
                        name = layout if cols == 80 else f"{layout}-{cols}x{rows}"
                        with self.subTest(screen=name):
                            t.command(f"layout {layout}", rf"\(gradb\) layout {layout}$")
                            t.command("info hits", r"\(gradb\) info hits$")
                            self.wait_same(name, t)

    def test_readme_shows_one(self):
        picture = (SCREENS / "graph.txt").read_text(encoding="utf-8")
        self.assertIn("```text\n" + picture + "```\n", (harness.SOURCE / "README.md").read_text(encoding="utf-8"))

    def test_page_links_to_all(self):
        page = (SCREENS.parent / "screen.md").read_text(encoding="utf-8")
        for path in SCREENS.glob("*.txt"):
            self.assertIn(f"(screens/{path.name})", page)

    def test_commands_of_the_page(self):
        """They are those that there are."""
        lines = ("set color never", "set charset ascii", "set theme light", "set theme safe", "set mouse on",
                 "help keys", "layout split", "focus history", "winheight 5")
        for line in lines:
            done = harness.run_gradb("--batch", "-nx", "-q", "-ex", line)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)

    def test_waiting(self):
        with Terminal(program=False) as t:
            t.expect(r"no training process is connected")
            self.wait_same("waiting", t)

    def test_keys(self):
        with Terminal.ready() as t:
            t.send(NEXT_PANE + "?")
            t.expect(r"^The screen")
            self.check("keys", t)


class Focus(unittest.TestCase):
    def test_commands_move_it(self):
        with Terminal.ready() as t:
            t.command("focus hits", r"─ hits ─")
            t.command("echo the keyboard stays", r"^the keyboard stays$")
            t.send(NEXT_PANE)
            t.expect(r"\? keys  : prompt$")
            t.send(NEXT_PANE)  # the last of the layout
            t.expect(r"C-x o panes  F1 keys$")
            t.command("focus nowhere", r'^error: "nowhere" is not a pane; panes are graph, node, console')
            t.command("focus next", r"^\(gradb\) focus next$")
            t.send(NEXT_PANE + "?")
            t.expect(r"^The screen")
            t.send("q")
            t.expect(r"graph: \d+ nodes")

    def test_one_pane_and_back(self):
        with Terminal.ready() as t:
            t.send("\x181")
            t.expect_not(r"graph: \d+ nodes")
            t.send("\x181")
            t.expect(r"graph: \d+ nodes")
            t.send("\x182")
            t.command("layout", r"^tensor$")

    def test_escape_is_taken_at_once_and_as_meta(self):
        with Terminal.ready() as t:
            t.send("echo one three\x1bbtwo \r")  # M-b: a word back
            t.expect(r"^one two three$")
            t.send(NEXT_PANE + "\x1b")
            t.send("s")
            t.expect(r"^\(gradb\) s$")

    def test_prefix_shows(self):
        with Terminal.ready() as t:
            t.send("\x18")
            t.expect(r"o pane  1 alone  2 layout")
            t.send("o")
            t.expect_not(r"o pane  1 alone  2 layout")

    def test_single_keys(self):
        with Terminal.ready() as t:
            t.send("\x18s")
            t.expect(r"^ SINGLE-KEY MODE .*q ends  s step")
            t.send("s")
            t.expect(r"^\(gradb\) step$")
            t.expect(r"^Stopped at the end of step 1\.")
            t.send("n")
            t.expect(r"^\(gradb\) next$")
            t.send("q")
            t.expect_not(r"SINGLE-KEY MODE")
            t.command("echo typed", r"^typed$")


class Bound(unittest.TestCase):
    RC = ("set recommend off\nbind F5 step\nbind C-x t echo bound\\n\nbind -p graph Z echo here %n\\n\n"
          "bind -p graph c -\nlayout watch\nwinheight 6\n")

    def test_rc_file(self):
        with Terminal(rc=self.RC) as t:
            t.expect(r"^\(gradb\)")
            t.command("layout", r"^watch$")
            t.wait("the console's height", lambda: t.row_of(r"^─ console") == 16)
            t.send("\x18t")
            t.expect(r"^bound$")
            t.send("\x1b[[E")
            t.expect(r"^Stopped at the end of step 1\.")
            t.send("layout graph\r")
            t.command("node Softmax-op10", r"Softmax-op10")
            t.go_to("graph")
            t.send("Z")
            t.expect(r"^here \S*Softmax-op10$")
            t.send("c")  # bound to nothing: it does not go to the prompt either
            t.send("?")
            t.expect(r"^The screen")
            t.send("G")
            t.expect(r"^User bindings")
            t.expect(r"^  F5 +step +all")
            t.send("q")
            t.expect_not(r"^\(gradb\) continue")

    def test_wrong_lines_are_told(self):
        with Terminal(rc="bind F99 step\n", program=False) as t:
            t.expect_raw(b'"F99" is not a key')


class Waiting(unittest.TestCase):
    def test_lines_to_type(self):
        with Terminal(program=False) as t:
            t.expect(r"no training process is connected")
            t.expect(r"listening on 127\.0\.0\.1:\d+")
            port = re.search(r"listening on 127\.0\.0\.1:(\d+)", t.text()).group(1)
            t.expect(rf"^   GRADB_ADDRESS=127\.0\.0\.1:{port} python3 -m gradb train\.py$")
            t.expect(rf"^   ENABLE_MS_DEBUGGER=1 MS_DEBUGGER_HOST=127\.0\.0\.1 MS_DEBUGGER_PORT={port} \\$")
            t.expect(rf"^   ssh -R {port}:127\.0\.0\.1:{port} USER@HOST$")
            t.resize(24, 60)
            t.expect(r"^─ console")
            t.send(NEXT_PANE)
            t.expect(rf"^     MS_DEBUGGER_PORT={port} python3 train\.py$")

    def test_a_trainer_that_comes_is_shown(self):
        with Terminal(program=False) as t:
            t.expect(r"no training process is connected")
            t.expect(r"listening on 127\.0\.0\.1:\d+")
            address = re.search(r"listening on (127\.0\.0\.1:\d+)", t.text()).group(1)
            with t.trainer(address, "--steps", "20"):
                t.expect(r"graph: \d+ nodes")
                t.expect(r"^ gradb .*step 0  stopped")
                t.send("continue\r")
                t.expect(r"^The training ended")
                t.expect(r"^ gradb .*  finished")
                t.send("\x0c")
                t.expect(r"graph: \d+ nodes")  # what was learned stays

    def test_a_trainer_that_is_killed_is_lost(self):
        with Terminal(program=False) as t:
            t.expect(r"no training process is connected")
            t.expect(r"listening on 127\.0\.0\.1:\d+")
            address = re.search(r"listening on (127\.0\.0\.1:\d+)", t.text()).group(1)
            with t.trainer(address) as trainer:
                t.expect(r"^ gradb .*step 0  stopped")
                trainer.kill()
                t.expect(r"^ gradb .*  lost")


class Recommended(unittest.TestCase):
    """The question waits in a line of its own and for nothing."""
    ASKED = r"─ console ─+Set the \d+ recommended watchpoints\? Type y or n"

    def test_no_at_the_prompt(self):
        with Terminal.ready(rc="") as t:
            t.expect(self.ASKED)
            t.expect(r"^Set the \d+ recommended watchpoints\? Type y or n, then Enter\.$")
            t.command("echo meanwhile", r"^meanwhile$")
            t.send("n\r")
            t.expect(r"^\(gradb\) recommend no$")
            t.expect_not(self.ASKED)
            t.command("info watchpoints", r"^No watchpoints|[Nn]o watchpoint")

    def test_a_letter_in_a_list_is_no_answer(self):
        with Terminal.ready(rc="") as t:
            t.expect(self.ASKED)
            t.send(NEXT_PANE + "y")
            t.expect(r"^\(gradb\) y$")
            t.expect(self.ASKED)
            t.send("\r")
            t.expect_not(self.ASKED)
            t.command("recommend", r"set as watchpoint 6$")

    def test_a_training_that_runs_is_no_more_asked_about(self):
        with Terminal.ready(rc="") as t:
            t.expect(self.ASKED)
            t.command("next", r"^> ")
            t.expect_not(self.ASKED)

    def test_the_plain_prompt_does_not_ask_again(self):
        with Terminal.ready(rc="", term="xterm") as t:
            t.expect(self.ASKED)
            mark = len(t.raw)
            t.send(PLAIN)
            t.expect_raw(b"C-x a brings them back", mark)
            t.send("echo plain\r")
            t.expect_raw(b"\r\nplain", mark)
            self.assertNotIn(b"(y or n)", t.raw[mark:])


class Interrupted(unittest.TestCase):
    JOB = ("/bin/bash", "--norc", "-mc", '"$@"; echo "status $?"; read line; fg >/dev/null; echo "over $?"', "job")

    def test_suspend_and_resume(self):
        with Terminal(start=self.JOB, program=False, term="xterm") as t:
            t.expect(r"no training process is connected")
            t.expect(r"^\(gradb\)")
            mark = len(t.raw)
            t.send("\x1a")
            t.expect_raw(b"status 148", mark)
            self.assertIn(b"\x1b[?1049l", t.raw[mark:])
            self.assertEqual(termios.tcgetattr(t.slave), t.before)
            t.resize(30, 100)
            mark = len(t.raw)
            t.send("\n")
            t.expect_raw(b"\x1b[?1049h", mark)
            t.wait("the status line", lambda: "gradb" in t.screen.display[29])
            t.send("complete info grap\r")
            t.expect_raw(b"info graph", mark)
            t.send("quit\r")
            t.expect_raw(b"over 0", mark)
            t.wait_exit()

    def test_stop_and_continue(self):
        with Terminal(program=False, term="xterm") as t:
            t.expect(r"^\(gradb\)")
            os.kill(t.process.pid, signal.SIGSTOP)
            mark = len(t.raw)
            os.kill(t.process.pid, signal.SIGCONT)
            t.expect_raw(b"\x1b[?1049h", mark)
            t.send("complete info grap\r")
            t.expect_raw(b"info graph", mark)

    def test_too_small_while_running(self):
        with Terminal.ready() as t:
            t.send(NEXT_PANE)
            t.resize(8, 50)
            t.expect(r"^50x8 is too small for panes, which need 40x10")
            t.command("echo still", r"^still$")  # keys go to the prompt
            for rows, cols in ((1, 1), (2, 12), (5, 300), (9, 39)):
                t.resize(rows, cols)
                t.send("\x0c")
            t.resize(24, 80)
            t.expect(r"graph: \d+ nodes ─+│")
            t.send("?")  # the graph has the focus again
            t.expect(r"^The screen")

    def test_other_pane_on_a_screen_that_is_too_small(self):
        with Terminal.ready() as t:
            t.resize(8, 50)
            t.expect(r"^50x8 is too small for panes")
            t.send(NEXT_PANE)
            t.command("echo still", r"^still$")  # not to a pane that nobody sees
            t.command("echo again", r"^again$")
            t.resize(24, 80)
            t.expect(r"graph: \d+ nodes ─+│")
            t.send("?")  # a key of the graph
            t.expect(r"^The screen")

    def test_a_terminal_that_takes_nothing_does_not_hold_the_training(self):
        with Terminal(program=False) as t:
            t.expect(r"no training process is connected")
            t.expect(r"listening on 127\.0\.0\.1:\d+")
            address = re.search(r"listening on (127\.0\.0\.1:\d+)", t.text()).group(1)
            with t.trainer(address, "--steps", "400") as trainer:
                t.expect(r"^ gradb .*step 0  stopped")
                t.send("trace TL max_gt=-1e9 on all\rcontinue\r")
                trainer.wait(harness.DEADLINE)  # nobody reads the screen meanwhile
            t.expect(r"^ gradb .*  finished")


class Mouse(unittest.TestCase):
    def test_off_until_it_is_wanted(self):
        with Terminal.ready() as t:
            self.assertNotIn(b"1000h", t.raw)
            mark = len(t.raw)
            t.send("set mouse on\r")
            t.expect_raw(b"1000h", mark)
            t.send("\x1b[M %#")  # a click into the graph, whose key ? is
            t.send("?")
            t.expect(r"^The screen")
            t.send("q:")
            t.send("set mouse off\r")
            t.expect_raw(b"1000l", mark)


if __name__ == "__main__":
    harness.main()
