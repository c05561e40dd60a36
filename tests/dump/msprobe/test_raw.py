# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of raw elements, as msprobe saves them for whole graphs on Ascend: with and without a table of their shapes,
too short, of unknown type; and kernels dumped into a step's directory."""
import pathlib
import tempfile
import unittest

import harness
import numpy as np
from ms_writer import WholeGraphStatistic
from dumptool import gradb


class Raw(unittest.TestCase):
    def test_elements_alone(self):
        with tempfile.TemporaryDirectory(prefix="gradb-raw-") as home:
            step = pathlib.Path(home) / "rank_0" / "20240101000000" / "step_3"
            step.mkdir(parents=True)
            values = np.arange(6, dtype="f4").reshape(2, 3) - 2.5
            table = WholeGraphStatistic()
            for name, shown in (("Whole-op1", values), ("Short-op2", np.zeros((5, 5), "f4"))):
                table.add("Add", f"Default_{name}", 17, "output", 0, shown)
            table.write(step)
            for name, data in (("Whole-op1", values), ("Short-op2", values), ("Alone-op3", values)):
                (step / f"Add.Default_{name}.5.1.17.output.0.ND.FLOAT").write_bytes(data.tobytes())
            (step / "Add.Default_Half-op4.5.1.17.input.1.ND.BF16").write_bytes(b"\xc0\x3f\x00\xc0")
            (step / "Add.Default_Odd-op5.5.1.17.output.0.ND.WHAT").write_bytes(b"1234")
            text = gradb(home, *[f"print Default_{name}:0" for name in ("Whole-op1", "Short-op2", "Alone-op3")],
                         "print Default_Half-op4:in1", f"save Default_Whole-op1:0 {home}/out.npy", "info formats")
            np.testing.assert_array_equal(np.load(home + "/out.npy"), values)
        self.assertRegex(text, r"Default_Whole-op1:0\nfloat32 \(2, 3\)")
        self.assertRegex(text, r"(?s)Default_Short-op2:0\nfloat32 \(6,\).*fewer elements than its table says")
        self.assertRegex(text, r"(?s)Default_Alone-op3:0\nfloat32 \(6,\).*no table gives their shape")
        self.assertRegex(text, r"(?s)bfloat16 \(2,\).*\[ ?1\.5 +-2\. ?\]")
        self.assertRegex(text, r"(?s)Odd-op5.*WHAT")


if __name__ == "__main__":
    harness.main()
