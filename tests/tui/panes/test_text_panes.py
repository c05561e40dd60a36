# SPDX-License-Identifier: GPL-3.0-or-later
"""The panes of stacks, source, recorded statistics and the trainer's output."""
import tempfile
import unittest

import harness
from terminal import Terminal

NODE = "Default/network/embed/Add-op2"


class TextTerminal(Terminal):
    def __enter__(self):
        super().__enter__()
        self.expect_ready()
        return self

    def focus(self, pane):
        """From the console."""
        self.go_to(pane)

    def stack_layout(self):
        self.send("layout stack\r")
        self.expect(r"^─ stack ─|^- stack -")

    def select(self):
        self.command("node Add-op2", rf"^{NODE} \(Add\)")


class StackPane(unittest.TestCase):
    def test_frames_and_source(self):
        with TextTerminal() as t:
            t.stack_layout()
            t.expect(r"^No node is selected\.")
            t.expect(r"│No source line is selected\.")
            t.select()
            t.expect(r"^>#0  model\.c:\d+ in network_f")
            t.expect(r"─ source model\.c:\d+ ─")
            t.expect(r"│=>\* +\d+ .*node_add")
            t.focus("stack")
            t.send("j\r")
            t.expect(r"^\(gradb\) frame 1$")
            t.expect(r"^─ nodes of model\.c:\d+ 1/\d+ ─")  # that the line of the frame made
            t.send("q")
            t.expect(r"^>#1  model\.c:\d+ in model_create")
            t.expect(r"│=>\* +\d+ +graph_enter")

    def test_lines_search_nodes_jump(self):
        with TextTerminal() as t:
            t.stack_layout()
            t.focus("stack")
            t.send("m")
            t.expect(r"^─ source lines 1/\d+ ─")
            t.expect(r"^ +\d+  model\.c:\d+")
            t.send("G")
            t.expect(r"^─ source lines (\d+)/\1 ─")
            t.expect(r"^ +\d+  optim\.c:\d+ +│")
            t.expect(r"─ source optim\.c:\d+ ─")
            t.send("g/optim.c")
            t.expect(r"^/optim\.c")
            t.send("\r")
            t.expect_not(r"^/optim\.c")
            t.expect(r"─ source optim\.c:\d+ ─")
            t.send("\r")
            t.expect(r"^─ nodes of optim\.c:\d+ 1/\d+ ─")
            t.expect(r"^…/moment1\.token\.weight +│")
            t.send("j\r")
            t.expect(r"^\(gradb\) node Default/\S+/moment2\.token\.weight$")
            t.send("q")
            t.expect(r"^─ source lines \d+/\d+ ─")
            t.send("q")
            t.expect(r"^─ stack ─")
            t.expect(r"^>#0  optim\.c:\d+ in make_moment")

    def test_ascii(self):
        with TextTerminal(env={"LC_ALL": "C"}) as t:
            t.stack_layout()
            t.select()
            t.expect(r"^>#0  model\.c:\d+ in network_f")
            t.expect(r"\|=>\* +\d+ ")
            t.focus("stack")
            t.send("m")
            t.expect(r"^- source lines 1/\d+ -")
            t.send("\r")
            t.expect(r"^- nodes of model\.c:\d+ 1/\d+ -")
            self.assertNotRegex(t.text(), r"[^\x00-\x7f]")

    def test_smallest_and_wide(self):
        with TextTerminal() as t:
            t.stack_layout()
            t.select()
            t.focus("stack")
            t.resize(10, 40)
            t.expect(r"^>#0  model\.c")
            t.send("m")
            t.expect(r"source lines 1/\d+")
            t.resize(60, 200)
            t.expect(r"^ +\d+  model\.c:\d+ .*│")
            t.expect(r"│=> +\d+ +\d+  ")


class SourcePane(unittest.TestCase):
    def test_search_and_nodes_of_a_line(self):
        with TextTerminal() as t:
            t.stack_layout()
            t.select()
            t.focus("source")
            t.send("/network_forward\r")
            t.expect_not(r"│/network_forward$")
            t.send("n")
            t.expect(r"│ .\*? +\d+ .*network_forward")
            t.send("q")  # back to the marked line
            t.expect(r"│=>\* +\d+ .*node_add")
            t.send("\r")
            t.expect(r"^─ nodes of model\.c:\d+ 1/\d+ ─")
            t.expect(r"Add-op2 +│")


