# SPDX-License-Identifier: GPL-3.0-or-later
"""The panes that show values, with values of every type and shape."""
import re
import unittest

import numpy as np

import harness
from terminal import Terminal
from value_trainer import DTYPES, Value, pb, value_trainer

HEAD = re.compile(r"  \[([\d, ]*)\] = (.*?) *(?:│.*)?$", re.MULTILINE)
BIG = 10000  # rows and columns of a tensor of 100 million elements


class ValueTerminal(Terminal):
    """Commands are typed at the prompt; a bound key goes back to it."""

    def __init__(self, **kwargs):
        super().__init__(program=False, rc="set recommend off\nbind F5 focus console\n", **kwargs)

    def open(self, what):
        self.send(f"tensor {what}\r")
        self.expect("tensor " + re.escape(what.split("[")[0]) + ":0")
        self.console()

    def console(self):
        """F5; the cursor is shown in the console alone."""
        self.send("\x1b[[E")
        self.wait("the prompt", lambda: not self.screen.cursor.hidden)

    def at(self):
        found = HEAD.search(self.text())
        return (tuple(int(n) for n in found[1].split(",") if n.strip()), found[2]) if found else None

    def expect_at(self, index, value=None):
        self.wait(f"{value} at {index}", lambda: self.at() and self.at()[0] == tuple(index) and
                  value in (None, self.at()[1]))
        return self.at()[1]

    def to(self, index, value=None):
        self.send("tensor -to " + ",".join(str(n) for n in index) + "\r")
        return self.expect_at(index, value)


def extremes(name):
    """A tensor of the type with its least, its greatest and its strangest values."""
    if name == "bool":
        return Value(np.array([[True, False], [False, True]]))
    if name == "bfloat16":  # 1, -2, NaN, Inf as bits
        return Value(np.array([[0x3f80, 0xc000], [0x7fc0, 0x7f80]], dtype=np.uint16), "bfloat16")
    dtype = np.dtype(name)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return Value(np.array([[info.min, info.max], [0, 1]], dtype=dtype))
    if dtype.kind == "c":
        return Value(np.array([[1 + 2j, -1e-30 - 4e20j], [complex(np.nan, 1), complex(0, np.inf)]], dtype=dtype))
    info = np.finfo(dtype)
    return Value(np.array([[info.max, info.smallest_subnormal], [np.nan, -np.inf], [info.min, -0.0]], dtype=dtype))


