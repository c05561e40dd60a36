# SPDX-License-Identifier: MIT
"""Norms of gradients and updates: see ../norms.py."""
import torch

from .. import _lib, norms
from ..commands import CommandError
from . import commands
from .guard import guarded
from .swapping import Ref
from .values import is_opaque, outside_training


class Norms(norms.Norms):
    """Of PyTorch's optimizers."""
    refer = Ref

    @guarded
    def before(self, optimizer):
        """The optimizer is about to update its parameters."""
        if not self._is_opaque(optimizer):
            with outside_training():
                super().before(optimizer)

    @guarded
    def after(self, optimizer):
        """It has updated them."""
        if not self._is_opaque(optimizer):
            with outside_training():
                super().after(optimizer)

    def _is_opaque(self, optimizer):
        return any(is_opaque(one) or is_opaque(one.grad) for one in self.parameters(optimizer))

    def parameters(self, optimizer):
        """Its parameters."""
        return [parameter for group in optimizer.param_groups for parameter in group["params"]]

    def gradient(self, optimizer, parameter):
        """Its gradient, without the scale of GradScaler that a fused optimizer takes off itself."""
        gradient = parameter.grad
        if gradient is None:
            return None
        gradient = gradient.coalesce().values() if gradient.is_sparse else gradient
        scale = getattr(optimizer, "grad_scale", None)
        return gradient / scale.to(gradient.device) if isinstance(scale, torch.Tensor) else gradient

    def norm(self, tensors):
        """As torch.nn.utils.clip_grad_norm_ computes it."""
        found = [torch.linalg.vector_norm(tensor) for tensor in tensors]
        if len(found) == 1:
            return float(found[0])
        return float(torch.linalg.vector_norm(torch.stack([value.to(found[0].device, found[0].dtype)
                                                           for value in found])))

    def copy(self, parameter):
        """A copy of its value."""
        return parameter.detach().clone()

    def ratio(self, parameter, before):
        """The norm of the difference over the norm of what was before."""
        kind = torch.promote_types(parameter.dtype, torch.float32)
        change = torch.linalg.vector_norm(parameter.detach().to(kind) - before.to(kind))
        return float(change / torch.linalg.vector_norm(before.to(kind)))

    def parameter_of(self, node):
        """The parameter of a node, or of its gradient."""
        graph = self.agent.graph
        names = [node.name, node.name[:-5]] if node.name.endswith(".grad") else [node.name]
        for optimizer in self.optimizers():
            for parameter in self.parameters(optimizer):
                held = graph.holder(parameter)
                if held is not None and held.name in names:
                    return parameter
        return None

    def main(self):
        """The main optimizer; before the first step the only one."""
        main = self.agent.steps.main()
        every = self.optimizers()
        return main if main is not None or len(every) != 1 else every[0]

    def optimizers(self):
        """All optimizers."""
        every = (self.agent.optimizers.by_name(name) for name in self.agent.optimizers.names())
        return [optimizer for optimizer in every if optimizer is not None]

    def present(self):
        """The gradients after the optimizer's step, or between a backward pass and it."""
        steps = self.agent.steps
        if steps.is_between():
            return (steps.computed(), "") if steps.computed() > 0 else None
        if steps.phase == _lib.OPTIMIZER:
            return steps.step, ""
        if steps.phase == _lib.NO_PHASE and not steps.forward:
            return steps.step, "of the gradients so far, before the optimizer's step: the program may still clip them"
        return None

    def next_step(self):
        """The first step whose update has not begun."""
        steps = self.agent.steps
        return steps.step + (steps.phase == _lib.OPTIMIZER)

    def changed(self):
        """The native module does not run the hooks: the next steps are not idle."""
        happenings = self.agent.happenings
        happenings.off("step-end", _nothing)
        happenings.on("step-end", _nothing)

    def command(self, args):
        """Carries out the command."""
        for optimizer in self.optimizers():
            if any(hasattr(parameter, "_local_tensor") or hasattr(parameter, "local_shards")
                   for parameter in self.parameters(optimizer)):
                raise CommandError("the parameters are sharded over ranks: their norm needs communication, which gradb "
                                   "does not add to a training")
            if self._is_opaque(optimizer):
                raise CommandError("the values of the parameters are in other tensors, in a way that only the program "
                                   "knows: no norm can be computed")
        with outside_training():
            return super().command(args)


def _nothing(_kind, _info):
    pass


def _norms(agent, args, _node):
    return agent.norms.command(args)


commands.register("norms", _norms, "norms of gradients and updates as metrics (grad_norm, update_ratio(NODE))",
                  "NAME [NODE]")
