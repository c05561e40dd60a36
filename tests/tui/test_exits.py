# SPDX-License-Identifier: GPL-3.0-or-later
"""However the program ends or stops, in the panes and at the prompt, the terminal is as it was: its settings, the
screen, the cursor, the keypad, bracketed paste, the mouse. And what is pasted never runs as keys."""
import os
import re
import signal
import termios
import unittest

import harness
from terminal import NEXT_PANE, PLAIN, Terminal

SHELL = ("sh", "-c", 'set -m; "$@"; echo "shell $?"; stty size; read -r line; fg; echo "shell $?"; read -r line', "sh")
RC = "set recommend off\nset confirm off\nset mouse on\nset on-hangup detach\n"
PASTE = "\x1b[200~%s\x1b[201~"


def modes(raw):
    """What the private modes are at the end: {number: set}."""
    found = {}
    for numbers, way in re.findall(rb"\x1b\[\?([0-9;]+)([hl])", raw):
        for number in numbers.split(b";"):
            found[int(number)] = way == b"h"
    return found


class Case(unittest.TestCase):
    def check_restored(self, t, settings=True):
        now = modes(t.raw)
        for number in (1, 47, 1047, 1049, 1000, 1002, 1003, 1006, 2004):
            self.assertFalse(now.get(number, False), f"mode {number} is still on: {t.raw[-400:]!r}")
        self.assertTrue(now.get(25, True), "the cursor is hidden")
        keypads = re.findall(rb"\x1b[=>]", t.raw)
        self.assertIn(keypads[-1:], ([], [b"\x1b>"]), "the keypad sends sequences")
        if settings:
            self.assertEqual(termios.tcgetattr(t.slave), t.before)

    def open(self, panes, **more):
        t = Terminal(term="xterm-256color", rc=RC, program=False, options=("--tui",) if panes else ("--no-tui",), **more)
        return t

    def ready(self, t, panes):
        if panes:
            t.expect_raw(b"no training process")
            t.expect_raw(b"\x1b[?2004h")
            t.expect_raw(b"1000h")
        t.expect_raw(b"gradb)")
        self.assertNotEqual(termios.tcgetattr(t.slave), t.before)


class Ends(Case):
    def check(self, end, statuses, **more):
        """statuses: those it may end with; None any but 0."""
        for panes in (True, False):
            with self.subTest(panes=panes), self.open(panes, **more) as t:
                self.ready(t, panes)
                end(t)
                status = t.wait_exit()
                if statuses is None:
                    self.assertNotEqual(status, 0)
                else:
                    self.assertIn(status, statuses)
                self.check_restored(t)

    def check_signal(self, number, statuses):
        self.check(lambda t: os.kill(t.process.pid, number), statuses)

    def test_quit(self):
        self.check(lambda t: t.send("quit\r"), (0,))

    def test_end_of_input(self):
        self.check(lambda t: t.send("\x04"), (0,))

    def test_quit_in_a_file(self):
        def source(t):
            path = os.path.join(t.home.name, "quit.gradb")
            with open(path, "w", encoding="utf-8") as file:
                file.write("echo before\nquit\necho behind\n")
            t.send(f"source {path}\r")

        self.check(source, (0,))

    def test_interrupt_then_quit(self):
        def interrupt(t):
            t.send("half a line\x12half")  # a search of the history is open, too
            t.expect_raw(b"i-search")
            t.send("\x03", then=b"gradb)")
            t.send("echo all of $(it)\r", then=b"all of")
            t.send("quit\r")

        self.check(interrupt, (0,))

    def test_terminate(self):
        self.check_signal(signal.SIGTERM, (128 + signal.SIGTERM,))

    def test_fault(self):
        self.check_signal(signal.SIGSEGV, None)

    def test_bus_error(self):
        self.check_signal(signal.SIGBUS, None)

    def test_abort(self):  # a failed assertion ends in it
        self.check_signal(signal.SIGABRT, None)

    def test_illegal(self):
        self.check_signal(signal.SIGILL, None)

    def test_quit_key(self):
        self.check_signal(signal.SIGQUIT, (-signal.SIGQUIT,))

    def test_hangup(self):  # and nothing to stay for
        self.check_signal(signal.SIGHUP, (0, 128 + signal.SIGHUP))

    def test_terminal_closed(self):
        for panes in (True, False):
            with self.subTest(panes=panes), self.open(panes) as t:
                self.ready(t, panes)
                t.send("half a line")
                t.expect_raw(b"half a line")
                os.close(t.master)
                os.close(t.slave)
                t.master, t.slave = os.openpty()  # for those who close them later
                self.assertIn(t.process.wait(timeout=harness.DEADLINE), (0, 128 + signal.SIGHUP))


