# SPDX-License-Identifier: GPL-3.0-or-later
"""The graph tree and the node pane: marks, columns, search, filter bar, edges to follow."""
import unittest

import harness
from terminal import NEXT_PANE, SINGLE_KEY, Terminal

UP, DOWN, ESCAPE = "\x1b[A", "\x1b[B", "\x1b"


class Tree(unittest.TestCase):
    def test_watch_marks(self):
        with Terminal.ready() as t:
            t.command("next 4", r"^> +MatMul-op4")
            t.expect_not(r"^  [w~-]")
            t.command("watch TO on weights", r"Watchpoint 1")
            t.expect(r"^  w +qkv\.weight")
            t.expect(r"^  ~ +▾ attn")
            t.command("delete 1", r"^\(gradb\) delete 1")
            t.expect_not(r"^  [w~]")
            t.command("watch TO", r"Watchpoint 2")
            t.expect(r"^> w +MatMul-op4")

    def test_hit_marks(self):
        with Terminal.ready() as t:
            t.command("watch max > -1000 on MatMul-op4", r"Watchpoint \d")
            t.command("continue", r"▸ network \[!1\]")
            t.send("node MatMul-op4\r")
            t.expect(r"MatMul-op4 \[expr\]")
            t.expect(r"│type MatMul, .*\n.*│  \[max > -1000\] :0 max -1000, is ")
            t.send(NEXT_PANE + "\x1b[D\x1b[D")  # up to the scope, and folded
            t.expect(r"▸ attn \[!1\]")
            t.send("\r")
            t.expect(r"▾ attn \(")
            t.command(":next", r"^> +Gather-op1")  # another stop
            t.expect_not(r"\[(!1|expr)\]")

    def test_columns(self):
        with Terminal.ready(rows=50, cols=200) as t:
            t.command("next 5", r"^> +BiasAdd-op5 +BiasAdd +float32 +\(2, 16, 48\)")
            t.expect(r"^ +qkv\.weight +W Parameter +float32 +\(16, 48\)")
            t.expect(r"^ +Softmax-op10 +A Softmax ")
            t.resize(24, 80)
            t.expect(r"^ +qkv\.weight Parameter")

    def test_filter(self):
        with Terminal.ready() as t:
            t.send(NEXT_PANE + "=")
            t.expect(r"^= +name /re/ type:T kind:K graph:G *│")
            t.send("type:matmul")
            t.expect(r"^=type:matmul +\d+ nodes")
            t.expect(r"^ +MatMul-op4")
            t.expect_not(r"^[^│]*(LayerNorm|▸ data)")
            t.send(" op7")
            t.expect(r"^=type:matmul op7 +1 node")
            t.expect(r"▾ attn \(1\)")
            t.expect(r"│Default/network/block0/attn/\S+-op7$")  # the cursor is on what was found
            t.send("\t")  # no other pane, and no key
            t.send("\x7f\x7f\x7f\x7f\r")  # Enter: the keys move again
            t.expect(r"^=type:matmul +\d+ nodes")
            t.send("G")
            t.expect_not(r"▾ Default")
            t.send(ESCAPE)
            t.expect_not(r"^=")
            t.expect(r"│Default/optimizer|│Gradients/")

    def test_filter_words(self):
        with Terminal.ready() as t:
            t.send(NEXT_PANE + "=kind:nothing")
            t.expect(r"unknown kind")
            t.send("\x15kind:weights")
            t.expect(r"^=kind:weights +18 nodes")
            t.send("\x15no such name")
            t.expect(r"no node matches")
            t.send("jk" + UP + DOWN)  # nothing to move in
            t.expect(r"0 nodes")
            t.send(ESCAPE)
            t.expect(r"▾ Default \(\d+\)")

    def test_list_of_types(self):
        with Terminal.ready() as t:
            t.send(NEXT_PANE + "T")
            t.expect(r"^ +15  MatMul +│")
            t.expect(r"^=type: ")
            t.send("layer")
            t.expect_not(r"^ +15  MatMul +│")
            t.send(DOWN + DOWN + "\r")
            t.expect(r"^=type:LayerNormGrad +3 nodes")
            t.expect(r"│ +LayerNormGrad-op47$")  # the cursor is on the first of them
            t.send(ESCAPE)
            t.expect_not(r"^=")
            t.expect(r"│ +LayerNormGrad-op47$")  # and stays there
            t.send("=type:laye\t")  # Tab completes, and stays in the field
            t.expect(r"^=type:LayerNorm +\d+ nodes")
            t.send(" op\r")
            t.expect(r"^=type:LayerNorm op +6 nodes")

    def test_ticks_are_watched(self):
        with Terminal.ready() as t:
            t.command("node MatMul-op4", r"│Default/network/block0/attn/MatMul-op4")
            t.send(NEXT_PANE + " j ")
            t.expect(r"^  ✓ +MatMul-op4")
            t.expect(r"^  ✓ +BiasAdd-op5")
            t.expect(r"─ graph: 141 nodes, 2 ticked")
            t.send(" ")
            t.expect_not(r"^  ✓ +BiasAdd-op5")
            t.send("j " + SINGLE_KEY + "a")
            t.expect(r"^  on +Default/network/block0/attn/MatMul-op4, Default")
            t.send(ESCAPE + "q")
            t.expect(r"^  ✓ +MatMul-op4")  # nothing was run
            t.send(SINGLE_KEY + "a\r")
            t.expect(r"^\(gradb\) watch WI on Default/network/block0/attn/MatMul-op4,$")
            t.expect_not(r"ticked|✓")
            t.send("q:")
            t.command("node GatherD-op28", r"│Default/network/loss/GatherD-op28")
            t.send(NEXT_PANE + " :")
            t.go_to("watch")
            t.send(SINGLE_KEY + "e")  # the watchpoint being edited
            t.expect(r"^  on +Default/network/loss/GatherD-op28")
            t.send("\r")
            t.expect(r"^\(gradb\) edit 1 on Default/network/loss/GatherD-op28$")

    def test_form_fills_in_what_is_under_the_cursor(self):
        with Terminal.ready() as t:
            t.send(NEXT_PANE + "/GatherD\r" + SINGLE_KEY + "a")
            t.expect(r"^  on +Default/network/loss/GatherD-op28$")
            t.send(ESCAPE + "\x1b[Da")  # the scope of it
            t.expect(r"^  on +Default/network/loss/$")

    def test_what_a_hand_chooses_is_shown(self):
        with Terminal.ready() as t:
            t.send(NEXT_PANE + "=softmax\r")
            t.expect(r"^=softmax +\d+ node")
            t.send(":")
            t.command("node MatMul-op4", r"│Default/network/block0/attn/MatMul-op4")
            t.expect_not(r"^=softmax")

    def test_search(self):
        with Terminal.ready() as t:
            t.send(NEXT_PANE + "/softmax")
            t.expect(r"^/softmax +\d+ nodes?")
            t.expect(r"│Default/network/block0/attn/Softmax-op10")  # it opened what was folded
            t.send("\rn")
            t.expect_not(r"│Default/network/block0/attn/Softmax-op10")
            t.expect(r"│\S*Softmax")
            t.send("N")
            t.expect(r"│Default/network/block0/attn/Softmax-op10")
            t.send(ESCAPE + "/zzz")
            t.expect(r"^/zzz +0 nodes")
            t.send(ESCAPE)
            t.expect(r"│Default/network/block0/attn/Softmax-op10")
            t.send("/type:softmax block0")  # what a filter takes: all words must fit
            t.expect(r"^/type:softmax block0 +\d+ nodes?")
            t.send(ESCAPE + "/kind:none")
            t.expect(r"^/kind:none +unknown kind .none.")
            t.send(ESCAPE + "//attn.*op1[0-4]/")
            t.expect(r"^//attn\.\*op1\[0-4\]/ +\d+ nodes")
            t.send("\r")
            t.expect(r"│Default/network/block0/attn/\S+-op1[0-4]")

    def test_small(self):
        with Terminal(rows=10, cols=40) as t:
            t.expect(r"^\(gradb\)")
            t.expect(r"stopped")
            t.command("focus graph", r"─ graph: \d+ nodes")
            t.send(NEXT_PANE + "=matmul")
            t.expect(r"^=matmul +\d+ nodes")
            t.send("\r" + NEXT_PANE)
            t.expect(r"─ (node|scope) ─")
            t.send("jjjjjkkG\r")
            t.expect(r"─ (node|scope) ─")
            t.resize(1, 1)
            t.resize(24, 80)
            t.expect(r"matmul +\d+ nodes")


