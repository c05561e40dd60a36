# SPDX-License-Identifier: GPL-3.0-or-later
"""probe_tables.py DIR: two dumps of each kind that msprobe knows (elements, statistics, checksums), and the tables
that msprobe itself makes of them: DIR/KIND/compare_result_*.csv. Run by a Python that has msprobe and PyTorch."""
import json
import math
import pathlib
import sys
import zlib

import torch
from msprobe.pytorch.compare.pt_compare import pt_compare


class Dump:
    """One side: what calls were given and made, as msprobe lays it out."""

    def __init__(self, folder, kind):
        self.folder, self.kind, self.data = folder, kind, {}
        (folder / "dump_tensor_data").mkdir(parents=True)

    def element(self, name, value):
        """A tensor or a plain value."""
        if not isinstance(value, torch.Tensor):
            return {"type": type(value).__name__, "value": value}
        logical = value.dtype == torch.bool
        wide = value if logical else value.double()
        one = {"type": "torch.Tensor", "dtype": str(value.dtype), "shape": list(value.shape),
               "Max": wide.max().item(), "Min": wide.min().item(), "Mean": None if logical else wide.mean().item(),
               "Norm": None if logical else wide.norm().item(), "requires_grad": False}
        if self.kind == "md5":
            one["md5"] = f"{zlib.crc32(value.numpy().tobytes()):08x}"
        if self.kind == "tensor":
            one["data_name"] = name + ".pt"
            torch.save(value, self.folder / "dump_tensor_data" / (name + ".pt"))
        return one

    def call(self, name, args, outputs, kwargs=None, parameters=None):
        """The network with the weights from the file."""
        call = {"input_args": [self.element(f"{name}.input.{i}", value) for i, value in enumerate(args)],
                "input_kwargs": {key: self.element(f"{name}.input.{key}", value)
                                 for key, value in (kwargs or {}).items()},
                "output": [self.element(f"{name}.output.{i}", value) for i, value in enumerate(outputs)]}
        if parameters:
            call["parameters"] = {key: self.element(f"{name}.parameters.{key}", value)
                                  for key, value in parameters.items()}
        self.data[name] = call

    def finish(self):
        """Writes its dump.json."""
        task = "tensor" if self.kind == "tensor" else "statistics"
        (self.folder / "dump.json").write_text(json.dumps({
            "task": task, "level": "mix", "framework": "pytorch",
            "dump_data_dir": str(self.folder / "dump_tensor_data"), "data": self.data}))


def calls(dump, x, target):
    """Calls that agree, and one for each rule of msprobe's; `target`: the side that is wrong."""
    near, nan, inf = x * 1.0002 if target else x, x.clone(), x.clone()
    far = x.flip(0) * 3 if target else x
    nan[1, 2] = math.nan
    inf[0, 1] = -math.inf if target else math.inf
    dump.call("Functional.linear.0.forward", [x, x + 1, 2.5], [near], {"mode": "fan", "count": 3, "on": True})
    dump.call("Module.net.fc1.Linear.forward.0", [x], [far], parameters={"weight": near, "bias": x[0]})
    dump.call("Torch.relu.0.forward", [x], [far, near])
    dump.call("Torch.exp.0.forward", [x], [nan if target else x])
    dump.call("Torch.log.0.forward", [inf], [inf, nan])
    dump.call("Torch.mul.0.forward", [x.half() if target else x, 1.5 if target else 1.0, x.half()],
              [(x * 1.5 if target else x).half()], {"mode": "a" if target else "b", "on": target})
    dump.call("Torch.add.0.forward", [x.int() if target else x, 4 if target else 5], [x])
    dump.call("Torch.sum.0.forward", [x, x[0, :1] * (3 if target else 1)], [near.sum(), (far * 1000).int()])
    dump.call("Torch.cat.0.forward", [x, x > 0], [x[:2] if target else x, far > 0])
    dump.call("Torch.zero.0.forward", [x * 0], [x if target else x * 0, x * 0])
    dump.call("Torch.sub.0.forward", [near], [x * 1.5 if target else x, x])
    dump.call("Torch.empty.0.forward", [x], [nan if target else x])
    dump.call("Distributed._all_gather_base.0.forward", [far], [nan if target else x])
    if target:
        dump.call("Torch.tanh.0.forward", [x], [x])
    else:
        dump.call("Torch.sin.0.forward", [x], [x])


def main():
    """Three kinds of dumps, and their tables."""
    torch.manual_seed(3)
    x = torch.randn(6, 5)
    for kind in ("tensor", "statistics", "md5"):
        sides = [pathlib.Path(sys.argv[1]) / kind / side / "step0" / "rank0" for side in ("npu", "bench")]
        for side in sides:
            dump = Dump(side, kind)
            calls(dump, x, side is sides[0])
            dump.finish()
        pt_compare({"npu_path": str(sides[0] / "dump.json"), "bench_path": str(sides[1] / "dump.json"),
                    "is_print_compare_log": False}, str(pathlib.Path(sys.argv[1]) / kind))


if __name__ == "__main__":
    main()
