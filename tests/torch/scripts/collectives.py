# SPDX-License-Identifier: MIT
"""Data-parallel training over gloo whose gradients the script reduces itself; start it with torchrun --nproc-per-node 2:
collectives.py HOW STEPS, with HOW: whole (all in one call that waits), each (one call for each of many small weights),
ahead (begun before other work, waited for after it), none."""
import sys

import torch
import torch.distributed as dist
from torch import nn


def reduce_whole(parameters):
    """All gradients in one call."""
    flat = torch.cat([parameter.grad.flatten() for parameter in parameters])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    place = 0
    for parameter in parameters:
        parameter.grad.copy_(flat[place:place + parameter.numel()].view_as(parameter))
        place += parameter.numel()


def reduce_each(parameters):
    """A call for each gradient."""
    for parameter in parameters:
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def reduce_ahead(parameters, work):
    """Begun together, and waited for after some other work."""
    begun = [dist.all_reduce(parameter.grad, async_op=True) for parameter in parameters]
    for _ in range(6):
        work @ work
    for handle, parameter in zip(begun, parameters):
        handle.wait()
        parameter.grad /= dist.get_world_size()


def train(how, steps):
    """Trains a stack of equal layers: large ones for `whole`, many small ones otherwise."""
    torch.manual_seed(7)
    width, layers = (1024, 4) if how == "whole" else (16, 24)
    model = nn.Sequential(*[layer for _ in range(layers) for layer in (nn.Linear(width, width), nn.Tanh())])
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    torch.manual_seed(100 + dist.get_rank())
    x, target, work = torch.randn(16, width), torch.randn(16, width), torch.randn(256, 256)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        if how == "whole":
            reduce_whole(parameters)
        elif how == "each":
            reduce_each(parameters)
        elif how == "ahead":
            reduce_ahead(parameters, work)
        optimizer.step()
    total = sum(parameter.double().sum().item() for parameter in parameters)
    gathered = [torch.zeros(1, dtype=torch.float64) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, torch.tensor([total], dtype=torch.float64))
    group = getattr(torch._C, "_distributed_c10d").ProcessGroup
    sys.stdout.write("rank %d weights %s, methods of %s\n" % (  # in one write: both ranks share the file
        dist.get_rank(), [value.item().hex() for value in gathered], type(vars(group)["allreduce"]).__name__))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train(sys.argv[1], int(sys.argv[2]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
