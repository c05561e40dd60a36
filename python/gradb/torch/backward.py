# SPDX-License-Identifier: MIT
"""Backward nodes: the autograd engine's run_backward is wrapped, and the graph of grad_fn that it is about
to walk gets hooks. A grad_fn inherits scope and stack of the operator that made it, or of the one that it is
an inner part of."""
import torch

_KEY = "gradb"  # in grad_fn.metadata


class Mark:
    """What an operator leaves on its grad_fn: scope, name, the node's number, and the stack."""
    __slots__ = ("scope", "operator", "node", "stack")

    def __init__(self, scope, operator, node, stack):
        self.scope = scope
        self.operator = operator
        self.node = node
        self.stack = stack


def mark(tensor, value):
    """Leaves a mark on the grad_fn of an operator's output."""
    grad_fn = tensor.grad_fn
    if grad_fn is not None:
        grad_fn.metadata[_KEY] = value


class Step:
    """One grad_fn of a pass, as its hook finds it."""
    __slots__ = ("type", "mark", "variable", "incoming", "node")

    def __init__(self, grad_fn, inherited):
        self.type = grad_fn.name().rsplit("::", 1)[-1]
        self.mark = inherited
        self.variable = getattr(grad_fn, "variable", None)  # of AccumulateGrad: the leaf
        self.incoming = []  # (Step, slot) whose results are its inputs
        self.node = None    # once it has run

    def inputs(self):
        """(node number, slot) pairs of those that ran before it."""
        return [(step.node.id, slot) for step, slot in self.incoming if step.node is not None]


class _Engine:
    """Stands in for torch.autograd.Variable._execution_engine."""

    def __init__(self, engine, backward):
        self._engine = engine
        self._backward = backward

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def run_backward(self, tensors, *args, **kwargs):
        finish = self._backward.begin(tensors, args, kwargs)
        try:
            return self._engine.run_backward(tensors, *args, **kwargs)
        finally:
            finish()


class Backward:
    """Hooks the passes; nested ones (double backward) are seen, too."""

    def __init__(self, agent):
        self._agent = agent
        self._original = None
        self._engine = None

    def install(self):
        """Wraps the engine."""
        variable = torch.autograd.Variable
        self._original = variable._execution_engine
        self._engine = _Engine(self._original, self)
        variable._execution_engine = self._engine

    def remove(self):
        """Takes the wrapper off, unless somebody wrapped after us: then it passes through."""
        variable = torch.autograd.Variable
        if self._engine is not None and variable._execution_engine is self._engine:
            variable._execution_engine = self._original
        self._engine = None

    def begin(self, tensors, args, kwargs):
        """Before a pass, with run_backward's arguments: puts hooks on what it will run, when somebody looks. Returns what ends it."""
        agent = self._agent
        handles = []
        accumulates = kwargs.get("accumulate_grad", True)
        if agent.steps.backward_begins(tensors, args[0] if args else None, accumulates):
            try:
                self._hook_all(tensors, handles)
            except Exception as error:
                agent.fault(error)

        def finish():
            for handle in handles:
                handle.remove()
            agent.steps.backward_ended(accumulates)
        return finish

    def _hook_all(self, tensors, handles):
        if isinstance(tensors, torch.Tensor):
            tensors = (tensors,)
        steps = {}
        waiting = [(tensor.grad_fn, None) for tensor in tensors if tensor.grad_fn is not None]
        while waiting:
            grad_fn, inherited = waiting.pop()
            if grad_fn in steps:
                continue
            own = steps[grad_fn] = Step(grad_fn, grad_fn.metadata.get(_KEY, inherited))
            waiting.extend((following, own.mark) for following, _ in grad_fn.next_functions
                           if following is not None and following not in steps)
        for grad_fn, own in steps.items():
            for slot, (following, _) in enumerate(grad_fn.next_functions):
                if following is not None:
                    steps[following].incoming.append((own, slot))
        for grad_fn, own in steps.items():
            handles.append(grad_fn.register_hook(self._hook(own)))

    def _hook(self, own):
        ran = self._agent.telling.backward_ran

        def hook(grad_inputs, _):
            ran(own, grad_inputs)
        return hook