class HistoryPane(unittest.TestCase):
    def test_node_and_scalars(self):
        with TextTerminal() as t:
            t.select()
            t.command("watch 'loss > 100'", r"^Watchpoint 1: ")
            t.focus("history")
            t.expect(r"Nothing is recorded for this node\.")
            t.expect(r"to record it:  trace TO on")
            t.send(":")
            t.command(f"trace TO on {NODE}", r"^Trace 2: ")
            t.command("step 5", r"^Stopped at the end of step 5")
            t.focus("history")
            t.expect(r"│\.\.\./Add-op2:0\.abs_mean [\d.]+ at step 5")
            t.expect(r"Add-op2:0 \(2, 16, 16\), steps \d+ to 5")
            t.expect(r" abs_mean +[\d.e+-]+ [▁-█]+ [\d.e+-]+$")
            t.send("G")
            t.expect(r" nonfinite +0 ▄+ 0$")
            t.expect(r" zero % +\S+ [▁-█]+ \S+$")
            t.send("m")
            t.expect(r"─ history of all metrics ─")
            t.expect(r" loss +[\d.]+ [▁-█]+ [\d.]+$")
            t.send("q")
            t.expect(r"─ history ─")

    def test_chart(self):
        """At 80x24: the list's row under the cursor, kept rows beside it, and what plot names; it follows the run."""
        with TextTerminal() as t:
            t.command("step 30", r"^Stopped at the end of step 30")
            t.focus("history")
            t.expect(r"│loss [\d.]+ at step 30, [\d.]+ to")
            t.expect(r"│ +[\d.]+┤.*[⠁-⣿]")
            t.expect(r"│step +10 +20 +30$")
            t.send("m j")  # all metrics: keeps the first, goes to the second
            t.expect(r"│a loss [\d.]+.* b lr|│a loss .*\n.*│b lr ")
            t.send("g")
            t.expect(r"│\*loss ")
            t.send("\r")
            t.expect_not(r"│\*loss ")  # the chart alone
            t.send("qqq:")
            t.command("plot loss", r"─ history: plot ─")
            t.command("step 10", r"│loss [\d.]+ at step 40, ")
            t.send("\x18o\x1b[D\x1b[D")
            t.expect(r"│loss [\d.]+ at step 39, ")
            t.expect(r"┊")
            t.send("L")
            t.expect(r"│loss [\d.]+ at step 39, log scale, ")
            t.send("LSq+")
            t.expect(r"│loss [\d.]+ \(smoothed 0\.6: [\d.]+\) at")
            t.expect(r"│step +\d+ +.*40$")
            t.expect_not(r"│step +20 ")
            t.send("-")
            t.expect(r"│step +20 +40$")

    def test_histograms(self):
        """At 80x24: a row of the list, the key H, the cursor's readout; it follows the run."""
        with TextTerminal() as t:
            t.select()
            t.send("\x18oH")
            t.expect(r"no histograms of .*Add-op2:0 are")
            t.send(":")
            t.command(f"trace histogram on {NODE}", r"^Trace 1: ")
            t.command("step 12", r"^Stopped at the end of step 12")
            t.focus("history")
            t.send("G")  # the loss
            t.expect(r"│ ?histogram +\S+ [▁-█]+ \S+$")
            t.send("k")
            t.expect(r"│\.\.\..*Add-op2:0 at step 12$")
            t.expect(r"│-[\d.]+ to [\d.]+, median ~-?[\d.]+$")
            t.expect(r"│ +[-\d.]*┤.*[░▒▓]")
            t.send("gH")
            t.expect(r"─ history: plot ─")
            t.expect(r"│step +5 +10$")
            t.send("\x1b[D\x1b[D")
            t.expect(r"Add-op2:0 at step 11$")
            t.send("L")
            t.expect(r"median ~\S+, lo")
            t.send("q:")
            t.command("step 3", r"Add-op2:0 at step 15$")

    def test_chart_sizes(self):
        for rows, cols, pattern in ((10, 40, r"a loss [\d.]+  b lr [\d.]+$"), (20, 300, r"loss .* lr [\d.]+ at step 12")):
            with Terminal(rows=rows, cols=cols) as t:
                t.expect(r"(^|│)\(gradb\)")
                t.command("step 12", r"step 12")
                t.send("plot loss lr\r\x181")
                t.expect(pattern)
                t.expect(r"[⠁-⣿]")

    def test_ascii(self):
        with TextTerminal(env={"LC_ALL": "C"}) as t:
            t.select()
            t.command(f"trace TO on {NODE}", r"^Trace 1: ")
            t.command("step 4", r"^Stopped at the end of step 4")
            t.focus("history")
            t.expect(r" abs_mean +\S+ [_.:=+*#-]+ \S+$")
            self.assertNotRegex(t.text(), r"[^\x00-\x7f]")


class LogPane(unittest.TestCase):
    def test_follows_scrolls_searches(self):
        script = ("i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; done\n"
                  "printf 'a\\033[2Jb\\n'\n"
                  f"exec {harness.CHARLM} --layers 1 --width 16 --heads 2 --context 16 --batch 2 --threads 1"
                  " --steps 100\n")
        with Terminal(program=False) as t, tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
            file.write(script)
            file.flush()
            t.expect(r"^\(gradb\)")
            t.send(f"run -- /bin/sh {file.name}\r")
            t.expect_ready()
            t.go_to("log")
            t.expect(r"─ log ─")
            t.expect(r"│a\S+\[2Jb$|│a.\[2Jb$")  # shown, not obeyed
            t.send("g")
            t.expect(r"─ log 1/\d+ ─")
            t.expect(r"│line 1$")
            t.send("/line 2\r")
            t.expect(r"─ log 2/\d+ ─")
            t.send("n")
            t.expect(r"─ log 20/\d+ ─")
            t.send("N")
            t.expect(r"─ log 2/\d+ ─")
            t.send("G")
            t.expect(r"─ log ─")
            t.expect(r"│line 40$")


if __name__ == "__main__":
    harness.main()
