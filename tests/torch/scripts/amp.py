# SPDX-License-Identifier: MIT
"""Training with a gradient scaler on the CPU (PyTorch 2.3 or newer). In round --overflow a batch with infinite
values comes in, as from a broken file: the scaler skips that step."""
import argparse

import torch
from torch import nn
import torch.nn.functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--overflow", type=int, default=3)
    parser.add_argument("--save")
    args = parser.parse_args()
    torch.manual_seed(8)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=4)
    for step in range(1, args.steps + 1):
        x = torch.randn(32, 4)
        y = x.sum(dim=1, keepdim=True)
        if step == args.overflow:
            y[0] = float("inf")
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        scaler.step(optimizer)
        scaler.update()
    print("loss %.4f scale %g" % (loss.item(), scaler.get_scale()))
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
