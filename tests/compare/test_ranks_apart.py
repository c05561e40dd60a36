# SPDX-License-Identifier: GPL-3.0-or-later
"""first-divergence of two dumps of several ranks: each rank separately, then the earliest; a collective whose inputs
agree on every rank is the origin."""
import unittest

import harness
import numpy as np

RANKS = 2
NODES = [("Conv2D", "Default_conv1-Conv2d_Conv2D-op1"), ("AllReduce", "Default_AllReduce-op2"),
         ("ReLU", "Default_relu-ReLU_ReLU-op3"), ("MatMul", "Default_fc1-Dense_MatMul-op4")]


def write(root, wrong=None):
    """A MindSpore dump of two steps; `wrong`: {(step, rank, operator)}, whose outputs are off, as is everything
    computed from them."""
    random = np.random.RandomState(4)
    data = random.rand(2, RANKS, 64).astype(np.float32)  # of each step and rank
    for step in range(2):
        values = list(data[step])
        for number, (kind, name) in enumerate(NODES):
            inputs = [value.copy() for value in values]
            values = [sum(inputs)] * RANKS if kind == "AllReduce" else [value * 1.5 for value in inputs]
            for rank in range(RANKS):
                if (step, rank, kind) in (wrong or ()):
                    values[rank] = values[rank] + np.float32(0.25)
                folder = root / f"rank_{rank}" / "net" / "0" / str(step)
                folder.mkdir(parents=True, exist_ok=True)
                for io, value in (("input", inputs[rank]), ("output", values[rank])):
                    time = 1700000000000000 + (step * 100 + number) * 10
                    np.save(folder / f"{kind}.{name}.0.0.{time}.{io}.0.DefaultFormat.Float32.npy",
                            value.astype(np.float32))


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = harness.folder_of(cls)
        write(cls.root / "good")

    def found(self, name, wrong, *options):
        """The record of first-divergence, and its text."""
        write(self.root / name, wrong)
        line = " ".join(["first-divergence", str(self.root / name), str(self.root / "good"), *options])
        done = harness.run_gradb("-q", "-nx", "--json", "--batch", "-ex", line)
        record, = harness.records(done, "first-divergence")
        self.assertEqual(done.returncode, 6 if record["found"] else 0, done.stderr)
        return record, harness.run_gradb("-q", "-nx", "--batch", "-ex", line).stdout

    def test_a_collective_is_the_origin(self):
        """The exchange is off on both ranks, although its inputs are not."""
        record, text = self.found("exchange", {(1, 0, "AllReduce"), (1, 1, "AllReduce")})
        self.assertEqual((record["label"], record["op"], record["step"], record["rank"]),
                         ("ORIGIN", "AllReduce", 1, 0))
        self.assertEqual((record["inputs"], record["inputs_agree"]), (1, 1))
        self.assertIn("the collective differs", text)
        self.assertIn("in step 1", text)

    def test_the_earliest_of_all_ranks(self):
        """Rank 1 is off before the exchange, which passes it on to rank 0."""
        record, text = self.found("earlier", {(0, 1, "Conv2D")})
        self.assertEqual((record["label"], record["op"], record["step"], record["rank"]), ("ORIGIN", "Conv2D", 0, 1))
        self.assertIn("of rank 1", text)
        handed, _ = self.found("earlier", {(0, 1, "Conv2D")}, "--rank", "0")
        self.assertEqual((handed["op"], handed["rank"]), ("AllReduce", 0))
        self.assertEqual(handed["label"], "ORIGIN")  # as far as rank 0 knows

    def test_they_agree(self):
        record, text = self.found("same", None)
        self.assertFalse(record["found"])
        self.assertIn("No divergence", text)


if __name__ == "__main__":
    harness.main()
