# SPDX-License-Identifier: GPL-3.0-or-later
"""The tensor pane: what its grid shows is what `save` writes, wherever it is moved."""
import os
import re
import unittest

import numpy

import harness
from terminal import NEXT_PANE, Terminal

CONSOLE = "\x18o"
END = "\x1b[4~"
HOME = "\x1b[1~"
RIGHT = "\x1b[C"
PAGE_DOWN = "\x1b[6~"
ESCAPE = "\x1b"


class TensorTerminal(Terminal):
    def __enter__(self):
        super().__enter__()
        self.expect(r"stopped")
        return self

    def step(self, number):
        """From the console."""
        self.command("step", rf"Stopped at the end of step {number}\b")

    def saved(self, what):
        """What the command save writes of a value."""
        path = os.path.join(self.home.name, f"saved{len(os.listdir(self.home.name))}.npy")
        self.send(f"save {what} {path}\r")
        self.wait("the file", lambda: os.path.exists(path) and os.path.getsize(path) > 0)
        self.expect(r"^\(gradb\) *$")
        return numpy.load(path)

    def open(self, what):
        """The keyboard goes there."""
        self.send(f"tensor {what}\r")
        self.expect(r"tensor \S+:\d")
        self.send(NEXT_PANE)
        self.wait("the keyboard in the pane", lambda: self.screen.cursor.hidden)

    def head(self):
        """Index and value under the cursor, as the line over the grid says them."""
        found = re.search(r"  \[([\d, ]*)\] = (\S+)", self.text())
        return (tuple(int(n) for n in found[1].split(",") if n.strip()), found[2]) if found else None

    def expect_at(self, index):
        self.wait(f"the cursor at {index}", lambda: self.head() and self.head()[0] == tuple(index))
        return self.head()[1]

    def grid(self):
        """{(row label, column label): text} of all cells on the screen."""
        cells, columns = {}, []
        for row in self.screen.display:
            line = row.split("│")[0]
            if re.fullmatch(r"\s+\+?\d+(\s+\+?\d+)*\s*", line) and not columns:
                columns = [(int(m[0]), m.end()) for m in re.finditer(r"\+?\d+", line)]
            elif columns and re.match(r"\s*\d+ +\S", line) and len(line.split()) > 1:
                words = [(m[0], m.end()) for m in re.finditer(r"\S+", line)]
                by_end = {end: text for text, end in words[1:]}
                for number, end in columns:
                    if end in by_end:
                        cells[int(words[0][0]), number] = by_end[end]
            elif columns:
                break
        return cells

    def expect_grid(self, values, at_least, including=None):
        """Until all cells on the screen are the values at their labels, that of an index among them: a
        picture arrives in pieces, and after a change of size the old one stands there at first."""
        def is_so():
            cells = self.grid()
            return len(cells) >= at_least and (including is None or including in cells) and all(
                y < values.shape[0] and x < values.shape[1] and same(text, values[y, x])
                for (y, x), text in cells.items())
        self.wait(f"{at_least} cells of the value, with {including}", is_so)

    def expect_row_of(self, values, at_least):
        """As expect_grid, of a value with one axis: its cells are where row and column add up to."""
        def is_so():
            cells = self.grid()
            return len(cells) >= at_least and all(same(text, values[row + column])
                                                  for (row, column), text in cells.items())
        self.wait(f"{at_least} cells of the value", is_so)


def same(text, value):
    return text == {"nan": "nan", "inf": "inf", "-inf": "-inf"}.get(str(value), "%.4g" % value)


