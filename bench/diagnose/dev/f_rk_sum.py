# SPDX-License-Identifier: GPL-3.0-or-later
"""Data-parallel regression with hand-written communication."""
import argparse
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn


@dataclass
class Config:
    features: int = 10
    width: int = 32
    batch: int = 32
    steps: int = 80
    lr: float = 0.005


def share(model, rank):
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=0)


def reduce_gradients(model):
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    flat = torch.cat([g.reshape(-1) for g in grads])
    dist.all_reduce(flat)
    at = 0
    for g in grads:
        g.copy_(flat[at:at + g.numel()].view_as(g))
        at += g.numel()


def build(cfg):
    return nn.Sequential(nn.Linear(cfg.features, cfg.width), nn.Tanh(), nn.Linear(cfg.width, 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=Config.lr)
    args = parser.parse_args()
    cfg = Config(lr=args.lr)
    dist.init_process_group(backend="gloo")
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)
    model = build(cfg)
    share(model, rank)
    truth = torch.linspace(-1, 1, cfg.features)
    opt = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    for step in range(cfg.steps):
        x = torch.randn(cfg.batch, cfg.features)
        y = torch.sin(0.5 * x @ truth).unsqueeze(1) + 0.05 * torch.randn(cfg.batch, 1)
        opt.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        reduce_gradients(model)
        opt.step()
        if rank == 0 and step % 20 == 0:
            print(f"{step:4d} {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
