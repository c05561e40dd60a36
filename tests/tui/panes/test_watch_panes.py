# SPDX-License-Identifier: GPL-3.0-or-later
"""The panes of watchpoints and hits, and the form that makes a watchpoint."""
import contextlib
import re
import shlex
import sys
import threading
import unittest

import harness
from terminal import NEXT_PANE, SINGLE_KEY, Terminal

sys.path.insert(0, str(harness.SOURCE / "tests" / "e2e"))
import fake_mindspore as fake  # noqa: E402

ESCAPE = "\x1b"
RIGHT = "\x1b[C"
LEFT = "\x1b[D"
DOWN = "\x1b[B"
BACKSPACE = "\x7f"


class WatchTerminal(Terminal):
    """With the layout of watchpoints and hits, and the focus on the former."""

    def __enter__(self):
        super().__enter__()
        self.expect_ready()
        self.send("layout watch\r")
        self.expect(r"^─ watch ─|^- watch -")
        return self

    def focus_watch(self):
        """In single-key mode."""
        self.go_to("watch")
        self.send(SINGLE_KEY)
        self.expect(r"^ SINGLE-KEY MODE ")

    def choose(self, letter, pattern):
        """Types the letter until that condition is the chosen one."""
        def number():
            found = re.search(r">  (\d+) of \d+$", self.text(), re.MULTILINE)
            return found and int(found[1])
        self.wait("a choice", number)
        while not re.search(f"< {pattern} >", self.text()):
            before = number()
            self.send(letter)
            self.wait("the next choice", lambda before=before: number() not in (None, before))

    def list_row(self, number):
        """The row of a watchpoint in its pane."""
        return re.compile(rf"^ +{number} (?P<mark>\S) (?P<action>\w+) +(?P<text>.*?)  +(?P<hits>\d+)\b",
                          re.MULTILINE)

    def expect_watch(self, number, mark, hits):
        def is_so():
            found = self.list_row(number).search(self.text())
            return found and found["mark"] == mark and found["hits"] == str(hits)
        self.wait(f"watchpoint {number} with {mark} and {hits} hits", is_so)


