# SPDX-License-Identifier: MIT
"""Lets the program swap what is in two tensors that we refer to. torch.utils.swap_tensors, which Module.to() and
load_state_dict() use for parameters of subclasses (DTensor), and for all where the program wants it, refuses tensors
with weak references: to the Python object, or to the TensorImpl of C++."""
import types
import weakref

import torch

from .guard import contained


class Ref(weakref.ref):
    """A weak reference of ours to a tensor; for other things than tensors weakref.ref will do."""
    __slots__ = ()


class Swapping:
    """Hides our references from swap_tensors. That lasts as long as the process, as references may outlive the agent's
    hooks."""

    def __init__(self, agent):
        self.agent = agent

    def install(self):
        """Replaces the module `weakref` in torch.utils, where only swap_tensors uses it."""
        if not hasattr(torch.utils, "swap_tensors"):
            return
        reference = weakref.ref(self)

        def getweakrefs(thing):
            swapping = reference()
            if swapping is not None:
                swapping.let_go(thing)
            return [one for one in weakref.getweakrefs(thing) if not isinstance(one, Ref)]
        torch.utils.weakref = types.SimpleNamespace(**dict(vars(weakref), getweakrefs=getweakrefs))

    @contained
    def let_go(self, tensor):
        """Something else will be in the tensor: it is not an operator's output any more."""
        agent = self.agent
        for _, _, node, slot in agent.graph.let_go(tensor):
            if node is not None:
                agent.live.let_go(node.id, slot, tensor)
        if agent.native is not None:
            agent.native.let_go(tensor._cdata)
