# SPDX-License-Identifier: MIT
"""Optimizers: hooks before and after each step, their nodes and those of their state.

An optimizer is named after its class, the second one of a class `Adam_1`. Each parameter that it updates is a node
`optimizer/Adam/model/fc1/weight`, and each tensor of its state a node below: `....weight.exp_avg`."""
import collections
import functools
import weakref

import torch

from .. import _lib, native
from . import regions, stack, values, variables
from .guard import apart, contained, guarded
from .swapping import Ref

try:
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
except ImportError:  # before 2.0
    register_optimizer_step_post_hook = register_optimizer_step_pre_hook = None


class Optimizers:
    """Hooks all optimizers, including those that exist already."""

    def __init__(self, agent):
        self.agent = agent
        self.searched = False  # existing optimizers were searched for
        self._handles = []
        self._handed = False   # hooks are the native module's, see hand_over
        self._zero_grad = ()   # our function, and PyTorch's
        self._wrapped = []     # (class, original, wrapper), where PyTorch has no hooks
        self._replaced = []    # (name, original, wrapper), of Optimizer
        self._told = {}        # id(parameter) -> _Told
        self._end = None       # ends the observation of allocations in a step
        self._names = {}       # name -> weak reference
        self._copies = weakref.WeakSet()  # optimizers that were copied or unpickled
        self._made_at = weakref.WeakKeyDictionary()  # optimizer -> (code, line) where it was made, or None
        self.made_rates = weakref.WeakKeyDictionary()    # optimizer -> the rates of its groups when it was made
        self.loaded_rates = weakref.WeakKeyDictionary()  # optimizer -> those of the last state that it loaded

    # ---- hooks ----

    def install(self):
        """Installs the hooks."""
        kind = torch.optim.Optimizer
        made, copied, sets_back = kind.__init__, kind.__setstate__, kind.zero_grad
        optimizers, agent = self, self.agent

        @functools.wraps(made)
        def __init__(optimizer, *args, **kwargs):
            made(optimizer, *args, **kwargs)
            optimizers.made(optimizer)

        @functools.wraps(copied)
        def __setstate__(optimizer, state):
            if not vars(optimizer):  # else: it exists, and loads a state
                optimizers.copied(optimizer)
            copied(optimizer, state)
            optimizers.loaded_rates[optimizer] = _rates_of(optimizer)

        @functools.wraps(sets_back)
        def zero_grad(optimizer, *args, **kwargs):
            if regions.is_compiling():
                return sets_back(optimizer, *args, **kwargs)
            call = agent.unintercepted if agent.watching else _plainly
            result = call(sets_back, optimizer, *args, **kwargs)
            if agent.observation.on:
                optimizers.zeroed(optimizer)
            return result
        self._replaced = [("__init__", made, __init__), ("__setstate__", copied, __setstate__),
                          ("zero_grad", sets_back, zero_grad)]
        self._zero_grad = zero_grad, sets_back
        for name, _, wrapper in self._replaced:
            setattr(torch.optim.Optimizer, name, wrapper)
        if register_optimizer_step_post_hook is not None:
            self._handles = [register_optimizer_step_pre_hook(self.before),
                             register_optimizer_step_post_hook(self.after)]
            self.hook_again()
            return
        for kind in _subclasses(torch.optim.Optimizer):
            if "step" in vars(kind):
                self._wrap(kind)

    @contained
    def hook_again(self):
        """Up to 2.2 PyTorch's compiler removes the hooks of steps from all of PyTorch's optimizers for good, compiled
        or not: wraps them again."""
        hooking = getattr(torch.optim.Optimizer, "profile_hook_step", None)
        if hooking is None:  # before 2.0
            return
        runs_hooks = hooking(lambda: None).__code__
        for kind in _subclasses(torch.optim.Optimizer):
            step = vars(kind).get("step")
            if getattr(step, "hooked", False) and not _is_around(step, runs_hooks):
                self._wrap(kind)

    def _wrap(self, kind):
        """Wraps the step of a class, once."""
        original = kind.step
        if getattr(original, "__gradb__", False):
            return
        optimizers = self

        @functools.wraps(original)
        def step(optimizer, *args, **kwargs):
            changed = optimizers.before(optimizer, (optimizer,) + args, kwargs)
            if changed is not None:
                (_, *args), kwargs = changed
            result = original(optimizer, *args, **kwargs)
            optimizers.after(optimizer, args, kwargs)
            return result
        step.__gradb__ = True
        kind.step = step
        self._wrapped.append((kind, original, step))

    def remove(self):
        """Removes all hooks."""
        self.take_back()
        for handle in self._handles:
            handle.remove()
        self._handles = []
        for name, original, wrapper in self._replaced:
            if getattr(torch.optim.Optimizer, name) is wrapper:
                setattr(torch.optim.Optimizer, name, original)
        for kind, original, wrapper in self._wrapped:
            if kind.step is wrapper:
                kind.step = original
        self._wrapped = []

    def hand_over(self):
        """Steps are idle: the hooks of steps become the native module's, and zero_grad is not hooked."""
        native = self.agent.native
        if not self._handed:
            self._handed = True
            self._put((native.before_step, native.after_step), self._zero_grad)

    def take_back(self):
        """The hooks become ours again."""
        if self._handed:
            self._handed = False
            self._put((self.before, self.after), self._zero_grad[::-1])

    def _put(self, hooks, zero_grad):
        """zero_grad: (the present function, its replacement). Anybody else's function stays."""
        if torch.optim.Optimizer.zero_grad is zero_grad[0]:
            torch.optim.Optimizer.zero_grad = zero_grad[1]
        for handle, hook in zip(self._handles, hooks):
            held = handle.hooks_dict_ref()
            if held is not None and handle.id in held:
                held[handle.id] = hook

    def before(self, optimizer, args, kwargs):
        """The hook before a step; args includes the optimizer. Returns other arguments where there is a closure, else
        None."""
        if regions.is_compiling():
            return None
        context, steps = self.agent.native, self.agent.steps
        if context is not None and context.optimizer_begins(optimizer, args, kwargs):
            return None
        steps.optimizer_begins(optimizer, callable(args[1] if len(args) > 1 else kwargs and kwargs.get("closure")))
        if self.agent.dead:
            return None
        self._observe(optimizer)
        if len(args) > 1 and callable(args[1]):
            return (args[0], steps.closure(args[1])) + tuple(args[2:]), kwargs
        if kwargs and callable(kwargs.get("closure")):
            return args, dict(kwargs, closure=steps.closure(kwargs["closure"]))
        return None

    def _observe(self, optimizer):
        """Observes the allocations of an optimizer."""
        self.observed_to_end()
        if self.agent.allocations is not None and self.agent.watching and self.agent.is_training_thread():
            self._end = self.agent.allocations.begin("optimizer", "optimizer/" + self.name_of(optimizer))

    def observed_to_end(self):
        """Ends that: the optimizer has stepped, or has raised into the program, which continued."""
        end, self._end = self._end, None
        if end is not None:
            end()

    def after(self, optimizer, _args, _kwargs):
        """The hook after a step."""
        if self._end is not None:
            self.observed_to_end()
        if regions.is_compiling():
            self.agent.regions.stepped = optimizer  # compiled code may do nothing else here
            return
        context = self.agent.native
        if context is None or not context.optimizer_ended(optimizer):
            self.agent.steps.optimizer_ended(optimizer)

    @guarded
    def zeroed(self, optimizer):
        """An optimizer's gradients were zeroed, while the training is observed."""
        self.agent.observation.tell("zeroed", optimizer)

    # ---- names ----

    @guarded
    def made(self, optimizer):
        """An optimizer was made: names it, and makes nodes of its parameters."""
        if register_optimizer_step_post_hook is None:
            self._wrap(type(optimizer))
        self._made_at[optimizer] = stack.shown(stack.frames(2))
        self.made_rates[optimizer] = _rates_of(optimizer)
        self.name_of(optimizer)
        self.agent.discover(optimizer)
        for parameter in parameters_of(optimizer):
            if not isinstance(parameter, torch.nn.Parameter) and parameter.is_leaf:
                self._weight(parameter)

    def name_of(self, optimizer):
        """The optimizer's name, given when it is first seen. The name of one that is gone is free again."""
        for name, reference in self._names.items():
            if reference() is optimizer:
                return name
        base = name = type(optimizer).__name__
        count = 0
        while name in self._names and self._names[name]() is not None:
            count += 1
            name = "%s_%d" % (base, count)
        self._names[name] = weakref.ref(optimizer)
        return name

    @guarded
    def copied(self, optimizer):
        """An optimizer was made as a copy of another one, for parameters of its own."""
        self._copies.add(optimizer)

    def made_at(self, optimizer):
        """{"file", "line"} of the user's line that made an optimizer; {} where that is unknown."""
        place = self._made_at.get(optimizer)
        return {} if place is None else {"file": place[0].co_filename, "line": place[1]}

    def is_copy(self, optimizer):
        """Whether it is a copy, while an original exists: the training is the original's."""
        return optimizer in self._copies and any(
            reference() is not None and reference() not in self._copies for reference in self._names.values())

    def by_name(self, name):
        """The optimizer of that name, or None."""
        reference = self._names.get(name)
        return reference() if reference is not None else None

    def names(self):
        """The names of all existing optimizers, in order of appearance."""
        return [name for name, reference in self._names.items() if reference() is not None]

    def owners(self):
        """id(parameter) -> id of the optimizer that steps it."""
        optimizers = [reference() for reference in self._names.values()]
        return {id(parameter): id(optimizer) for optimizer in optimizers if optimizer is not None
                for parameter in parameters_of(optimizer)}

    def group_of(self, parameter):
        """(name of the optimizer that steps it, its parameter group); None when none does."""
        for name, reference in self._names.items():
            optimizer = reference()
            for group in optimizer.param_groups if optimizer is not None else ():
                if any(held is parameter for held in group["params"]):
                    return name, group
        return None

    @staticmethod
    def shares(first, second):
        """Whether two optimizers have a parameter in common."""
        known = {id(parameter) for parameter in parameters_of(first)}
        return any(id(parameter) in known for parameter in parameters_of(second))

    # ---- nodes ----

    @guarded
    def stepped(self, optimizer):
        """An optimizer has stepped: reports its nodes when somebody watches."""
        agent = self.agent
        if not agent.watching_now:
            return
        agent.watching_now = False
        try:
            with apart():
                others = self._tell_known(optimizer)
            name = self.name_of(optimizer)
            frames = stack.frames(2) if others else ()
            with apart():
                for parameter in others:
                    self._tell(self._node(optimizer, name, parameter, frames), parameter)
        finally:
            agent.watching_now = not agent.dead

    def _tell_known(self, optimizer):
        """Reports the updates whose nodes are known. Returns the other parameters with gradients."""
        agent, parameters = self.agent, parameters_of(optimizer)
        if agent.native is not None and agent.overflow is None and isinstance(optimizer.state, dict):
            return native.module.updated(agent.native, self._told, optimizer, optimizer.state, parameters)
        others = []
        for parameter in parameters:
            if parameter.grad is not None:
                known = self._told.get(id(parameter))
                if known is not None and known.is_of(optimizer, parameter):
                    self._tell(known.node, parameter)
                else:
                    others.append(parameter)
        return others

    def _tell(self, node, parameter):
        if node is not None:
            self.agent.reporter.ran(node, (parameter,))
            if self.agent.overflow is not None:
                self.agent.overflow.optimizer_ran(node, parameter)

    def _node(self, optimizer, name, parameter, frames):
        """The node of an optimizer's update of a parameter; made, with new nodes of its state, when it is missing."""
        reporter = self.agent.reporter
        graph = reporter.graph
        weight = self._weight(parameter)
        if weight is None:
            return None
        full = "optimizer/%s/%s" % (name, weight.name)
        states = self._states(optimizer, parameter, full)
        node = graph.nodes.get(full)
        if node is None:
            gradient = graph.nodes.get(weight.name + ".grad")
            inputs = [(weight, 0)]  # what it writes is the first input
            inputs += [(made, 0) for made in [gradient] + states if made is not None]
            node = graph.add(full, _lib.OTHER, operator=type(optimizer).__name__, phase=_lib.OPTIMIZER,
                             inputs=inputs, outputs=(values.shape_of(parameter),), stack=frames)
        if node is not None:
            self._told[id(parameter)] = _Told(weakref.ref(optimizer), Ref(parameter), node,
                                              _form_of_state(optimizer, parameter))
        return node

    def _weight(self, parameter):
        """The node of a parameter, even of one that no known module contains."""
        reporter = self.agent.reporter
        known = reporter.graph.holder(parameter)
        if known is not None:
            return known
        place, held = self.agent.modules.reach(parameter)
        if place is not None:
            return reporter.parameters.take_place(parameter, place, held)
        base = name = variables.name_of(parameter) or "parameter"
        count = 0
        while name in reporter.graph.nodes:
            count += 1
            name = "%s_%d" % (base, count)
        return reporter.parameters.add_parameter(parameter, name)

    def _states(self, optimizer, parameter, full):
        """The nodes of a parameter's state that did not exist yet."""
        graph, found = self.agent.reporter.graph, []
        state = optimizer.state.get(parameter)
        if not isinstance(state, dict):
            return found
        for key, value in state.items():
            name = "%s.%s" % (full, key)
            if isinstance(value, torch.Tensor) and name not in graph.nodes:
                node = graph.add(name, _lib.PARAMETER, operator="State", outputs=(values.shape_of(value),))
                if node is not None:
                    self.agent.live.lasts(node.id, _state(weakref.ref(optimizer), Ref(parameter), key))
                    found.append(node)
        return found