class TensorPane(unittest.TestCase):
    def test_grid_is_what_save_writes(self):
        with TensorTerminal() as t:
            t.step(1)
            weight = t.saved("token.weight")
            self.assertEqual(weight.ndim, 2)
            t.open("token.weight")
            t.expect(r"^float32 \(\d+, 16\) n=\d+ .* min=")
            t.expect(r"step 1")
            t.expect_grid(weight, 40, including=(0, 0))
            t.send("jjj" + RIGHT + "l")
            value = t.expect_at((3, 2))
            self.assertEqual(numpy.float32(value), weight[3, 2])
            t.send("G" + END)
            last = (weight.shape[0] - 1, weight.shape[1] - 1)
            t.expect_at(last)
            t.expect_grid(weight, 40, including=last)
            t.send("g" + HOME + PAGE_DOWN)
            self.wait_rows(t, weight)

    def wait_rows(self, t, weight):
        t.wait("another page", lambda: t.head() and t.head()[0][0] > 3)
        t.expect_grid(weight, 40)

    def test_sizes(self):
        for rows, cols, cells in ((10, 40, 8), (24, 80, 40), (60, 200, 200)):
            with self.subTest(rows=rows, cols=cols), TensorTerminal(rows=rows, cols=cols) as t:
                t.step(1)
                weight = t.saved("token.weight")
                t.open("token.weight")
                t.expect_grid(weight, cells)
                t.send("/-1,-1\r")
                t.expect_at((weight.shape[0] - 1, 15))
                t.expect_grid(weight, cells)

    def test_resizing_keeps_the_cursor(self):
        with TensorTerminal() as t:
            t.step(1)
            weight = t.saved("token.weight")
            t.open("token.weight[::-1, ::2]")
            t.send("/50,6\r")
            t.expect_at((50, 6))
            for rows, cols in ((12, 44), (50, 120), (10, 40), (24, 80)):
                t.resize(rows, cols)
                t.expect_at((50, 6))
                t.expect_grid(weight[::-1, ::2], 4, including=(50, 6))

    def test_planes_and_axes(self):
        with TensorTerminal() as t:
            t.step(1)
            value = t.saved("Softmax-op10")
            self.assertEqual(value.shape, (2, 2, 16, 16))
            t.open("Softmax-op10")
            t.expect(r"^\[0, 0, y, x\]")
            t.expect_grid(value[0, 0], 20)
            t.send("]]]")
            t.expect(r"^\[1, 1, y, x\]")
            t.expect_grid(value[1, 1], 20)
            t.send("[")
            t.expect(r"^\[1, 0, y, x\]")
            t.expect_grid(value[1, 0], 20)
            t.send("/1,0,15,3\r")
            t.expect_at((1, 0, 15, 3))
            t.send("y")  # rows are the first axis
            t.expect(r"^\[y, 0, 15, x\]")
            t.expect_grid(value[:, 0, 15, :], 8)
            t.send("p")  # of what is printed the console shows the end
            t.expect(r"\]\]$")
            last = float(re.search(r"(\S+) *\]\]$", t.text(), re.MULTILINE).group(1))
            self.assertAlmostEqual(last, value[1, 0, 15, 15], places=6)

    def test_slices(self):
        with TensorTerminal() as t:
            t.step(1)
            value = t.saved("Softmax-op10")
            t.open("Softmax-op10[1, :, ::-1, None, 3:12:2]")
            t.expect(r"^\[0, 0, y, x\]")
            t.send("yy")  # past the new axis: rows are the heads
            sliced = value[1, :, ::-1, None, 3:12:2]
            t.expect(r"^\[0, y, 0, x\]|^\[y, 0, 0, x\]")
            if re.search(r"^\[y, 0, 0, x\]", t.text(), re.MULTILINE):
                t.expect_grid(sliced[:, 0, 0, :], 8)
            else:
                t.expect_grid(sliced[0, :, 0, :], 8)

    def test_one_axis_is_wrapped(self):
        with TensorTerminal() as t:
            t.step(1)
            bias = t.saved("head.bias")
            t.open("head.bias")
            t.expect(r"^\[x\] current")
            t.expect_row_of(bias, 20)
            t.send("/17\r")
            self.assertEqual(numpy.float32(t.expect_at((17,))), bias[17])
            t.send("G")
            t.expect_at((bias.shape[0] - 1,))

    def test_scalar_and_nothing(self):
        with TensorTerminal() as t:
            t.step(1)
            t.open("NLLLoss-op30")
            t.wait("a value", lambda: t.head() and t.head()[0] == ())
            t.send(CONSOLE)
            t.command("tensor head.weight[3:3]", r"no elements")
            t.send(NEXT_PANE + "jG/0,0\r")
            t.expect(r"out of bounds")
            t.send(CONSOLE)
            t.command("tensor head.weight[:, 999]", r"index 999 is out of bounds for axis 1")

    def test_previous_and_difference(self):
        with TensorTerminal() as t:
            t.step(1)
            t.open("token.weight")
            t.send("m")  # looks, and changes nothing
            t.expect(r"no previous value: ")
            t.send(CONSOLE)
            t.command("tensor token.weight prev", r"no previous value: ")
            before = t.saved("token.weight")
            t.step(2)
            t.expect(r"^\[y, x\] previous")
            t.expect_grid(before, 30)
            t.step(3)
            after = t.saved("token.weight")
            t.open("token.weight diff")
            t.expect(r"^\[y, x\] difference")
            t.expect(r"max \|d\|=\d")
            t.send(CONSOLE)
            middle = t.saved("token.weight prev")
            self.assertFalse(numpy.array_equal(middle, after))
            t.expect_grid(after - middle, 30)

    def test_heat_map(self):
        for charset, low, high in (("C.UTF-8", "▁▁", "██"), ("C", "..", "@@")):
            with self.subTest(charset=charset), TensorTerminal(env={"LC_ALL": charset}) as t:
                t.step(1)
                value = t.saved("Softmax-op10")
                t.open("Softmax-op10[0, 0]")
                t.expect_grid(value[0, 0], 20)
                t.send("M")
                t.expect(r"heat min\.\.max")
                # The first position attends to nothing but itself.
                t.expect("^ 0 " + re.escape(high + low * 15) + r"$")
                t.send("M")
                t.expect(r"heat by rank")
                t.send("M")
                t.expect_grid(value[0, 0], 20)

    def test_jump_and_conditions(self):
        with TensorTerminal() as t:
            t.step(1)
            weight = t.saved("token.weight")
            t.open("token.weight")
            t.expect_grid(weight, 30)
            limit = 1.2
            there = [tuple(index) for index in numpy.argwhere(weight > limit)]
            self.assertGreater(len(there), 2)
            t.send(f"/>{limit}\r")
            t.expect_at(there[0] if there[0] != (0, 0) else there[1])
            t.send("n")
            t.expect_at(there[1])
            t.send("N")
            t.expect_at(there[0])
            t.send("N")
            t.expect_at(there[-1])
            t.expect(r"continued from the end")
            same = weight[tuple(numpy.argwhere(weight < -limit)[0])]
            t.send(f"/={same}\r")  # the shortest text of the float32, which is no such float64
            t.expect_at(tuple(numpy.argwhere(weight == same)[0]))
            t.send("/>1e9\r")
            t.expect(r"no element is >1e9")
            t.send("/nan\r")
            t.expect(r"no element is nan")
            t.send("/1,2,3\r")
            t.expect(r"3 indices, but there are 2 axes")
            t.send("/what\r")
            t.expect(r"\"what\" is neither an index")

    def test_nan_is_found(self):
        program = [str(harness.CHARLM), "--layers", "1", "--width", "16", "--heads", "2", "--context", "16",
                   "--batch", "2", "--threads", "1", "--fault", "nan-log"]
        with Terminal(program=False, cols=100) as t:
            t.expect(r"no training process|[Ww]aiting|connect")
            t.send("focus console\r")
            t.send("watch TO on all\r")
            t.send("run -- " + " ".join(program) + "\r")
            t.expect(r"graph: \d+ nodes|stopped")
            t.send("continue\r")
            t.expect(r"Watchpoint 1|watchpoint 1|NaN|nan")
            t.expect(r"stopped")
            t.send("tensor .\r")
            t.expect(r"─ tensor \S+:0 ─")
            t.expect(r"(NaN|Inf)!\d")
            t.send(NEXT_PANE + "G" + END + "n")
            t.expect(r"found nonfinite")
            t.expect(r"\] = (nan|-?inf)$")
            t.expect(r"^ *\d+ .*(nan|inf)")

    def test_running_and_gone(self):
        with TensorTerminal() as t:
            t.step(1)
            weight = t.saved("token.weight")
            t.open("token.weight")
            t.expect_grid(weight, 30)
            t.send(CONSOLE)
            t.send("kill\r")
            t.wait("the question or the end", lambda: "(y or n)" in t.text() or "finished" in t.text())
            if "(y or n)" in t.text():
                t.send("y")
            t.expect(r"finished|lost")
            t.go_to("tensor")
            t.send("GGjm]x")  # nothing there may do harm
            t.send(ESCAPE)
            t.expect(r"finished|lost")


if __name__ == "__main__":
    harness.main()