class TensorOfEveryKind(unittest.TestCase):
    def test_every_type(self):
        values = {name: extremes(name) for name in DTYPES}
        with ValueTerminal() as t, value_trainer(t, values):
            for name, value in values.items():
                with self.subTest(dtype=name):
                    t.open(name)
                    t.expect("^" + name + r" \(")
                    for index, element in np.ndenumerate(value.array):
                        shown = t.to(index)
                        self.check(name, shown, element)

    def check(self, name, shown, element):
        if name == "bool":
            self.assertEqual(shown, str(bool(element)))
        elif name == "bfloat16":
            self.assertEqual(shown, {0x3f80: "1.0", 0xc000: "-2.0", 0x7fc0: "nan", 0x7f80: "inf"}[int(element)])
        elif name.startswith("complex"):
            self.assertEqual(np.nan_to_num(np.dtype(name).type(complex(shown)), nan=7),
                             np.nan_to_num(element, nan=7))
        elif name.startswith("float"):
            number = np.dtype(name).type(shown)
            self.assertTrue(number == element or (np.isnan(number) and np.isnan(element)), (shown, element))
            self.assertEqual(np.signbit(number), np.signbit(element) and not np.isnan(element))
        else:
            self.assertEqual(int(shown), int(element))

    def test_every_rank(self):
        values = {f"rank{rank}": Value(np.arange(3 ** rank, dtype=np.int16).reshape((3,) * rank))
                  for rank in range(7)}
        with ValueTerminal(cols=100) as t, value_trainer(t, values):
            for rank, (name, value) in enumerate(values.items()):
                with self.subTest(rank=rank):
                    t.open(name)
                    last = (2,) * rank
                    t.expect_at((0,) * rank, "0")
                    if rank > 0:
                        t.to(last, str(value.array[last]))
                    if rank > 2:
                        t.send(f"tensor -axes 0,{rank - 2}\r")
                        t.expect(r"^\[y, (2, )*x, 2\]")
                        t.send("tensor -plane next\r")
                        t.expect(r"^\[y, (0, )*x, 0\]")
                        t.expect_at((2,) + (0,) * (rank - 3) + (2, 0))

    def test_nothing_one_and_missing(self):
        values = {"none": Value(np.zeros((0, 5), np.float32)), "one": Value(np.array([-0.5])), "gone": None}
        with ValueTerminal() as t, value_trainer(t, values):
            t.open("none")
            t.expect("no elements")
            t.command("tensor -to 0,0", r"index 0 is out of bounds for axis 0 with size 0$")
            t.open("one")
            t.expect_at((0,), "-0.5")
            t.open("gone")
            t.expect("no value: the value was not kept")

    def test_a_hundred_million_elements(self):
        whole = np.broadcast_to(np.float32(1.5), (BIG, BIG))
        value = Value(whole, whole=np.full(4, 1.5, np.float32))
        with ValueTerminal(rows=60, cols=200) as t, value_trainer(t, {"big": value}) as trainer:
            t.open("big")
            t.to((BIG - 1, BIG - 1), "1.5")
            t.to((BIG // 2, 17), "1.5")
            t.send("tensor -heat range\r")
            t.expect("heat min")
            self.assertLess(trainer.sent, 4 << 20)

    def test_wide_numbers_widen_the_columns(self):
        array = np.ones((400, 4))
        array[300] = -1.2345e-300
        with ValueTerminal() as t, value_trainer(t, {"w": Value(array)}):
            t.open("w")
            t.expect(r"^ *0 +1 +1 +1 +1$")
            t.to((300, 3))
            t.expect(r"^ *300 +(-1\.234e-300 ?|-1\.235e-300 ?){4}$")


class Moving(unittest.TestCase):
    def values(self):
        array = np.zeros((40, 50), np.float32)
        array[3, 7], array[20, 1], array[39, 49] = np.nan, np.inf, 1234.5
        return {"t": Value(array), "row": Value(np.arange(1000, dtype=np.int32))}

    def test_search_by_commands(self):
        with ValueTerminal() as t, value_trainer(t, self.values()):
            t.open("t")
            t.send("tensor -find\r")
            t.expect_at((3, 7), "nan")
            t.send("tensor -find\r")
            t.expect_at((20, 1), "inf")
            t.send("tensor -find\r")
            t.expect_at((3, 7), "nan")
            t.expect(r"continued from the start")
            t.send("tensor -back\r")
            t.expect_at((20, 1), "inf")
            t.send('tensor -find ">1e3"\r')
            t.expect_at((39, 49), "1234.5")
            t.expect(r"found >1e3")
            t.send("tensor -find 1000..2000\r")
            t.expect(r"found 1000\.\.2000")
            t.send("tensor -find 1..2\r")
            t.expect(r"no element is 1\.\.2")
            t.open("row")
            t.send("tensor -find 500..501\r")
            t.expect_at((500,), "500")

    def test_what_is_wrong_is_said(self):
        with ValueTerminal() as t, value_trainer(t, self.values()):
            t.open("t")
            t.expect_at((0, 0))
            for line, error in (("-to 3", r"1 index, but there are 2 axes"),
                                ("-to 3,50", r"index 50 is out of bounds for axis 1 with size 50: 0 to 49"),
                                ("-to -41,0", r"index -41 is out of bounds for axis 0 with size 40: 0 to 39"),
                                ("-to x", r"-to takes an index"), ("-to", r"tensor -to takes an argument"),
                                ("-heat loud", r"range, rank or off, not \"loud\""),
                                ("-axes 0,0", r"two different axes from 0 to 1"),
                                ("-axes 1", r"two axes, such as 0,1"), ("-plane up", r"next or back, not \"up\"")):
                with self.subTest(line=line):
                    t.command("tensor " + line, error)
            t.send("tensor -find what\r")
            t.expect(r"-find takes a condition")
            t.open("row")
            t.command("tensor -axes 0,1", r"fewer than two axes")

    def test_said_before_the_value_came(self):
        """In one go, as a script says it."""
        with ValueTerminal() as t, value_trainer(t, self.values()):
            t.send("define there\rtensor t\rtensor -to 20,0\rtensor -find nonfinite\rend\r")
            t.send("there\r")
            t.expect_at((20, 1), "inf")


class HeatMap(unittest.TestCase):
    def test_extremes_have_their_place(self):
        value = Value(np.array([[1.7e308, -1.7e308, 0.0, np.nan, np.inf, -np.inf]] * 2))
        for charset, row in (("C.UTF-8", "██▁▁▅▅N!+I-I"), ("C", "@@..++N!+I-I")):
            with self.subTest(charset=charset), ValueTerminal(env={"LC_ALL": charset}) as t, \
                    value_trainer(t, {"x": value}):
                t.open("x")
                t.send("tensor -heat range\r")
                t.expect("^0 " + re.escape(row) + "$")
                t.send("tensor -heat rank\r")
                t.expect("heat by rank")
                t.send("tensor -heat off\r")
                t.expect("nan +inf +-inf$")


class NodePane(unittest.TestCase):
    LONG = "very/" * 40 + "long"

    def nodes(self):
        """Behind the trainer's two."""
        out = [pb.Output(dtype=pb.FLOAT32, shape=[4])]
        return [pb.Node(id=3, name="wide", type="Concat", order=3, outputs=out,
                        inputs=[pb.Input(node=1)] * 1000,
                        attrs=[pb.Attr(name="axis", value="0"), pb.Attr(name="note", value="a\x1b[31mb")]),
                pb.Node(id=4, name="sink", type="Print", order=4, inputs=[pb.Input(node=3)]),
                pb.Node(id=5, name=self.LONG, type="Relu", order=5, outputs=out, inputs=[pb.Input(node=1)]),
                pb.Node(id=6, name="\u5c64/e\u0301/x\u202ey", type="Relu", order=6, outputs=out,
                        inputs=[pb.Input(node=1)])]

    def at(self, t, node):
        """The node is selected, and the node pane has the focus."""
        t.send(f"node {node}\r")
        t.go_to("node")

    def test_follow_and_back(self):
        values = {"w": Value(np.linspace(0, 1, 4, dtype=np.float32)), "v": None}
        with ValueTerminal(cols=100, rows=30) as t, value_trainer(t, values, self.nodes()):
            self.at(t, "sink")
            t.expect(r"│type Print, ")
            t.expect(r"│inputs")
            t.send("/wide\r\r")
            t.expect(r"│type Concat, ")
            t.expect(r"axis=0 note=a\\x1b\[31mb")
            t.expect(r"│inputs")
            t.send("/w:0\r\r")
            t.expect(r"│type Made, .*number 1 in order")
            t.expect(r":0 float32 \(4,\) .*min=0 ")
            t.send("\x0f")
            t.expect(r"│type Concat, ")
            t.send("\x7f")
            t.expect(r"│type Print, ")
            t.send("\x0f\x7f")  # nowhere to go: nothing happens
            t.console()
            t.command("node wide", r"│type Concat, ")

    def test_a_thousand_inputs(self):
        with ValueTerminal(cols=100, rows=30) as t, \
                value_trainer(t, {"w": Value(np.ones(4, np.float32)), "v": None}, self.nodes()):
            self.at(t, "wide")
            t.expect(r"│type Concat, ")
            t.send("G")
            t.expect(r"sink \(of :0\)")
            t.send("/800 more\r")
            t.expect(r"and 800 more: see `info node`")

    def test_what_is_not_there(self):
        with ValueTerminal(cols=100, rows=30) as t, value_trainer(t, {"w": None, "v": None}, self.nodes()):
            self.at(t, "w")
            t.expect(r":0 float32 \(2,\) \(the value was not kept\)")
            t.console()
            t.command("node sink", r"│type Print, ")
            t.expect_not(r"│outputs")

    def test_names(self):
        """Long ones are folded, wide characters take two columns, what could move text is spelt out."""
        for charset in ("C.UTF-8", "C"):
            with self.subTest(charset=charset), ValueTerminal(cols=100, rows=30, env={"LC_ALL": charset}) as t, \
                    value_trainer(t, {"w": Value(np.ones(4, np.float32)), "v": None}, self.nodes()):
                self.at(t, self.LONG)
                t.expect(r"type Relu, .*number 5")
                t.console()
                t.command("graph-no-such", r"error")
                t.send("layout graph\r")
                t.expect(r"\\u\{202e\}|\?|x")
                if charset == "C":
                    self.assertEqual({byte for byte in t.raw if byte > 0x7e}, set())
                else:
                    t.expect("\u5c64")


if __name__ == "__main__":
    harness.main()
