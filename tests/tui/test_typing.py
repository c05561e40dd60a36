# SPDX-License-Identifier: GPL-3.0-or-later
"""What is typed never drives the training by accident: a process that records its requests hears of no key and no
letter, only of commands that were typed at the prompt, and of keys in single-key mode."""
import contextlib
import itertools
import os
import random
import re
import string
import sys
import unittest

import harness
from terminal import NEXT_PANE, SINGLE_KEY, Terminal

sys.path.insert(0, str(harness.SOURCE / "tests" / "e2e"))
from fake_mindspore import FakeMindSpore  # noqa: E402

LAYOUTS = ("graph", "tensor", "watch", "stack", "split")
PANES = ("graph", "node", "watch", "hits", "stack", "source", "tensor", "history", "log")
SEEDS = [int(seed) for seed in os.environ.get("GRADB_TYPING_SEEDS", "1 2 3").split()]
KEYS = int(os.environ.get("GRADB_TYPING_KEYS", "10000"))  # of each seed
PREVIOUS_PANE = "\x18p"
TO_PROMPT = "\x1b:\x15"  # out of a search field and of a pane, and the line is emptied

# None of them resumes, ends or changes anything; of each some letters are keys of one pane or another.
LINES = ("info scopes", "info watchpoints", "info nodes", "info hits", "info target", "info graph", "info breakpoints",
         "info node .", "info history", "print fc1.weight", "p c", "p loss", "p s", "list", "ls", "l 30", "hits", "jobs",
         "help", "help step", "help continue", "show confirm", "backtrace", "bt", "frame", "history loss",
         "search conv", "scopes", "inputs", "outputs", "why", "tensor fc1.weight", "echo continue", "node 3", "nodes",
         "ps", "pc", "x", "pinfo", "w s", "nc", "lists", "ins", "tc", "gs", "Ms", "xs", "yes", "it is", "a b c",
         "apropos stop", "complete c", "layout stack", "focus hits", "winheight 9", "/conv", "=conv", "?s", "qs")


