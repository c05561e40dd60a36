# SPDX-License-Identifier: GPL-3.0-or-later
"""A training that wastes time in one way: tuning.py none|loader|item|shapes|casts|jitter STEPS. What it prints at the
end depends on every value that it computed."""
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

HOW, STEPS = sys.argv[1], int(sys.argv[2])
WIDTH = 997 if HOW == "shapes" else 256


class Samples(Dataset):
    """Random samples, each of which takes a moment to load where the loader is what wastes time."""

    def __len__(self):
        return 4 * STEPS

    def __getitem__(self, index):
        if HOW == "loader":
            time.sleep(0.002 + 0 * float(torch.zeros(1)))  # a dataset may read values
        if HOW == "jitter" and index % 4 == 0:
            time.sleep(0.1)
        generator = torch.Generator().manual_seed(index)
        return torch.randn(WIDTH, generator=generator), index % 10


class Net(nn.Module):
    """Two layers; with casts, each of them computes in another type than the next one."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(WIDTH, WIDTH)
        self.fc2 = nn.Linear(WIDTH, 16 if WIDTH == 256 else 10)

    def forward(self, x):
        """The logits."""
        x = torch.relu(self.fc1(x))
        if HOW == "casts":
            for _ in range(20):
                x = x.to(torch.float64).to(torch.float32)
        return self.fc2(x)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    total = torch.zeros(())
    if HOW in ("loader", "jitter"):
        batches = DataLoader(Samples(), batch_size=4, num_workers=2 if HOW == "jitter" else 0)
    else:
        batches = [(torch.randn(64, WIDTH), torch.randint(10, (64,)))] * STEPS
    for step, (x, labels) in enumerate(batches):
        loss = F.cross_entropy(net(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if HOW == "item":
            total += sum(parameter.grad.norm().item() for parameter in net.parameters())
        elif step % 20 == 0:
            total += loss.detach()
    print("total %.9g, weights %.9g" % (total, sum(parameter.detach().double().sum() for parameter in net.parameters())))


if __name__ == "__main__":
    main()
