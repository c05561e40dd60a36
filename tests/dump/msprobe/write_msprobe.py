# SPDX-License-Identifier: GPL-3.0-or-later
"""write_msprobe.py DIR: a small network dumped by msprobe itself: its tensors, and statistics with digests; and the
same tensors from PyTorch as .npy."""
import json
import pathlib
import sys

import numpy as np
import torch
from msprobe.pytorch import PrecisionDebugger
from torch import nn


class Net(nn.Module):
    """Two layers."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.fc2 = nn.Linear(8, 2)

    def forward(self, x):
        """For a batch."""
        return self.fc2(torch.relu(self.fc1(x)))


def train(debugger, kept):
    """Two steps, the second of which ends in infinities. The expected values go to `kept`."""
    torch.manual_seed(1)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(2):
        debugger.start(net)
        x = torch.randn(3, 4)
        kept[f"{step}.x"] = x
        kept[f"{step}.weight"] = net.fc1.weight.detach().clone()
        out = net(x)
        kept[f"{step}.out"] = out.detach().clone()
        if step == 1:
            out = out / 0.0
        loss = (out * out).mean()
        loss.backward()
        kept[f"{step}.grad"] = net.fc1.weight.grad.detach().clone()
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()


def main():
    """One dump: `tensor` or `statistics`; a process can have one debugger."""
    folder, task = pathlib.Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True)
    options = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "md5"}
    if task == "tensor":
        options["summary_mode"] = "statistics"
    config = folder / "config.json"
    config.write_text(json.dumps({"task": task, "dump_path": str(folder / "dump"), "rank": [], "step": [],
                                  "level": "mix", task: options}))
    kept = {}
    train(PrecisionDebugger(config_path=str(config)), kept)
    np.savez(folder / "kept.npz", **{name: tensor.numpy() for name, tensor in kept.items()})


if __name__ == "__main__":
    main()
