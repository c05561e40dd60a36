# SPDX-License-Identifier: MIT
"""PyTorch's operators for ../counting.py. None of them waits for the device: no bincount, which reads the maximum, and
no selection by a mask, which reads its count."""
import torch


class Counter:
    """The operators on one device."""
    argmax = staticmethod(torch.argmax)
    isnan = staticmethod(torch.isnan)
    take = staticmethod(torch.gather)

    def __init__(self, device):
        self.device = device

    def whole(self, x):
        """As int64."""
        return x.to(torch.int64)

    def real(self, x):
        """As float64."""
        return x.to(torch.float64)

    def is_whole(self, x):
        """Whether its elements are integers or bool."""
        return not x.is_floating_point()

    def constant(self, number):
        """A number of float64."""
        return torch.full((), number, dtype=torch.float64, device=self.device)

    def numbers(self, size):
        """0 ... size - 1."""
        return torch.arange(size, device=self.device)

    def most(self, x, axis):
        """The greatest along an axis, which stays."""
        return torch.amax(x, axis, keepdim=True)

    def apply(self, name, x):
        """A function of each element."""
        return getattr(torch, name)(x)

    def tally(self, index, size):
        """How often each number occurs; deterministic everywhere."""
        counts = torch.zeros(size, dtype=torch.int64, device=self.device)
        return counts.index_put_((index,), torch.ones_like(index), accumulate=True)

    def join(self, found):
        """As one tensor of float64."""
        return torch.cat([self.real(x).reshape(-1) for x in found])