class Stops(Case):
    """Ctrl-Z gives the terminal to the shell, fg takes it back."""

    def check(self, panes, resized):
        with self.open(panes, start=SHELL) as t:
            self.ready(t, panes)
            t.send("half")
            t.expect_raw(b"half")
            mark = len(t.raw)
            t.send("\x1a")
            t.expect_raw(b"shell ", mark)
            self.assertRegex(t.raw[mark:], rb"shell (146|148|20)")
            self.check_restored(t)
            if resized:
                t.resize(31, 97)
            mark = len(t.raw)
            t.send("\n")
            if panes:
                t.expect_raw(b"\x1b[?1049h", mark)
                t.expect_raw(b"1000h", mark)
            t.expect_raw(b"\x1b[?2004h", mark)
            t.expect_raw(b"half", mark)
            if resized and panes:
                t.wait("the status in row 31", lambda: "gradb" in t.screen.display[30])
            t.send("\x15echo again\r")
            t.expect_raw(b"again", mark)
            t.send("quit\r", then=b"shell 0")
            self.check_restored(t)

    def test_panes(self):
        self.check(True, False)

    def test_panes_resized(self):
        self.check(True, True)

    def test_prompt(self):
        self.check(False, False)

    def test_prompt_resized(self):
        self.check(False, True)


class PlainQuestion(Case):
    def test_c_l_is_no_part_of_an_answer(self):
        with Terminal(term="xterm", rc="set recommend off\n", options=()) as t:
            t.expect_raw(b"gradb)")
            t.expect_raw(b"topped")
            t.send("kill\r")
            t.expect_raw(b"(y or n) ")
            for typed, answer in (("\x0c", b"(y or n) "), ("y\x0c", b"(y or n) "), ("\x0cn\r", b"gradb)")):
                t.send(typed, then=answer)
            self.assertNotIn(b"Please answer", t.raw)
            t.send("info target\r", then=b"stopped")
            more = b"-- Enter: more"
            for typed, answer in (("help all\r", more), ("\x0c", more), ("q\r", b"gradb)")):
                t.send(typed, then=answer)


class Paste(Case):
    def test_lists_take_no_paste_for_keys(self):
        with Terminal(term="xterm-256color", rc=RC) as t:
            t.expect_raw(b"gradb)")
            t.expect_raw(b"stopped")
            t.send(NEXT_PANE)
            t.send(PASTE % "csdq?\x18aecho one\recho two", then=b"csdq?aecho one")  # all of it is in the prompt, and nothing ran
            self.assertNotIn(b"Continuing", t.raw)
            t.send("\x03")
            t.expect_not("csdq")  # the signal may come behind what is typed next
            t.send(PASTE % "echo wo\u00e4rd\recho and more", then="echo wo\u00e4rd".encode())
            mark = len(t.raw)
            t.send("\r")
            t.expect(r"^and more")  # pyte leaves some of the row below behind it
            self.assertEqual(t.quit(asks=False), 0)
            self.check_restored(t)

    def test_broken_off(self):
        """A paste whose end never comes is ended by Ctrl-C."""
        with Terminal(rc=RC, program=False) as t:
            t.expect(r"^\(gradb\)")
            t.send("half a line")
            t.expect("half a line")
            t.send("\x1b[200~quit\r")
            t.send("\x03")
            t.expect_not("half a line")  # nor is it gone by a quit: what follows is answered
            t.send("echo keys again\r", then=b"keys again")
            self.assertEqual(t.quit(asks=False), 0)

    def test_prompt(self):
        with self.open(False) as t:
            self.ready(t, False)
            t.expect_raw(b"\x1b[?2004h")
            t.send(PASTE % "echo o\\\\ne\necho two" + "\r", then=b"\r\ntwo")
            self.assertEqual(t.quit(asks=False), 0)
            self.check_restored(t)

    def test_prompt_broken_off(self):
        """A paste whose end never comes holds up nothing: Ctrl-C ends it, and so does the end of gradb."""
        with self.open(False) as t:
            self.ready(t, False)
            mark = len(t.raw)
            t.send("\x1b[200~some \x1b[2 text\r")
            t.send("\x03")
            t.expect_raw(b"^C", mark)  # the signal may come behind what is typed next
            mark = len(t.raw)
            t.send("echo keys again\r")
            t.expect(r"^keys again")
            self.assertNotIn(b"some", t.raw[mark:])
            t.send("\x1b[200~never ended")
            t.process.terminate()
            t.wait_exit()
            self.check_restored(t)


