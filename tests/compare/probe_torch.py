# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of net_torch.py as msprobe dumps it, once correct and once for each of its faults.

Usage: probe_torch.py VALUES.npz DIR NAME...: a fault, "none", or "bfloat16". Dumps are written to DIR/NAME.
"""
import json
import os
import pathlib
import sys

import net_torch
import numpy
import torch
from msprobe.pytorch import PrecisionDebugger

STEPS = 2


def dump(values, folder, name):
    """Two steps of training, in a process of its own: it can have one debugger."""
    folder.mkdir(parents=True)
    config = folder / "config.json"
    config.write_text(json.dumps({
        "task": "tensor", "dump_path": str(folder / "dump"), "rank": [], "step": [], "level": "mix",
        "tensor": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}}))
    dtype = torch.bfloat16 if name == "bfloat16" else torch.float32
    net = net_torch.make(values, name).to(dtype)
    debugger = PrecisionDebugger(config_path=str(config))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(STEPS):
        debugger.start(net)
        optimizer.zero_grad()
        x = torch.from_numpy(values["x"][step]).to(dtype)
        torch.nn.CrossEntropyLoss()(net(x), torch.from_numpy(values["y"][step]).long()).backward()
        optimizer.step()
        debugger.stop()
        debugger.step()


def main():
    """One dump after the other."""
    values = dict(numpy.load(sys.argv[1]))
    torch.set_num_threads(1)
    for name in sys.argv[3:]:
        child = os.fork()
        if child == 0:
            dump(values, pathlib.Path(sys.argv[2]) / name, name)
            sys.exit()
        if os.waitpid(child, 0)[1] != 0:
            raise SystemExit(f"{name}: no dump")


if __name__ == "__main__":
    main()
