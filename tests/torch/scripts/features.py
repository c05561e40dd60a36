# SPDX-License-Identifier: MIT
"""A training that uses many parts of PyTorch at once, and writes a digest of all that it computed to a file."""
import copy
import hashlib
import io
import os
import pickle
import sys

import torch
from torch import nn
import torch.fx
import torch.nn.functional as F
import torch.utils.checkpoint as recompute
from torch.utils.data import DataLoader, IterableDataset


class Rows(IterableDataset):
    def __iter__(self):
        return iter(torch.linspace(-1, 1, 48).view(6, 8))


class Loader(DataLoader):
    """Keeps its iterator, as loaders with long-lived workers do."""

    def __iter__(self):
        self.iterator = super().__iter__()
        yield from self.iterator


class Fails(torch.optim.SGD):
    fails = False

    def step(self, closure=None):
        super().step(closure)
        if self.fails:
            raise RuntimeError("out of luck")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3), nn.Tanh()) for _ in range(2)])
        self.attention = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        for index, part in enumerate(self.parts):
            x = recompute.checkpoint(part, x, use_reentrant=index == 0)
        return self.last(self.attention(x[:, None])[:, 0])


class Loss(nn.Module):
    def forward(self, outputs, labels):
        return F.cross_entropy(outputs, labels) + F.mse_loss(outputs, torch.zeros_like(outputs))


def explore(net, loss, x, y):
    """What a script may do with its network and losses outside of a step."""
    net = copy.deepcopy(net).eval()
    outputs = net(x).detach()
    scripted, traced = torch.jit.script(loss), torch.jit.trace(loss, (outputs, y))
    found = [scripted.code, scripted(outputs, y), traced(outputs, y), torch.fx.symbolic_trace(loss).code]
    with torch.no_grad():
        found += [F.cross_entropy(input=outputs, target=y),
                  torch.binary_cross_entropy_with_logits(input=outputs[:, 0], target=torch.ones(len(y)))]
        found.append(torch.autograd.functional.jacobian(lambda w: F.mse_loss(w, torch.ones(3)), torch.zeros(3)))
        if hasattr(torch, "func"):
            found.append(torch.func.vmap(lambda w: F.mse_loss(w, torch.ones(3)))(torch.zeros(5, 3)))
    with torch.inference_mode():
        found.append(net(x))
    return found


def fit(found):
    line = nn.Linear(8, 1)
    optimizer = torch.optim.LBFGS(line.parameters(), max_iter=3)
    x = torch.randn(10, 8)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(line(x), x.sum(1, keepdim=True))
        loss.backward()
        return loss
    found.append(optimizer.step(closure).detach())


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    net, loss, found = Net(), Loss(), []
    optimizer = Fails(net.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for epoch in range(3):
        for x in Loader(Rows(), batch_size=2):
            y = torch.randint(0, 3, (2,))
            optimizer.zero_grad()
            with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=epoch == 1 and hasattr(torch, "func")):
                value = loss(net(x.requires_grad_()).float(), y)
            value.backward()
            optimizer.fails = epoch == 1
            try:
                optimizer.step()
            except RuntimeError as error:
                found.append(str(error))
            found.append(value.detach())
        scheduler.step()
        found += explore(net, loss, x.detach(), y)
        fit(found)
        torch.save(obj=(net.state_dict(), optimizer.state_dict()), f=io.BytesIO())
        pickle.loads(pickle.dumps((net, optimizer, scheduler)))
    found += [*net.parameters(), torch.get_rng_state(), torch._C._len_torch_dispatch_stack()]
    sums = hashlib.sha256()
    for item in found:
        sums.update(item.detach().numpy().tobytes() if isinstance(item, torch.Tensor) else str(item).encode())
    with open(sys.argv[1] + ".part", "w", encoding="utf-8") as file:
        file.write(sums.hexdigest())
    os.replace(sys.argv[1] + ".part", sys.argv[1])


main()