class WatchPanes(unittest.TestCase):
    def test_empty(self):
        with WatchTerminal() as t:
            t.expect(r"^No watchpoints\.")
            t.expect(r"│No watchpoint has fired\.")

    def test_made_by_the_form_and_fired(self):
        with WatchTerminal() as t:
            t.focus_watch()
            t.send("a")
            t.expect(r"^─+ a new watchpoint ─")
            t.send("g")  # the first condition that begins so
            t.expect(r"condition +< gradient_\w+ \(\w+\) >")
            t.choose("g", r"gradient_too_large \(GL\)")
            t.expect(r"^ +abs_mean_gt +- 0 or more$")
            t.expect(r"^ +on +gradients")
            t.send(DOWN + DOWN + "x")
            t.expect(r"^ +max_gt +!  x$")
            t.send("\r")
            t.expect(r'max_gt: "x" is not a number; expected any number')
            t.send(BACKSPACE + "0.001\r")
            t.expect(r"^\(gradb\) watch GL max_gt=0\.001 on gradients$")
            t.expect_not(r"a new watchpoint")
            t.expect_watch(1, "●", 0)
            t.send("C")
            t.expect(r"^Watchpoint 1, at the end of step 1|^Watchpoint 1, step 1, Gradients/")
            t.expect(r"│\*1 +1 GL +\S*Grad\S*:0  \S+ > 0\.001")
            t.send("\r")  # its hits
            t.expect(r"─ hits of watchpoint 1 1/\d+ ─")
            t.send("\r")
            t.expect(r"│>1 +1 GL ")
            t.expect(r"^Look at:")
            t.send(SINGLE_KEY + "q")
            t.expect(r"─ hits 1/\d+ ─")

    def test_hits_of_a_node_stand_below_its_name(self):
        with WatchTerminal() as t:
            t.command("watch max > -100 on MatMul-op4", r"^Watchpoint 1: ")
            t.command("watch mean > -100 on MatMul-op4", r"^Watchpoint \d: ")
            t.send("step\r")
            t.expect(r"│…/network/block0/attn/MatMul-op4 step 1$")
            t.expect(r"│\*1 1 expr :0  max=")
            t.expect(r"│\*1 2 expr :0  mean=")
            t.expect(r"─ hits 1/2 ─")  # the heading is not counted
            t.go_to("hits")
            t.send("gG\r")
            t.expect(r"^\(gradb\) hit 2$")
            t.expect(r"│>1 2 expr :0 ")
            t.expect(r"^\(gradb\)$")
            t.send("g\r")  # on the heading: its first hit
            t.expect(r"^\(gradb\) hit 1$")

    def test_recommended_question_is_in_the_pane(self):
        with WatchTerminal(rc="") as t:
            t.expect(r"^Set the \d+ recommended watchpoints\? +Type *│")
            t.send("n\r")
            t.expect(r"^No watchpoints\.")

    def test_switched_off_and_deleted(self):
        with WatchTerminal() as t:
            t.command("watch TZ on weights", r"^Watchpoint 1: ")
            t.command("trace TO", r"^Trace 2: ")
            t.expect_watch(1, "●", 0)
            t.focus_watch()
            t.send(" ")
            t.expect(r"^\(gradb\) disable 1$")
            t.expect_watch(1, "○", 0)
            t.expect(r"─ watch 2, 1 off ─")
            t.send(" ")
            t.expect(r"^\(gradb\) enable 1$")
            t.expect_watch(1, "●", 0)
            t.send("d")
            t.expect(r"^\(gradb\) delete 1$")
            t.expect(r"─ watch 1 ─")
            t.expect_not(t.list_row(1).pattern)
            t.expect_watch(2, "●", 0)

    def test_edited_by_the_form(self):
        with WatchTerminal() as t:
            t.command("watch GL max_gt=7 on gradients if step > 3", r"^Watchpoint 1: ")
            t.focus_watch()
            t.send("e")
            t.expect(r"─ watchpoint 1: gradient_too_large ─")
            t.expect(r"^ +max_gt +7$")
            t.expect(r"^ +if +step > 3$")
            t.send("\r")
            t.expect(r"nothing was changed")
            t.send(DOWN + BACKSPACE + "9\r")  # from the first field
            t.expect(r"^\(gradb\) edit 1 max_gt=9$")
            t.expect(r"^Watchpoint 1: GL max_gt=9 on gradients if step > 3")
            t.send("e")
            t.expect(r"^ +max_gt +9$")
            t.send(DOWN * 5 + "\x15\r")  # no guard
            t.expect(r"^\(gradb\) condition 1$")
            t.expect(r"^Watchpoint 1: guard removed\.")
            t.send("e")
            t.expect(r"─ watchpoint 1: ")
            t.send(ESCAPE)
            t.expect_not(r"─ watchpoint 1: ")

    def test_expression_with_faults(self):
        with WatchTerminal() as t:
            t.focus_watch()
            t.send("a")
            t.expect(r"a new watchpoint")
            t.expect(r"condition +< .* >  1 of \d+$")
            t.send(LEFT)  # the last one
            t.expect(r"condition +< an expression >")
            t.send(DOWN + "max > \r")
            t.expect(r"^ +expression +!  max >$")
            t.expect(r"column|expected")
            t.send("1e9\r")
            t.expect(r"^\(gradb\) watch 'max > 1e9'")
            t.expect(r"^Watchpoint 1: 'max > 1e9'")

    def test_the_current_node_is_offered(self):
        with WatchTerminal() as t:
            t.command("node Add-op2", r"Default/network/embed/Add-op2")
            t.focus_watch()
            t.send("a")
            t.expect(r"^ +condition +< ")
            t.expect(r"condition +< weight_initialization \(WI\) >")
            t.send(DOWN * 4)
            t.expect(r"^  a selector: weights")
            t.send(RIGHT)
            t.expect(r"^ +on +Default/network/embed/Add-op2$")
            t.send("\r")
            t.expect(r"^\(gradb\) watch \w+ on Default/network/embed/Add-op2$")

    def test_what_could_not_be_checked_is_one_row(self):
        with WatchTerminal() as t:
            t.command("trace WCL", r"^Trace 1: .*: 18 nodes")
            t.command("step", r"^Stopped at the end of step 1|step 1, ")
            t.expect(r"│\*1 +1 WCL 18 tensors  not checked")
            t.expect(r"─ hits 0, 18 not checked ─")
            t.go_to("hits")
            t.send("m")
            t.expect(r"│\*1 +1 WCL \S+token.weight:0  not checked")
            t.send("G")
            t.expect_not(r"│\*1 +1 WCL \S+token.weight:0  not checked")
            t.send("/fc.weight\r")
            t.expect(r"│Default/network/block0/mlp/fc\.weight:0")
            t.send("m")
            t.expect(r"│\*1 +1 WCL 18 tensors  not checked")

    def test_hits_of_all_ranks(self):
        charlm = shlex.join(map(str, (harness.CHARLM, "--layers", 1, "--width", 16, "--heads", 2, "--context", 16,
                                      "--batch", 2, "--threads", 1)))
        script = f"RANK=0 {charlm} & RANK=1 {charlm}; wait"
        with WatchTerminal(run=("/bin/sh", "-c", script), env={"WORLD_SIZE": "2"}) as t:
            t.command("trace WCL", r"^Trace 1: .*: 18 nodes")
            t.command("step", r"^All 2 ranks are stopped at the end of step 1")
            t.expect(r"─ hits of 2 ranks 0, 36 not checked ─")
            t.expect(r"│.1 +r0 +1 WCL 18 tensors  not checked")
            t.expect(r"│.1 +r1 +1 WCL 18 tensors  not checked")
            t.go_to("hits")
            t.send("G")
            t.send("\r")  # that rank is selected, and its hit
            t.expect(r" rank 1 of 2 ")
            t.expect(r"^\(gradb\) hit 1$")
            t.expect(r"│>1 +r1 +1 WCL 18 tensors  not checked")
            t.expect(r"│\*1 +r0 +1 WCL 18 tensors  not checked")

    def test_excluded_places(self):
        with WatchTerminal() as t:
            t.command("exclude type:Softmax", r"^  type:Softmax: 2 nodes")
            t.expect(r"^ excluded: type:Softmax")
            t.focus_watch()
            t.send("d")
            t.expect(r"^\(gradb\) exclude -d type:Softmax$")
            t.expect_not(r"^ excluded: ")
            t.expect(r"^No watchpoints\.")

    def test_wide_shows_every_figure(self):
        with WatchTerminal(rows=60, cols=200) as t:
            t.command("watch -exact GL max_gt=0.001 on gradients", r"^Watchpoint 1: .*: 36 nodes")
            t.expect(r"hits +nodes +\? +cost│")
            t.command("continue", r"^Watchpoint 1, step 1, ")
            t.expect(r"^ 1 ● stop  GL max_gt=0\.001 on gradients +1 +36 +0 +\d+%│")
            t.expect(r"│\*1 +1 GL +Gradients/\S+:0  max \S+ > 0\.001$")

    def test_ascii(self):
        with WatchTerminal(env={"LC_ALL": "C"}) as t:
            t.command("watch -exact GL max_gt=0.001 on gradients", r"^Watchpoint 1: ")
            t.expect_watch(1, "+", 0)
            t.focus_watch()
            t.send(" ")
            t.expect_watch(1, "-", 0)
            t.send(" C")
            t.expect(r"\*1 +1 GL +\.\.\.\S*:0  \S+ > 0\.001")
            self.assertNotRegex(t.text(), r"[^\x00-\x7f]")

    def test_small_and_back(self):
        with WatchTerminal() as t:
            t.command("watch -exact GL max_gt=0.001 on gradients", r"^Watchpoint 1: ")
            t.command("continue", r"^Watchpoint 1, step 1, ")
            t.send(NEXT_PANE + SINGLE_KEY)
            t.resize(10, 40)
            t.expect(r"watch 1 ─")
            t.expect(r"^ SINGLE-KEY MODE ")
            t.send("a")
            t.expect(r"a new watchpoint")
            t.send(ESCAPE + "\r")
            t.expect(r"hits of watchpoint 1 1/1")
            t.resize(24, 80)
            t.expect(r"│\*1 +1 GL ")


