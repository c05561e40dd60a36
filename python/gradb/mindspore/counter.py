# SPDX-License-Identifier: MIT
"""MindSpore's operators for ../counting.py, in PyNative mode."""
import mindspore
from mindspore import ops

from . import values


class Counter:
    """The operators on the device that MindSpore uses."""

    def whole(self, x):
        """As int64."""
        return x.astype(mindspore.int64)

    def real(self, x):
        """As float64."""
        return x.astype(mindspore.float64)

    def is_whole(self, x):
        """Whether its elements are integers or bool."""
        return x.dtype not in values.FLOATS

    def constant(self, number):
        """A number of float64."""
        return mindspore.Tensor(number, mindspore.float64)

    def numbers(self, size):
        """0 ... size - 1."""
        return ops.arange(size)

    def isnan(self, x):
        """Integers have none."""
        return ops.isnan(self.real(x) if self.is_whole(x) else x)

    def argmax(self, x, axis):
        """As NumPy: devices treat NaN differently."""
        nan = self.isnan(x)
        found = ops.argmax(self.real(x).masked_fill(nan, float("-inf")), dim=axis)
        first = ops.argmax(self.real(nan), dim=axis)
        return self.whole(ops.where(nan.any(axis), first, found))

    def take(self, x, axis, index):
        """One element for each index along the axis."""
        return ops.gather_elements(x, axis, index)

    def most(self, x, axis):
        """The greatest along an axis, which stays."""
        return ops.amax(x, axis, keepdims=True)

    def apply(self, name, x):
        """A function of each element."""
        return getattr(ops, name)(x)

    def tally(self, index, size):
        """How often each number occurs."""
        counts = ops.zeros((size,), mindspore.int64)
        return ops.tensor_scatter_add(counts, index.reshape((-1, 1)), ops.ones_like(index))

    def join(self, found):
        """As one tensor of float64."""
        return ops.cat([self.real(x).reshape((-1,)) for x in found])
