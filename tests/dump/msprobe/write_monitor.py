# SPDX-License-Identifier: GPL-3.0-or-later
"""write_monitor.py DIR: three steps of a small network observed by msprobe's own monitors, the first in DIR/first, the
second in DIR/second, and PyTorch's norms of the gradients in DIR/kept.json."""
import json
import os
import pathlib
import sys


def main():
    """Both monitors, one after the other."""
    folder = pathlib.Path(sys.argv[1])
    (folder / "second").mkdir(parents=True)
    os.environ["MONITOR_OUTPUT_DIR"] = str(folder / "first")  # read when the module is imported

    import torch
    from msprobe.core.monitor_v2 import TrainerMonitorV2
    from msprobe.pytorch import TrainerMon
    from torch import nn

    def train(prepare, after, kept):
        torch.manual_seed(0)
        net = nn.Sequential()
        net.add_module("fc1", nn.Linear(4, 8))
        net.add_module("fc2", nn.Linear(8, 2))
        optimizer = torch.optim.Adam(net.parameters())
        prepare(net, optimizer)
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.randn(5, 4)).square().mean().backward()
            kept.append(net.fc1.weight.grad.norm().item())
            optimizer.step()
            after()

    first, second = folder / "first.json", folder / "second.json"
    first.write_text(json.dumps({
        "targets": {}, "format": "csv", "ops": ["norm", "min", "max", "zeros", "nans", "mean", "shape", "dtype"],
        "module_ranks": [], "xy_distribution": True, "all_xy": True, "wg_distribution": True, "mv_distribution": True,
        "param_distribution": True, "step_count_per_record": 2,
        "alert": {"rules": [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.0001}}], "dump": True}}))
    second.write_text(json.dumps({
        "framework": "pytorch", "output_dir": str(folder / "second"), "patch_optimizer_step": False,
        "monitors": {"module": {"enabled": True, "targets": []}, "weight_grad": {"enabled": True},
                     "param": {"enabled": True}, "optimizer": {"enabled": True}}}))
    kept = []
    monitor = TrainerMon(str(first), params_have_main_grad=False)
    train(lambda net, optimizer: monitor.set_monitor(net, grad_acc_steps=1, optimizer=optimizer), lambda: None, kept)
    other = TrainerMonitorV2(str(second))
    train(other.start, other.step, [])
    other.stop()
    (folder / "kept.json").write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
