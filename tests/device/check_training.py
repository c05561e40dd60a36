#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training for device_check.py: python check_training.py DEVICE MODEL STEPS RESULT

Trains MODEL for STEPS timed steps after WARM_UP others, and writes to RESULT, as JSON: "seconds" of a timed step,
"counts" of what a step asked of the device (see count), "digest" of all weights at the end, and "told", what the first
steps computed, by step. Of model "nan", an operator's result becomes infinite in step 5. Needs only PyTorch."""
import contextlib
import hashlib
import json
import sys
import time

import torch
from torch import nn

WARM_UP = 12
COUNTED = 4  # steps
TOLD = 3     # steps of which numbers are told
NAMES = ("kernels", "copies", "waits")


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        """x: (batch, length, width)."""
        batch, length, width = x.shape
        query, key, value = self.project(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        mixed = torch.softmax(scores, dim=-1) @ value
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(torch.relu(self.wide(self.between(x))))


def make(model):
    """(net, inputs, classes) on the CPU."""
    torch.manual_seed(0)
    if model == "transformer":
        width, layers, batch, length = 128, 4, 8, 32
    elif model == "large transformer":
        width, layers, batch, length = 1024, 8, 16, 256
    else:
        net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
        return net, torch.randn(64, 64), torch.randint(0, 10, (64,))
    net = nn.Sequential(*(Block(width, width // 64) for _ in range(layers)), nn.Linear(width, 10))
    return net, torch.randn(batch, length, width), torch.randint(0, 10, (batch, length))


def module_of(kind):
    """torch.NAME of a type of device, or None."""
    return None if kind == "cpu" else getattr(torch, kind)


def finish(kind):
    """Waits for the device."""
    if kind != "cpu":
        module_of(kind).synchronize()


@contextlib.contextmanager
def count(kind, steps, into):
    """Fills `into`: how often a step launched a kernel, copied something to the host and waited for the device. By the
    emulated device's own counts, or by PyTorch's profiler of CUDA's calls; nothing for other devices."""
    emulated = sys.modules.get("_emulated")
    if kind != "cpu" and emulated is not None:
        emulated.reset_counts()
        yield
        found = emulated.counts()
        into.update(kernels=found["kernels"], copies=found["copies_to_host"],
                    waits=sum(number for name, number in found.items() if name.startswith("waits_")))
    elif kind == "cuda":
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            yield
        for event in profile.events():
            name = "kernels" if event.name.startswith(("cudaLaunchKernel", "cuLaunchKernel")) else \
                "copies" if event.name.startswith("Memcpy DtoH") else \
                "waits" if event.name in ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize") \
                else None
            if name:
                into[name] = into.get(name, 0) + 1
    else:
        yield
        return
    for name in NAMES:
        into[name] = into.get(name, 0) / steps


def main():
    """Trains."""
    kind, model, steps, result = sys.argv[1:]
    torch.set_default_device("cpu")  # what is random comes from the CPU's generator
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    net, inputs, classes = make(model)
    net, inputs, classes = net.to(kind), inputs.to(kind), classes.to(kind)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    told, counts, begun = {}, {}, 0.0
    total = WARM_UP + int(steps)
    first = next(net.parameters())

    def step(number):
        out = net(inputs) * (float("inf") if model == "nan" and number == 5 else 1.0)
        loss = nn.functional.cross_entropy(out.flatten(0, -2), classes.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number <= TOLD:
            there = first.detach().cpu().double()
            told[number] = {"loss": loss.item(), "min": there.min().item(), "max": there.max().item(),
                            "mean": there.mean().item()}

    for number in range(1, total + 1):
        if number == WARM_UP + 1:
            finish(kind)
            begun = time.perf_counter()
        step(number)
    finish(kind)
    seconds = (time.perf_counter() - begun) / max(1, int(steps))
    with count(kind, COUNTED, counts):
        for number in range(total + 1, total + COUNTED + 1):
            step(number)
    finish(kind)
    digest = hashlib.sha256(b"".join(one.detach().cpu().numpy().tobytes() for one in net.parameters())).hexdigest()
    with open(result, "w", encoding="ascii") as file:
        json.dump({"seconds": seconds, "counts": counts, "digest": digest, "told": told}, file)


if __name__ == "__main__":
    main()
