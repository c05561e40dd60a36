# SPDX-License-Identifier: GPL-3.0-or-later
"""Dumps of ptdbg_ascend, versions 1 to 6, and API info files, from an independent writer."""
import json
import unittest
import zlib

import harness
import numpy as np
from dumptool import gradb

rng = np.random.default_rng(11)


def record(name, values, norm=True, marker=1, md5=False):
    """A line of the .pkl, as Python's encoder writes it."""
    figures = [float(values.max()), float(values.min()), float(values.mean())]
    figures += [float(np.linalg.norm(values))] if norm else []
    return json.dumps([name, marker, f"{zlib.crc32(values.tobytes()):08x}" if md5 else [], f"torch.{values.dtype}",
                       list(values.shape), [] if md5 else figures])


def put(stem, lines, arrays):
    """A .pkl and the directory of the same stem."""
    stem.mkdir(parents=True)
    for name, values in arrays.items():
        np.save(stem / f"{name}.npy", values)
    stem.with_name(stem.name + ".pkl").write_text("\n".join(lines) + "\n\n")


class Ptdbg(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = harness.folder_of(cls)

    def check(self, root, name, values, *commands):
        """The tensor bit for bit; the text of the other commands."""
        out = self.dir / "read.npy"
        out.unlink(missing_ok=True)
        text = gradb(root, *commands, f"save {name} {out}")
        read = np.load(out)
        self.assertEqual((read.dtype, read.shape, read.tobytes()), (values.dtype, values.shape, values.tobytes()))
        return text

    def test_layouts_of_all_versions(self):
        values = rng.standard_normal((3, 2)).astype("f4")
        name = "Tensor___add___1_forward_output"
        stack = json.dumps(["Tensor___add___1_forward_stack_info",
                            [["/net.py", "33", "forward", "return x + y"], ["/lib/module.py", "7", "call", None], ""]])
        lines = [stack, record(f"{name}.0", values, norm=False)]
        for place in ("t_v1.0/rank1/anonymous", "ptdbg_dump_v2.0/rank1/api_stack_dump", "t_v3.0/step4/rank1/dump",
                      "step4/t_v3.0/rank1/dump", "t_v4.0/step4/rank1/dump"):
            root = self.dir / place.replace("/", "+")
            put(root / place, lines, {f"{name}.0": values})
            text = self.check(root, f"{name[:-7]}:0", values, f"backtrace {name[:-7]}", f"info node {name[:-7]}")
            self.assertRegex(text, rf"1 nodes?, step {4 if 'step4' in place else 0}\b", place)
            self.assertRegex(text, r"/net\.py:33 in forward\n +return x \+ y")
        root = self.dir / "v6"
        put(root / "d_v6.0" / "step2" / "rank0" / "dump",
            [record("Functional.linear.0.forward.input.0", values), record("Functional.linear.0.forward.output", values),
             record("Functional.linear.0.forward.input.kwargs.bias", values, md5=True)],
            {"Functional.linear.0.forward.input.0": values})
        text = self.check(root, "Functional.linear.0.forward:in0", values, "stats Functional.linear.0.forward",
                          "info formats")
        self.assertRegex(text, rf"L2 norm +{np.linalg.norm(values):.4f}"[:-1])
        self.assertRegex(text, r"ptdbg +1 .*whose lines are arrays of JSON")

    def test_overflow_not_finite_and_broken(self):
        root = self.dir / "overflow"
        values = np.array([1, np.inf], "f2")
        put(root / "d_v4.0" / "step0" / "rank0" / "Torch_exp_0_forward_1",
            [json.dumps(["Torch_exp_0_forward_stack_info", [["/a.py", "3", "f", None]]]),
             '["Torch_exp_0_forward_output", 101, [], "torch.float16", [2], [Infinity, NaN, -Infinity, "Nan"]]',
             '["Torch_sum_0_forward_output", 1, [], "torch.float32", [2], [1.0, -1.0, 0.0', "{}", "[1, 2]", '["x"]',
             '["Torch_abs_0_forward_input.0", 1, [], "<class \'float\'>", "[]", [3.5, 3.5, 3.5, 3.5]]',
             '["nothing", 1, [], "torch.float32", [99999999999999999999, -3], [[], [], [], "Nan"]]'],
            {"Torch_exp_0_forward_output": values, "Torch_late_0_forward_input.1": values})
        text = self.check(root, "Torch_exp_0_forward", values, "info events", "info formats", "tensors")
        self.assertRegex(text, r"ptdbg_ascend found an overflow here")
        for line, what in ((3, "too early|ends"), (4, "begins with a name"), (5, "begins with a name"),
                           (8, "neither a tensor")):
            self.assertRegex(text, rf"line {line}: .*({what})")
        self.assertRegex(text, r"Torch_late_0_forward:in1")

    def test_api_info(self):
        root = self.dir / "info"
        (root / "forward_real_data" / "rank5").mkdir(parents=True)
        values = rng.standard_normal(4).astype("f8")
        np.save(root / "forward_real_data" / "rank5" / "Torch_mul_0_forward.0.npy", values)
        tensor = {"type": "torch.Tensor", "datapath": "forward_real_data/rank5/Torch_mul_0_forward.0.npy",
                  "requires_grad": True}
        figures = {"type": "torch.Tensor", "dtype": "torch.float16", "shape": [2, 2], "Max": 4.0, "Min": -1.0}
        forward = json.dumps({"Torch_mul_0_forward": {"args": [tensor, [figures, {"type": "int", "value": 3}]],
                                                      "kwargs": {"out": figures}}})
        (root / "forward_info_77.json").write_text(forward[:-1])  # the crash came before the last brace
        (root / "backward_info_77.json").write_text(json.dumps({"Torch_mul_0_backward": [figures]}))
        (root / "stack_info_77.json").write_text(
            json.dumps({"Torch_mul_0_forward": ["File /m.py, line 9, in run, \n z = x * y"]}))
        text = self.check(root, "Torch_mul_0_forward:in0", values, "info node Torch_mul_0_forward",
                          "backtrace Torch_mul_0_forward", "stats Torch_mul_0_backward:in0", "info formats")
        self.assertRegex(text, r"(?s)slot in\d.*kwargs\.out")
        self.assertRegex(text, r"/m\.py:9 in run\n +z = x \* y")
        self.assertRegex(text, r"(?s)float16 \(2, 2\)\n.*min +-1\n +max +4\n")
        self.assertRegex(text, r"forward_info_77\.json.*ends unexpectedly")


if __name__ == "__main__":
    harness.main()
