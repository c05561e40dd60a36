# SPDX-License-Identifier: MIT
"""Gradient accumulation over four micro-batches under autocast in bfloat16."""
import argparse

import torch
from torch import nn
import torch.nn.functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--micro", type=int, default=4)
    parser.add_argument("--save")
    args = parser.parse_args()
    torch.manual_seed(5)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    weights = torch.randn(16, 1)
    for _ in range(args.steps):
        optimizer.zero_grad()
        for _ in range(args.micro):
            x = torch.randn(32, 16)
            y = torch.sin(x @ weights)
            with torch.autocast(x.device.type, dtype=torch.bfloat16):
                prediction = model(x)
            loss = F.mse_loss(prediction.float(), y) / args.micro
            loss.backward()
        optimizer.step()
    print("loss %.4f" % (loss.item() * args.micro))
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
