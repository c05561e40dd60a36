# SPDX-License-Identifier: MIT
"""A curve fitted with LBFGS, whose step calls a closure several times."""
import argparse

import torch
from torch import nn
import torch.nn.functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--save")
    args = parser.parse_args()
    torch.manual_seed(9)
    torch.set_num_threads(1)
    x = torch.linspace(-1, 1, 50)[:, None]
    y = torch.sin(3 * x)
    model = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(args.steps):
        loss = optimizer.step(closure)
    print("loss %.4f" % loss.item())
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
