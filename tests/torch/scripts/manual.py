# SPDX-License-Identifier: MIT
"""Linear regression by hand: no module, no optimizer, two tensors and a learning rate."""
import argparse

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--save")
    args = parser.parse_args()
    torch.manual_seed(10)
    torch.set_num_threads(1)
    x = torch.randn(64, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 3
    w = torch.zeros(3, 1, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    for _ in range(args.steps):
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for parameter in (w, b):
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
    print("loss %.4f" % loss.item())
    if args.save:
        torch.save({"w": w, "b": b}, args.save)


if __name__ == "__main__":
    main()
