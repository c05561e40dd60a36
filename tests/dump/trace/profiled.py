# SPDX-License-Identifier: GPL-3.0-or-later
"""A training that profiles itself, and writes what torch.profiler counts beside its traces: run by test_trace_torch.py
in each PyTorch."""
import json
import pathlib
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

OUT = pathlib.Path(sys.argv[1])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3)
        self.fc = torch.nn.Linear(4 * 6 * 6, 10)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).flatten(1))


torch.manual_seed(0)
torch.set_num_threads(1)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
data = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(64, 1, 8, 8), torch.randint(10, (64,))), batch_size=8)


def train(steps, after=lambda: None):
    for (x, y), _ in zip(data, range(steps)):
        with record_function("my part"):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        after()


def averages(done, **how):
    rows = []
    for event in done.key_averages(**how):
        rows.append([event.key, event.count, event.self_cpu_time_total, event.cpu_time_total, event.input_shapes])
    return rows


def export(name, done):
    done.export_chrome_trace(str(OUT / name))
    told = {"averages": averages(done), "shapes": averages(done, group_by_input_shape=True)}
    (OUT / (name + ".told")).write_text(json.dumps(told))


train(1)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as done:
    train(3)
export("plain.json", done)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True, with_modules=True) as done:
    train(2)
export("stack.json.gz" if len(sys.argv) < 3 else sys.argv[2], done)
handler = tensorboard_trace_handler(str(OUT / "board"), worker_name="worker0")
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
             on_trace_ready=handler, record_shapes=True) as done:
    train(8, done.step)
    train(2, done.step)
