# SPDX-License-Identifier: GPL-3.0-or-later
"""The panes as a person sees them: the real program on a terminal, its screen read back by pyte."""
import os
import re
import signal
import termios
import unittest

import harness
from terminal import NEXT_PANE, PLAIN, SINGLE_KEY, Terminal


class Panes(unittest.TestCase):
    def check_restored(self, terminal):
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.before)

    def test_start(self):
        with Terminal.ready() as t:
            t.expect(r"^   ▾ Default \(\d+\)")
            t.expect(r"^     ▸ network \(\d+\)")
            t.expect(r"^   ▾ Gradients \(\d+\)")
            t.expect(r"^Training process 1: ")
            # The console wraps a long line, wherever the path of the program makes it long.
            self.assertIn("charlm--layers1", re.sub(r"\s", "", t.text()))
            t.expect(r"^ gradb  127\.0\.0\.1:\d+  charlm \S+  step 0  stopped +C-x o panes  F1 keys$")
            self.assertIn("─ console ─", t.text())
            self.assertEqual(t.screen.cursor.y, 22)
            self.assertEqual(t.quit(), 0)
            self.check_restored(t)

    def test_fold_and_open(self):
        with Terminal.ready() as t:
            t.send(NEXT_PANE + "\r")  # the cursor is on Default
            t.expect(r"^   ▸ Default")
            t.expect_not(r"▸ network")
            t.send("\r")
            t.expect(r"▸ network")
            t.send("jj\x1b[C")  # Right opens
            t.expect(r"▾ network")
            t.expect(r"▸ block0")
            t.expect(r"position\.weight")
            t.send("\x1b[D")  # Left folds, then goes up
            t.expect(r"▸ network")
            t.send("\x1b[D\r")
            t.expect(r"^   ▸ Default")

    def test_stepping_shows(self):
        with Terminal.ready() as t:
            t.command("next 5", r"^>  +BiasAdd-op5")
            t.expect(r"Default/network/block0/attn/BiasAdd-op5")
            t.expect(r"min=\S+ max=")  # statistics of the output in the node pane
            t.expect(r"type BiasAdd")
            t.expect(r"step 1 .*stopped")
            t.send("break BiasAdd-op5\r")
            t.expect(r"^>\* +BiasAdd-op5")
            t.send("delete 1\r")
            t.expect(r"^>  +BiasAdd-op5")

    def test_values_of_an_earlier_step_say_so(self):
        with Terminal.ready(cols=260) as t:
            t.command("step", r"Stopped at the end of step 1")
            t.command("node Add-op2", r"│Default/network/embed/Add-op2")
            t.expect(r"│  :0 float32 .*min=.*std=\S+ \|.{16}\|$")
            t.command("next", r"step 2, .*Gather-op1")
            t.expect(r"│Default/network/embed/Gather-op1")
            t.expect(r"│  :0 float32 .*min=.*std=\S+ \|.{16}\|$")
            t.command("node Add-op2", r"│Default/network/embed/Add-op2")  # not run in step 2 yet
            t.expect(r"│  :0 float32 .*min=.*std=\S+ \|.{16}\|, of step 1 \(now at step 2\)$")

    def test_growing_fills_the_pane(self):
        with Terminal.ready() as t:
            t.command("next", r"^>  +Gather-op1")
            t.resize(10, 60)
            t.send(NEXT_PANE + "G")
            t.expect_not(r"▾ Default")
            t.expect(r"▾ Gradients")
            t.resize(30, 60)
            t.expect(r"^   ▾ Default")  # what lies above comes back into view

    def test_keys_run_commands(self):
        with Terminal.ready() as t:
            t.command("next", r"^> ")
            t.send(NEXT_PANE + SINGLE_KEY + "s")
            t.expect(r"^\(gradb\) step$")
            t.expect(r"Stopped at the end of step 1")
            t.send("b")
            t.expect(r"^\(gradb\) break Default/network/embed/Gather-op1")
            t.expect(r"^ \* +Gather-op1")
            t.send("d")
            t.expect(r"^\(gradb\) delete 1")
            t.expect_not(r"^ \* +Gather-op1")
            t.send("U")
            t.expect(r"^\(gradb\) run-to Default/network/embed/Gather-op1$")
            t.expect(r"^>  +Gather-op1")
            t.send("p")
            t.expect(r"float32 \(2, 16, 16\)")

    def test_line_editing(self):
        with Terminal.ready() as t:
            t.send("eho one\x01\x1b[C" + "c\x05 two\r")  # C-a, Right, C-e
            t.expect(r"^one two$")
            t.send("\x1b[A\x17three\r")  # Up brings it back, C-w takes a word
            t.expect(r"^one three$")
            t.send("inf\tgraph\r")
            t.expect(r"^\(gradb\) info graph")
            t.send("info s\t\t")
            t.expect(r"scopes")
            t.expect(r"settings")

    def test_bytes_that_are_no_characters(self):
        for charset in ("C.UTF-8", "C"):
            with self.subTest(charset=charset), Terminal.ready(env={"LC_ALL": charset}) as t:
                os.write(t.master, b"\xff\xe6\xa8echo \xc3one\r")
                t.expect(r"^one$")
                t.send("echo é two\r")
                t.expect(r"^é two$" if charset == "C.UTF-8" else r"^ ?two$")

    def test_scrolling_the_console(self):
        with Terminal.ready() as t:
            t.command("help", r"^\(gradb\)")
            t.command("echo the end", r"^the end")
            t.send("\x1b[5~")
            t.expect(r"lines back")
            t.expect_not(r"^the end")
            t.send("\x1b[6~")
            t.expect(r"^the end")

    def test_interrupt(self):
        with Terminal.ready() as t:
            t.send("continue\r")
            t.expect(r"running, C-c stops")
            t.expect(r"step [1-9]\d* .*running")
            t.send("\x03")
            t.expect(r"  stopped")
            t.expect(r"^\(gradb\)")
            t.send("half a line")
            t.expect(r"^\(gradb\) half a line$")
            t.send("\x03")
            t.expect(r"^\(gradb\)$")  # the line is gone
            t.command("echo whole", r"^whole")

    def test_sizes(self):
        with Terminal.ready() as t:
            t.resize(30, 100)
            t.wait("the status in row 30", lambda: "gradb" in t.screen.display[29])
            t.expect(r"─ console ─")
            t.expect(r"graph: \d+ nodes ─+│")
            t.resize(20, 80)
            t.wait("the status in row 20", lambda: "gradb" in t.screen.display[19])
            t.expect_not(r"graph: \d+ nodes")
            t.resize(24, 60)
            t.wait("the status in row 24", lambda: "gradb" in t.screen.display[23])
            t.expect_not(r"graph: \d+ nodes")
            t.expect(r"─ console ─")
            t.send(NEXT_PANE)
            t.expect(r"graph: \d+ nodes")
            t.expect_not(r"─ console ─")
            t.send("\t")
            t.expect(r"─ scope ─")
            for rows, cols in ((3, 20), (1, 1), (2, 300), (24, 80)):
                t.resize(rows, cols)
                t.send("\x0c")  # C-l
            t.expect(r"─ console ─")
            t.expect(r"graph: \d+ nodes ─+│")

    def test_help(self):
        with Terminal.ready() as t:
            t.send(NEXT_PANE + "?")
            t.expect(r"C-x o Tab +next pane")
            t.send(" \x1b[6~\x1b[6~")
            t.expect(r"i +show everything known about it +info node %n")
            t.send("G")
            t.expect(r"d +delete its breakpoint +delete %b")
            t.expect(r"K +end the training process +kill")
            t.send("g")
            t.expect(r"C-x o Tab")
            t.send("x")
            t.expect(r"graph: \d+ nodes")

    def test_plain_prompt_and_back(self):
        with Terminal.ready(term="xterm") as t:
            mark = len(t.raw)
            t.send(PLAIN)
            t.expect_raw(b"C-x a brings them back", mark)
            t.send("echo plain\r")
            t.expect_raw(b"\r\nplain", mark)
            t.send(PLAIN, then=b"console")
            mark = len(t.raw)
            t.send("echo panes\r")
            t.expect_raw(b"panes", mark)
            t.send("quit\r")
            t.expect_raw(b"(y or n)", mark)
            t.send("y")
            self.assertEqual(t.wait_exit(), 0)
            self.check_restored(t)

    def check_reads(self, terminal):
        """No read waits for a key: Ctrl-C may have taken away the one that was announced."""
        modes = termios.tcgetattr(terminal.slave)
        self.assertFalse(modes[3] & termios.ICANON)
        self.assertEqual((modes[6][termios.VMIN], modes[6][termios.VTIME]), (0, 0))

    def test_shell_has_the_terminal(self):
        with Terminal.ready() as t:
            self.check_reads(t)
            t.send("shell echo from the child; tty -s && echo on a terminal\r")
            t.expect(r"^on a terminal$")
            t.expect(r"^Press Enter to return to the panes")
            t.send("\r")
            t.expect_ready()
            t.expect_not(r"^on a terminal$")
            t.command("step", r"^Stopped at the end of step 1\.")
            self.check_reads(t)
            self.assertEqual(t.quit(), 0)

    def test_ascii(self):
        with Terminal.ready(env={"LC_ALL": "C"}) as t:
            t.expect(r"^   - Default \(\d+\) +\|")
            t.expect(r"^     \+ network")
            t.expect(r"^- console -+$")
            self.assertTrue(t.raw.isascii())

    def test_no_trainer(self):
        with Terminal(program=False) as t:
            t.expect(r"no training process is connected")
            t.expect(r"listening on 127\.0\.0\.1:\d+  not connected")
            t.send(NEXT_PANE + "jkgG\r +\x1b[5~\x1b[6~\t")  # nothing to move on, nothing breaks
            t.send(SINGLE_KEY + "snbdUwK" + SINGLE_KEY)
            t.expect(r"^\(gradb\)")
            t.send(":quit\r")
            self.assertEqual(t.wait_exit(), 0)
            self.check_restored(t)

    def test_end_of_input(self):
        with Terminal(program=False) as t:
            t.expect(r"no training process is connected")
            t.send("\x04")  # C-d, as quit
            self.assertEqual(t.wait_exit(), 0)
            self.check_restored(t)


