# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of the graph: what the keys do, and what they run."""
import unittest

import harness
from terminal import NEXT_PANE, Terminal

LEFT, RIGHT, UP, DOWN = "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B"


class Picture(unittest.TestCase):
    def test_keys(self):
        with Terminal.ready() as t:
            t.send("layout picture\r")
            t.expect(r"^│▸ data \(2\)│─▸│▸ network \(48\)│─▸│▸ \S+AdamWeightDecay \(55\)│$")
            t.command("watch -exact max > -100 on type:Split", r"^Watchpoint 1: ")
            t.command("continue", r"^Watchpoint 1, step 1")
            t.expect(r"^─ picture .*Default/network/block0/attn/Split-op6 ─")
            t.expect(r"▸│Split-op6 :0 \[expr\]│")
            t.send(NEXT_PANE + LEFT)
            t.expect(r"^─ picture .*attn/BiasAdd-op5 ─")
            t.send("\r")
            t.expect(r"^\(gradb\) node Default/network/block0/attn/BiasAdd-op5$")
            t.expect(r"^ MatMul-op4 ─+▸│BiasAdd-op5│")
            t.send(DOWN + UP + LEFT + DOWN)
            t.expect(r"^─ picture .*attn/qkv\.bias ─")
            t.send("-")
            t.expect(r"^\(gradb\) picture -fold Default/network/block0/attn$")
            t.expect(r"│▸ attn \(15\) \[!3\]│")
            t.send("+")
            t.expect(r"^\(gradb\) picture -open Default/network/block0/attn$")
            t.expect(r"│BiasAdd-op5│")
            t.send("2")
            t.expect(r"^\(gradb\) picture -d 2$")
            t.expect(r"│MatMul-op4│")  # further away: now with its own operands
            t.send("1:")
            t.command("node Split-op6", r"│Split-op6 :0 \[expr\]│")
            t.send(NEXT_PANE + LEFT)
            t.expect(r"^─ picture .*attn/BiasAdd-op5 ─")
            t.send(":")  # a node that was named is in the middle, whatever the cursor was on
            t.command("node MatMul-op4", r"^─ picture .*attn/MatMul-op4 ─")
            t.command("node Split-op6", r"^─ picture .*attn/Split-op6 ─")
            t.send(NEXT_PANE + "m")
            t.expect(r"^\(gradb\) picture -tensors$")
            t.expect(r" BiasAdd-op5 :0 ─▸│Split-op6 :0 \[expr\]│")
            t.send("m")
            t.expect(r"^\(gradb\) picture -nodes$")
            t.send(":")
            t.command("echo still here", r"^still here$")

    def test_key_of_the_tree_and_ascii(self):
        with Terminal.ready(env={"LC_ALL": "C"}) as t:
            t.send(NEXT_PANE + "/GatherD\r")
            t.expect(r"\|Default/network/loss/GatherD-op28")
            t.send("P")
            t.expect(r"^\(gradb\) picture Default/network/loss/GatherD-op28$")
            t.expect(r">\|GatherD-op28\|")
            self.assertTrue(t.raw.isascii())

    def test_small_screens(self):
        with Terminal(rows=10, cols=40) as t:
            t.expect(r"^\(gradb\)")
            t.command("picture Softmax-op10", r"Softmax-op10")
            t.expect(r"─ picture \(scrolls\)")
            t.send(NEXT_PANE + RIGHT + RIGHT + DOWN + LEFT + LEFT + "gG")
            for rows, cols in ((24, 80), (11, 41), (60, 200)):
                t.resize(rows, cols)
                t.send("\x0c")
            t.expect(r"─ picture ")


if __name__ == "__main__":
    harness.main()