@contextlib.contextmanager
def mindspore(cur_step=0, make=fake.FakeMindSpore, rc="set recommend off\n", **options):
    """The panes, and a MindSpore process at its first stop."""
    with Terminal(program=False, cols=120, rows=40, rc=rc) as t:
        t.expect(r"istening on 127\.0\.0\.1:\d+")
        trainer = make(int(re.search(r"istening on 127\.0\.0\.1:(\d+)", t.text()).group(1)), **options)
        trainer.cur_step = cur_step
        trainer.start()
        try:
            t.expect(r"graph: \d+ nodes|\d+ nodes")
            t.expect("stopped")
            yield t, trainer
        finally:
            trainer.vanish()


class Bare(fake.FakeMindSpore):
    """Its hits do not repeat the condition."""

    def hits_of(self, *names, **how):
        hits = super().hits_of(*names, **how)
        for hit in hits:
            hit.ClearField("watch_condition")
        return hits


class Halting(fake.FakeMindSpore):
    """Computes for as long as a test wants when some steps are over."""
    go_on = None

    def begin_step(self, number):
        super().begin_step(number)
        if number == 6:
            self.go_on.wait(4 * harness.DEADLINE)


class MindSpore(unittest.TestCase):
    def test_the_step_while_it_runs(self):
        go_on = threading.Event()
        with mindspore(make=Halting, version="1.9.0", backend="Ascend", steps=9) as (t, trainer):
            trainer.go_on = go_on
            t.send("continue\r")
            try:
                t.expect(r"^ gradb .*step [567]  running")
            finally:
                go_on.set()
            t.expect(r"^ gradb .*step 9  finished")

    def test_the_newest_step_stays_in_the_status_line(self):
        with mindspore(version="1.9.0", backend="Ascend", steps=30) as (t, _):
            t.command("step 2", r"end of step 2\.")
            t.command("continue", r"^The training ended")
            t.expect(r"^ gradb .*step 30  finished")

    def test_previous_values_are_shown_without_a_wrong_word(self):
        for version, backend in (("1.5.0", "Ascend"), ("1.9.0", "Ascend"), ("1.5.0", "GPU")):
            with mindspore(version=version, backend=backend, steps=5) as (t, _):
                t.command("watch TL max_gt=1e30 on weights", r"^Watchpoint 1")  # a GPU holds what is watched
                t.command("step 2", r"end of step 2")
                t.send("tensor conv1.weight prev\r")
                t.expect(r"conv1\.weight:0, previous|previous.*conv1\.weight|-1\.35")
                t.expect(r"-1\.35")
                self.assertNotIn("cannot keep previous", t.text())

    def test_a_hit_has_one_name_everywhere(self):
        with mindspore(make=Bare, version="1.9.0", backend="Ascend", steps=5) as (t, _):
            t.command("set evaluate remote", r"set evaluate remote$")
            t.command("watch TL max_gt=2 on type:ReLU", r"^Watchpoint 1")
            t.command("step", r"^Watchpoint 1, ")
            t.command("node ReLU-op2", r"ReLU-op2 \(ReLU\)")
            t.expect(r"ReLU-op2\S* .*TL")
            self.assertNotIn("expr", t.text())

    def test_the_form_offers_what_can_be_set(self):
        with mindspore(cur_step=1, version="1.9.0", backend="GPU", steps=5) as (t, _):
            t.send("layout watch\r")
            t.expect(r"^─ watch ─")
            WatchTerminal.focus_watch(t)
            t.send("a")
            t.expect(r"─+ a new watchpoint ─")
            offered = set()
            for letter in "ow" * 10:
                before = t.text()
                t.send(letter)
                t.wait("the next choice", lambda before=before, letter=letter: letter == "o" or t.text() != before)
                offered.update(re.findall(r"< (\w+) \(\w+\) >", t.text()))
            self.assertIn("weight_change_too_large", offered)
            self.assertIn("weight_overflow", offered)
            self.assertEqual(offered & {"operator_overflow", "weight_initialization"}, set())

    def test_one_whose_first_step_is_over_is_asked_about(self):
        with mindspore(cur_step=1, rc="", version="1.9.0", backend="Ascend", steps=5) as (t, _):
            t.expect(r"Set the \d+ recommended watchpoints\? Type y or n, then Enter")


if __name__ == "__main__":
    harness.main()