class Node(unittest.TestCase):
    def test_follow_an_input(self):
        with Terminal.ready(rows=40, cols=100) as t:
            t.command("next 5", r"│Default/network/block0/attn/BiasAdd-op5")
            t.expect(r"│inputs")
            t.expect(r"│consumers")
            t.expect(r"│  Default/network/block0/attn/Split-op6 \(of :0\)")
            t.send(NEXT_PANE + NEXT_PANE + "/MatMul-op4\r\r")
            t.expect(r"^\(gradb\) node Default/network/block0/attn/MatMul-op4")
            t.expect(r"│Default/network/block0/attn/MatMul-op4$")
            t.send("/LayerNorm-op3\r" + SINGLE_KEY + "b")  # %n of the row
            t.expect(r"^\(gradb\) break Default/network/block0/LayerNorm-op3$")

    def test_following_back_to_the_current_node(self):
        with Terminal.ready(rows=40, cols=100) as t:
            t.command("next 4", r"│Default/network/block0/attn/MatMul-op4")
            t.send(NEXT_PANE + "j")  # a look at another one
            t.expect(r"│Default/network/block0/attn/BiasAdd-op5")
            t.send(NEXT_PANE + "/MatMul-op4:0\r\r")
            t.expect(r"│Default/network/block0/attn/MatMul-op4$")

    def test_histogram(self):
        with Terminal.ready(rows=40, cols=200) as t:
            t.command("next 5", r"│  :0 float32 .*std=\S+ \|[ ▁▂▃▄▅▆▇█]{16}\|$")

    def test_ascii(self):
        with Terminal.ready(rows=40, cols=200, env={"LC_ALL": "C"}) as t:
            t.command("next 5", r"\|  :0 float32 .*std=\S+ \|[ .:\-=+*%#]{16}\|$")
            t.send(NEXT_PANE + "=qkv")
            t.expect(r"^=qkv +\d+ nodes")
            self.assertTrue(t.text().isascii())

    def test_watchpoints_of_the_node(self):
        with Terminal.ready(rows=40, cols=100) as t:
            t.command("watch TO on MatMul-op4", r"Watchpoint 1")
            t.command("next 4", r"│watchpoints")
            t.expect(r"│  1  TO")


if __name__ == "__main__":
    harness.main()