class _Told(collections.namedtuple("_Told", "optimizer parameter node form")):
    """The node of a parameter under an optimizer (weak references to both), valid while its state has that form.
    gradb._native reads it, too."""
    __slots__ = ()

    def is_of(self, optimizer, parameter):
        """Whether it belongs to these, and nothing is to be added."""
        return (self.parameter() is parameter and self.optimizer() is optimizer
                and self.form == _form_of_state(optimizer, parameter))


def _form_of_state(optimizer, parameter):
    state = optimizer.state.get(parameter)
    return (*state, *map(type, state.values())) if isinstance(state, dict) else ()


def _state(optimizer, parameter, key):
    """A function that returns the tensor of a state now, even after a state was loaded."""
    def get():
        stepper, weight = optimizer(), parameter()
        if stepper is None or weight is None:
            return None
        value = stepper.state.get(weight, {}).get(key)
        return value if isinstance(value, torch.Tensor) else None
    return get


def _rates_of(optimizer):
    """The rates of an optimizer's groups that are plain numbers; None for others."""
    rates = [group.get("lr") for group in getattr(optimizer, "param_groups", ())]
    return [float(one) if isinstance(one, (int, float)) else None for one in rates]


def parameters_of(optimizer):
    """All parameters that it holds."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _plainly(function, *args, **kwargs):
    return function(*args, **kwargs)


def _is_around(function, code):
    """Whether it is a function with that code, or a wrapper around one."""
    while function is not None and getattr(function, "__code__", None) is not code:
        function = getattr(function, "__wrapped__", None)
    return function is not None


def _subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)
