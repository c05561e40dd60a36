# SPDX-License-Identifier: GPL-3.0-or-later
"""caught.py FILE: two attempts at the second step ask for too much and are caught; writes to FILE what is still
referenced after each: the frame that raised, and a tensor that it had made."""
import gc
import sys
import weakref

import torch

made = []


class Mark:
    """A local variable of a frame."""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)

    def forward(self, x):
        mark, hidden = Mark(), torch.tanh(self.first(x))
        if x.shape[0] > 4:
            made[:] = [weakref.ref(mark), weakref.ref(hidden)]
            hidden = hidden.repeat(1 << 40, 1)
        return hidden.sum()


net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    for batch in (4, 6, 5, 4, 4):
        try:
            optimizer.zero_grad()
            net(torch.ones(batch, 8)).backward()
            optimizer.step()
        except RuntimeError:
            pass
        gc.collect()
        if batch > 4:
            print(batch, [reference() is not None for reference in made], file=file)
