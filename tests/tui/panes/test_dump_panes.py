# SPDX-License-Identifier: GPL-3.0-or-later
"""The panes over a dump: what was not dumped is marked, and nothing is said that holds for a training alone."""
import sys
import unittest

import numpy as np

import harness
from terminal import NEXT_PANE, Terminal

sys.path.append(str(harness.SOURCE / "tests" / "dump"))
import cann_writer  # noqa: E402
import ms_writer  # noqa: E402

STAMP = 1700000000000000
RC = "set recommend off\nbind F5 focus console\n"
GRAPH = """graph { name: "ge_default_1"
  op { name: "data" type: "Iterator" id: 0 output_desc { dtype: DT_FLOAT shape { dim: 2 } } }
  op { name: "first" type: "Add" input: "data:0" id: 1 output_desc { dtype: DT_FLOAT shape { dim: 2 } } }
  op { name: "order" type: "NoOp" input: "first:-1" id: 2 attr { key: "_no_task" value { b: true } } }
  op { name: "second" type: "Mul" input: "first:0" id: 3 output_desc { dtype: DT_FLOAT shape { dim: 2 } } } }
"""


class DumpTerminal(Terminal):
    """Commands are typed wherever the focus is."""

    def command(self, line, pattern):
        self.send("\x1b[[E")
        self.wait("the prompt", lambda: not self.screen.cursor.hidden)
        super().command(line, pattern)


class Dump(unittest.TestCase):
    def setUp(self):
        self.dir = harness.folder_of(self)

    def cann(self):
        """Three steps of two operators beside their graph, one of them in the second alone."""
        (self.dir / "graph" / "pid_1_deviceid_0").mkdir(parents=True)
        (self.dir / "graph" / "pid_1_deviceid_0" / "ge_proto_00000001_Build.txt").write_text(GRAPH)
        value = cann_writer.Tensor(np.array([1, 2], "<f4"), "FLOAT", "ND", (2,), (2,))
        for step in (0, 1, 2):
            where = self.dir / "dump" / "20230101010101" / "0" / "ge_default_1" / "11" / str(step)
            where.mkdir(parents=True)
            data = cann_writer.container([value], [value])
            (where / f"Add.first.5.1.{STAMP + step}").write_bytes(data)
            if step == 1:
                (where / f"Mul.second.6.1.{STAMP + step}").write_bytes(data)

    def test_what_was_not_dumped(self):
        self.cann()
        with DumpTerminal(look_at=self.dir, rc=RC) as t:
            t.command("layout graph", r"^ +data Iterator .*\n +first Add .*\n +order \(no value\) NoOp ")
            t.expect(r"^ +second \(no value\) Mul ")
            t.send(NEXT_PANE + "jj")
            t.expect(r"│nothing was dumped: the device has no")
            t.command("step", r"^ +second Mul ")
            t.command("continue", r"^ +second \(no value\) Mul ")
            t.expect(r"^ gradb .*  step 2  ")
            self.assertNotIn("steps/s", t.text())
            t.command("node order", r"^order \(NoOp\)")
            t.command("focus history", r"│No step of the dump contains values of it\.")
            t.command("node first", r"^first \(Add\)")
            t.command("layout stack", r"^The dump has no stack for")
            t.command("backtrace", r"^error: the dump has no stack for first")

    def test_statistics_of_ranks(self):
        """Hits are of a rank, and the past of inputs goes by their names."""
        rng = np.random.default_rng(1)
        for rank in range(3):
            for step in range(3):
                table = ms_writer.Statistic(ms_writer.ALL[:10], True)
                value = rng.standard_normal((4, 8)).astype("f4")
                value[0, 0] = np.nan if (rank, step) == (2, 1) else 0
                table.add("MatMul", "net/MatMul-op1", STAMP, "input", 0, value)
                table.add("MatMul", "net/MatMul-op1", STAMP, "output", 0, value)
                table.write(self.dir / f"rank_{rank}" / "net" / "0" / str(step))
        with DumpTerminal(rows=43, cols=132, look_at=self.dir, rc=RC) as t:
            t.command("layout split", r"hits of 3 ranks")
            t.command("watch TO on all", r"^Watchpoint 1")
            t.command("scan", r"│net/MatMul-op1 step 1 *\n.*│[* ]1 +r2 +1 TO  :0 *$")
            t.command("rank 2", r"^\[Training process 3, rank 2 of 3")
            t.command("hit 1", r"│>1 +r2 +1 TO  :0")
            t.expect(r"│net/MatMul-op1:0 \(4, 8\), steps 0 to 2")
            t.expect(r"│net/MatMul-op1:in0 \(4, 8\), steps 0 to 2")
            t.expect(r"^ gradb  MindSpore  rank 2 of 3  step 1  stopped ")


if __name__ == "__main__":
    harness.main()