class NoPanes(unittest.TestCase):
    def check_prompt(self, terminal, why):
        terminal.expect(r"No panes: " + why)
        terminal.send("echo still here\r")
        terminal.expect(r"^still here")
        self.assertEqual(terminal.quit(asks=False), 0)

    def test_small(self):
        with Terminal(rows=9, cols=60, program=False) as t:
            self.check_prompt(t, r"the terminal is 60x9, but they need 40x10")

    def test_small_until_it_is_larger(self):
        """C-x a at the prompt that stands in for the panes tries again."""
        for options in (("--tui",), ("--no-tui",)):
            with self.subTest(options), Terminal(rows=9, cols=60, program=False, options=options) as t:
                t.expect(r"^\(gradb\)")
                t.send("\x18a")
                t.expect(r"No panes: the terminal is 60x9")
                t.send("echo still here\r")
                t.expect(r"^still here")
                t.resize(24, 80)
                t.send("\x18a")
                t.expect(r"^ gradb listening")
                self.assertEqual(t.quit(asks=False), 0)

    def test_dumb(self):
        with Terminal(term="dumb", program=False) as t:
            self.check_prompt(t, r"this terminal type cannot show them")

    def test_unknown_type(self):
        with Terminal(term="no-such-terminal", program=False) as t:
            self.check_prompt(t, r"unknown terminal type; set TERM")

    def test_not_a_terminal(self):
        done = harness.run_gradb("--tui", "-q", "--listen", "127.0.0.1:0", "listen",
                                 input="echo piped\nquit\n")
        self.assertIn("No panes: standard input and output are not a terminal.", done.stderr)
        self.assertIn("piped", done.stdout)
        self.assertEqual(done.returncode, 0)


class Signals(unittest.TestCase):
    """However the program ends, the terminal is as it was."""

    def check(self, number):
        with Terminal(term="xterm", program=False) as t:
            t.expect_raw(b"no training process")
            t.expect_raw(b"gradb)")
            self.assertNotEqual(termios.tcgetattr(t.slave), t.before)
            mark = len(t.raw)
            os.kill(t.process.pid, number)
            status = t.wait_exit()
            self.assertIn(b"\x1b[?1049l", t.raw[mark:])
            self.assertEqual(termios.tcgetattr(t.slave), t.before)
            return status

    def test_terminate(self):
        self.assertEqual(self.check(signal.SIGTERM), 128 + signal.SIGTERM)

    def test_abort(self):
        self.assertNotEqual(self.check(signal.SIGABRT), 0)

    def test_fault(self):
        self.assertNotEqual(self.check(signal.SIGSEGV), 0)

    def test_quit_signal(self):
        self.assertEqual(self.check(signal.SIGQUIT), -signal.SIGQUIT)


if __name__ == "__main__":
    harness.main()