class Recorder(FakeMindSpore):
    """Notes whatever it is told to do; reading a value is not among it."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.told = []

    def obey(self, reply):
        if reply.WhichOneof("cmd") in ("run_cmd", "set_cmd", "exit"):
            self.told.append(str(reply).replace("\n", " "))
        return super().obey(reply)


@contextlib.contextmanager
def session(**options):
    """The panes before a stopped MindSpore process."""
    with Terminal(program=False, **options) as t:
        t.expect(r"listening on 127\.0\.0\.1:\d+")
        trainer = Recorder(int(re.search(r"listening on 127\.0\.0\.1:(\d+)", t.text())[1]), steps=100000)
        trainer.start()
        try:
            t.expect(r"^ (gradb|step) .*stopped")
            trainer.wait_note("wait")
            yield t, trainer
        finally:
            trainer.vanish()
            trainer.join(harness.DEADLINE)


class Typing(unittest.TestCase):
    def setUp(self):
        self.marks = itertools.count(1)

    def feed(self, t, text):
        """What comes back is read meanwhile, so that neither waits for the other."""
        t.send(text)
        t.read(0)

    def settle(self, t):
        """Everything that was typed so far has run."""
        mark = f"mark-{next(self.marks)}"
        t.send(TO_PROMPT + f"echo {mark}\r")
        t.expect(rf"^{mark}$")

    def run_lines(self, t, *lines):
        """Typed at the prompt."""
        t.send(TO_PROMPT + "".join(line + "\r" for line in lines))
        self.settle(t)

    def expect_untold(self, t, trainer, what):
        self.assertEqual(trainer.told, [], f"{what}\n{t.text()}")

    def places(self, t, layouts=LAYOUTS):
        """Every pane in every layout: what to type at the prompt, and there C-x p goes to the pane."""
        for layout in layouts:
            for pane in PANES:
                self.run_lines(t, f"layout {layout}", f"focus {pane}")
                yield layout, pane

    def check_the_prompt_drives(self, t, trainer):
        self.run_lines(t, "step")
        self.assertEqual([told.split()[0] for told in trainer.told], ["run_cmd"], t.text())

    def check_random(self, seed):
        choose = random.Random(seed)
        count = KEYS // (len(LAYOUTS) * len(PANES)) + 1
        with session() as (t, trainer):
            for layout, pane in self.places(t):
                left = count
                while left > 0:
                    keys = "".join(choose.choices(string.printable[:95], k=choose.randint(1, 12)))
                    self.feed(t, NEXT_PANE + keys + TO_PROMPT)
                    left -= len(keys)
                    if choose.random() < 0.5:  # another of the layout's panes
                        self.feed(t, PREVIOUS_PANE * choose.randint(1, 3) + choose.choice(keys) + TO_PROMPT)
                self.settle(t)
                self.expect_untold(t, trainer, f"seed {seed}, layout {layout}, focus {pane}")
            self.check_the_prompt_drives(t, trainer)

    def test_random_keys(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.check_random(seed)

    def test_lines_that_are_typed_in_a_pane(self):
        with session() as (t, trainer):
            for layout in LAYOUTS:
                for pane in PANES:
                    for line in LINES:
                        t.send(f"layout {layout}\rfocus {pane}\r")
                        self.settle(t)
                        self.feed(t, NEXT_PANE + line + "\r")
                    self.settle(t)
                    self.expect_untold(t, trainer, f"layout {layout}, focus {pane}")
            self.check_the_prompt_drives(t, trainer)

    def test_typed_commands_leave_the_keyboard_at_the_prompt(self):
        with session() as (t, trainer):
            for line in ("focus hits", "layout watch", "tensor fc1.weight", "focus next", "focus graph", "tui reg next"):
                t.send(f"{line}\r")
                t.command("info scopes", r"C-x o panes  F1 keys$")
            t.command("echo still here", r"^still here$")
            self.expect_untold(t, trainer, "commands about the panes")

    def test_a_key_without_a_meaning_goes_to_the_prompt(self):
        with session() as (t, trainer):
            t.send(NEXT_PANE + "echo from the graph\r")
            t.expect(r"^from the graph$")
            t.send(NEXT_PANE + "jjkj")  # they only move
            t.send("echo again\r")
            t.expect(r"^again$")
            t.send(NEXT_PANE + "p c\r")  # p and Space are keys there: c is not run alone
            t.expect(r"^\(gradb\) p c$")
            t.send(NEXT_PANE + "\u00e9\x15:")
            t.expect(r"C-x o panes  F1 keys$")
            t.send("\x15" + NEXT_PANE + "jj:echo by the colon\r")
            t.expect(r"^by the colon$")
            self.expect_untold(t, trainer, "what was typed in the graph")

    def test_an_empty_line_repeats_what_was_typed_and_seen(self):
        with session() as (t, trainer):
            t.send("step\r\r\r")  # typed ahead of what they would repeat
            self.settle(t)
            self.assertEqual(len(trainer.told), 1, trainer.told)
            t.command("step", r"at the end of step 2")
            t.send("\r")
            t.expect(r"at the end of step 3")
            t.send(NEXT_PANE + "\r:\r\r")  # the keyboard was elsewhere
            self.settle(t)
            self.assertEqual(len(trainer.told), 3, trainer.told)

    def test_a_question_is_answered_by_y_or_n_alone(self):
        with session() as (t, trainer):
            for typed in ("display loss", "play", "info scopes", "\r\r nay"):
                t.command("kill", r"\(y or n\)")
                t.send(typed)
                t.expect_not(r"\(y or n\)")
                self.settle(t)
                self.expect_untold(t, trainer, typed)
            t.command("kill", r"\(y or n\)")
            mark = len(t.raw)
            t.send("\x0c")  # C-l draws the screen again
            t.expect_raw(b"(y or n)", mark)
            t.send("n")
            t.expect_not(r"\(y or n\)")
            self.expect_untold(t, trainer, "n")

    def test_a_filter_leads_to_what_it_finds(self):
        with session(cols=160) as (t, trainer):
            t.send(NEXT_PANE + "=type:conv2d op1")
            t.expect(r"│Default/\S+/Conv2D-op1$")
            t.send("\t")
            t.expect(r"Enter keeps it  Esc ends it$")
            t.send("\r\r")  # the second selects what was found, and folds nothing
            t.expect(r"^\(gradb\) node Default/\S+/Conv2D-op1$")
            t.send("\x1b")
            t.expect_not(r"^=type")
            t.expect(r"│Default/\S+/Conv2D-op1$")
            t.send("nnn")
            self.settle(t)
            self.expect_untold(t, trainer, "n")

    def test_a_stack_has_the_room_of_a_source_that_is_not_there(self):
        with session() as (t, _):
            t.command("layout stack", r"─ source ─")
            t.command("node Conv2D-op1", r"^>#0  lenet\.py:42  x = self\.conv1\(x\) +│=> 42  x = self\.conv1")
            t.expect(r"│The file cannot be read *\n +│here:")
            self.assertGreater(t.screen.display[0].index("│"), 50)


class SingleKeys(unittest.TestCase):
    ON = r"^ SINGLE-KEY MODE "

    def told(self, trainer):
        return [told.split()[0] for told in trainer.told]

    def test_the_mode_is_announced_while_keys_run_commands(self):
        with session() as (t, trainer):
            for keys, what in (("", "at the prompt"), (NEXT_PANE, "in a pane")):
                t.send(keys + SINGLE_KEY)
                t.expect(self.ON + r".*q ends")
                before = len(trainer.told)
                t.send("s")
                t.expect(r"^\(gradb\) step$")
                t.expect(rf"at the end of step {before + 1}")
                self.assertEqual(len(trainer.told), before + 1, what)
                t.expect(self.ON)
                t.send("?")
                t.expect(r"^The screen")
                t.expect(self.ON)
                t.send("s")  # ends the list, and no more
                t.expect_not(r"^The screen")
                self.assertEqual(len(trainer.told), before + 1, what)
                t.send("q")
                t.expect_not(self.ON)

    def test_to_let_it_run_takes_an_answer_or_a_capital(self):
        with session() as (t, trainer):
            t.send(SINGLE_KEY + "c")
            t.expect(r"^Continue the training\?")
            t.send("n")
            t.expect_not(r"\(y or n\)")
            t.expect(self.ON)
            self.assertEqual(trainer.told, [])
            t.send("K")
            t.expect(r"^End the training process\?")
            t.send("n")
            t.expect_not(r"\(y or n\)")
            t.send("c")
            t.expect(r"\(y or n\)")
            t.send("y")
            trainer.wait_note("run")
            t.expect(r"running")
            t.send("\x03")
            t.expect(r"  stopped")
            t.send("C")
            trainer.wait_note("run", count=2)

    def test_typing_ends_it(self):
        for typed, shown in (("echo x", "echo x"), (":echo x", "echo x"), ("\x1b[200~so\x1b[201~", "so")):
            with self.subTest(typed=typed), session(term="xterm-256color") as (t, trainer):
                t.send(SINGLE_KEY)
                t.expect(self.ON)
                t.send(typed)
                t.expect_not(self.ON)
                t.expect(rf"^\(gradb\) {shown}$")
                self.assertEqual(trainer.told, [])

    def test_watchpoints_are_made_there_alone(self):
        with session() as (t, trainer):
            t.go_to("watch")
            t.send("all\r")  # typed for the prompt: no form
            t.expect(r"^\(gradb\) all$")
            t.go_to("watch")
            t.send(SINGLE_KEY + "a")
            t.expect(r"a new watchpoint")
            t.send("\r")
            t.expect(r"^Watchpoint 1: ")
            t.send(" ")
            t.expect(r"^\(gradb\) disable 1$")


if __name__ == "__main__":
    harness.main()