class Prompt(Case):
    def test_giving_up_what_was_pushed_back(self):
        """Keys that readline pushes back, ended by C-g, at the prompt and in the panes."""
        keys = ["\x12", "\x12a", "\x1b3", "\x1b3\x1b-", "\x18", "\x1b", "\x12\x1b", "\x12\x18", "\x12ab\x1b3", "\x15abc\x1b2",
                "\x1bp", "\x1bpab", "\x16", "\x1d", "\x12a\x1b[", "\x1b3\x18(", "\x12ab\x18)", "\x12\x18)",
                "\x12\x18e"]
        for panes in (True, False):
            with self.subTest(panes=panes), self.open(panes) as t:
                self.ready(t, panes)
                for first in keys:
                    for last in ("\x07", "\x18\x07", "\x1b\x07", "\x03", PLAIN + PLAIN):
                        t.send(first + last)
                t.send("\x03\x07\x15")
                t.send("echo sti" + "ll here\r", then=b"still here")
                t.send("\x15quit\r")
                self.assertEqual(t.wait_exit(), 0)
                self.check_restored(t)

    def test_putting_back_behind_a_search(self):
        """The search pushes back what ends it, and where nothing was cut or put back the next key gives up."""
        for panes in (True, False):
            with self.subTest(panes=panes), self.open(panes) as t:
                self.ready(t, panes)
                t.send("echo one\r")
                for first in ("", "\x12o", "\x12", "\x1b2"):
                    for last in ("\x1by", "\x19", "\x19\x1by", "\x18\x1by"):
                        t.send(first + last)
                t.send("\x18(\x1b3\x1by\x18)\x18e\x18(\x12o\x1by\x19\x18)\x18e\x18e")
                self.still_here(t)

    def still_here(self, t):
        t.send("\x03")
        t.send("\x07\x15")
        t.send("echo sti" + "ll here\r", then=b"still here")
        t.send("\x15quit\r")
        self.assertEqual(t.wait_exit(), 0)
        self.check_restored(t)

    def with_keys(self, text):
        """The environment in which readline reads these lines."""
        path = harness.folder_of(self) / "inputrc"
        path.write_text(text)
        return {"INPUTRC": str(path)}

    def test_keys_of_inputrc(self):
        """What gives up there, in the file of the user and when that is read again."""
        text = ('"\\C-x\\C-y": yank\n"\\C-x\\C-p": yank-pop\n"\\C-xq": abort\n'
                '"\\C-xm": "\\C-ro\\C-xq\\C-x\\C-p\\C-xz"\n')
        for panes in (True, False):
            with self.subTest(panes=panes), self.open(panes, env=self.with_keys(text)) as t:
                self.ready(t, panes)
                for _ in range(2):
                    t.send("\x18\x19\x18\x10\x18q\x18m\x12\x18m\x1b3\x18m")
                    t.send("\x18\x12")  # the file again
                self.still_here(t)

    def test_keys_of_vi(self):
        """Escape and a key right behind it are two keys."""
        for panes in (True, False):
            with self.subTest(panes=panes), self.open(panes, env=self.with_keys("set editing-mode vi\n")) as t:
                self.ready(t, panes)
                mark = len(t.raw)
                t.send("echo one twx\x1bx")
                t.send("ao\r")
                t.expect_raw(b"one two", mark)  # what is typed was drawn in parts
                t.send("\x1bp\x1bP\x1b3p\x1b\x07dda")
                self.still_here(t)

    def test_words_of_no_characters(self):
        """Bytes that are no character hold nothing up: vi's motions by words go over what stands for them. (The panes
        never see them: curses reads characters.)"""
        with self.open(False, env=self.with_keys("set editing-mode vi\n")) as t:
            self.ready(t, False)
            os.write(t.master, b"\x1b[200~a ?8\xf6\xa3\x1b[201~")
            t.expect_raw(b"a ?8??")
            t.send("\x1b", then=b"\b")  # a key of its own
            t.send("w0www0eeedda")
            self.still_here(t)

    def test_many_candidates(self):
        """More than a screen holds: they are listed without a question, in which nobody would hear the trainer."""
        with Terminal(rows=10, term="xterm-256color", rc=RC, options=("--no-tui",)) as t:
            t.expect_raw(b"Stopped")
            t.expect_raw(b"gradb)")
            mark = len(t.raw)
            t.send("\t\t")
            t.expect_raw(b" more: type more characters", mark)
            t.send("step\r")
            t.expect_raw(b"step 1", mark)
            self.assertEqual(t.quit(asks=False), 0)
            self.check_restored(t)

    def test_escape_alone(self):
        """It takes effect though no key follows it."""
        with Terminal.ready(rc=RC) as t:
            t.send(NEXT_PANE + "?")
            t.expect(r"this pane alone")
            t.send("\x1b")
            t.expect_not(r"this pane alone")

    def test_terminal_type_unset(self):
        with Terminal(start=("env", "-u", "TERM"), rc=RC, program=False) as t:
            t.expect(r"No panes: this terminal type cannot show them")
            self.assertEqual(t.quit(asks=False), 0)
            self.assertNotIn(b"\x1b[?1049h", t.raw)

    def test_no_terminal_type(self):
        with Terminal(term="", rc=RC, program=False) as t:
            t.expect(r"No panes: this terminal type cannot show them")
            self.assertEqual(t.quit(asks=False), 0)
            self.assertNotIn(b"\x1b[?1049h", t.raw)

    def test_dumb_terminal(self):
        with Terminal(term="dumb", rc=RC, program=False) as t:
            t.expect(r"No panes: this terminal type cannot show them")
            self.assertEqual(t.quit(asks=False), 0)
            self.assertNotIn(b"\x1b[?", t.raw)


if __name__ == "__main__":
    harness.main()
