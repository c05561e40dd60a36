# SPDX-License-Identifier: MIT
"""Norms of gradients and updates: see ../norms.py. Compiled code shows no gradients, only what it made of the
parameters."""
import numpy
from mindspore import dtype

from .. import norms
from . import commands
from .guard import guarded


class Norms(norms.Norms):
    """Of MindSpore's optimizers. The values are computed on the host."""

    @guarded
    def before(self, optimizer):
        """The optimizer is about to update its parameters."""
        super().before(optimizer)

    @guarded
    def after(self, optimizer):
        """It has updated them."""
        super().after(optimizer)

    @guarded
    def before_any(self, optimizers):
        """Code runs that may call the optimizers."""
        super().before_any(optimizers)

    def parameters(self, optimizer):
        """Its parameters."""
        return list(optimizer.parameters)

    def gradient(self, optimizer, parameter):
        """Its gradient of the running step."""
        found = self.agent.parameters.gradients.get(id(parameter))
        return _host(found) if hasattr(found, "asnumpy") else None

    def norm(self, tensors):
        """As mindspore.ops.clip_by_global_norm computes it."""
        return float(numpy.sqrt(sum(float(numpy.linalg.norm(tensor)) ** 2 for tensor in tensors)))

    def copy(self, parameter):
        """A copy of its value."""
        return _host(parameter).copy()

    def ratio(self, parameter, before):
        """The norm of the difference over the norm of what was before."""
        with numpy.errstate(all="ignore"):
            return float(numpy.linalg.norm(_host(parameter) - before) / numpy.float64(numpy.linalg.norm(before)))

    def parameter_of(self, node):
        """The parameter of a node, or of its gradient."""
        for known, _ in self.agent.parameters.living():
            for reference, weight, gradient, _ in known.updates:
                if node in (weight, gradient):
                    return reference()
        return None

    def main(self):
        """The main optimizer; before the first step the only one."""
        _, main = self.agent.steps.main()
        every = self.optimizers()
        return main if main is not None or len(every) != 1 else every[0]

    def optimizers(self):
        """All optimizers."""
        return [optimizer for _, optimizer in self.agent.parameters.living()]

    def present(self):
        """The gradients after the optimizer's step."""
        steps = self.agent.steps
        return (steps.computed(), "") if steps.is_between() and steps.computed() > 0 else None

    def unseen(self):
        """Why no gradient can be seen."""
        return "" if self.agent.gives_gradients else self.agent.why_no_gradient()

    def next_step(self):
        """The first step whose update has not begun."""
        steps = self.agent.steps
        return steps.computed() + 1


def _host(tensor):
    """The values as an array of float64."""
    tensor = tensor.astype(dtype.float32) if tensor.dtype == dtype.bfloat16 else tensor
    return tensor.asnumpy().astype(numpy.float64).ravel()


def _norms(agent, args, _node):
    return agent.norms.command(args)


commands.register("norms", _norms, "norms of gradients and updates as metrics (grad_norm, update_ratio(NODE))",
                  "NAME [NODE]")
