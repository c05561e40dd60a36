# SPDX-License-Identifier: MIT
"""Allocations that fail: the run stops there, with what was asked, by which operator, and what would fit.

    agent oom [on | off]     on: allocations are observed, and failing ones stop the run
    agent oom-report         of the last one that failed in this step"""
import torch

from .. import fitting
from . import backward, commands, ops, stack, storages
from .guard import guarded

_KINDS = tuple(kind for kind in (getattr(torch, "OutOfMemoryError", None),
                                 getattr(torch.cuda, "OutOfMemoryError", None), MemoryError) if isinstance(kind, type))

_LISTS = torch.nn.ModuleList, torch.nn.ModuleDict  # which do not run


def is_oom(error):
    """Whether an exception says that memory is short."""
    return isinstance(error, _KINDS) or isinstance(error, RuntimeError) and fitting.says_so(str(error))


class Failed:
    """An allocation that failed. asked: bytes, None when the message does not say; operator: the ATen call, or "";
    node: the graph.Node, or None; name: of the node, known even if it has not run yet."""

    def __init__(self, agent, operator, args, kwargs, error, allocations=None):
        self.step = agent.steps.step
        self.error = "%s: %s" % (type(error).__name__, str(error).split("\n", 1)[0])
        self.asked = fitting.asked(str(error))
        self.operator = operator
        self.phase = _phase(agent)
        self.node = None
        self.name = ""
        self.place = None
        found = []
        ops.tensors_in(args, found)
        ops.tensors_in(kwargs, found)
        self.shapes = [storages.shape_of(tensor) for tensor in found[:8]]
        self.held = allocations.held if allocations is not None else None
        self.floor = allocations.now().floor if allocations is not None else None
        self.batch = allocations.batch() if allocations is not None else 0
        self.passes = agent.events.passes() + (self.phase == "forward")
        if allocations is not None:
            allocations.step_fails()
        if self.phase == "backward":
            self._find_backward(agent)
        elif self.phase == "optimizer":
            self._find_update(agent, found)

    def _find_backward(self, agent):
        own = agent.running_pass()
        if own is None:
            return
        self.node = own.node
        self.name = own.name or (own.scope + "/" + own.type)
        self.place = stack.shown(own.mark.stack) if own.mark is not None else None

    def _find_update(self, agent, found):
        self.place = stack.shown(stack.frames(2))
        optimizer = agent.steps.running[-1] if agent.steps.running else None
        if optimizer is None:
            return
        self.name = "optimizer/" + agent.optimizers.name_of(optimizer)
        for tensor in found:
            for parameter in [parameter for group in optimizer.param_groups for parameter in group["params"]]:
                if tensor is parameter or tensor is parameter.grad:
                    node = agent.graph.holder(parameter)
                    self.name += "/" + node.name if node is not None else ""
                    return

    def at(self, node, place):
        """The operator is this node, and runs at this place."""
        self.node, self.name, self.place = node, node.name if node is not None else self.name, place or self.place
        return self


def _phase(agent):
    if agent.in_backward:
        return "backward"
    return "optimizer" if agent.steps.running else "forward"


class Ooms:
    """What is known of the last allocation that failed."""

    def __init__(self, agent):
        self.agent = agent
        self.last = None

    @guarded
    def failed(self, error, operator="", args=(), kwargs=None, node=None, place=None):
        """An exception was noticed. Returns whether it says that memory is short; then it is the last one."""
        if not is_oom(error):
            return False
        allocations = self.agent.allocations
        seen = allocations.failed if allocations is not None else None
        if seen is None or seen.step != self.agent.steps.step:
            seen = Failed(self.agent, operator, args, kwargs or {}, error, allocations)
        self.last = seen if node is None and place is None else seen.at(node or seen.node, place)
        return True

    def words(self):
        """The last one, in one line."""
        last = self.last
        return "out of memory in %s: %s%s%s%s" % (
            last.phase, fitting.size(last.asked) + " asked for" if last.asked is not None else last.error,
            " by " + last.name if last.name else "", " (aten %s)" % last.operator if last.operator else "",
            stack.words(last.place))


def _command(agent, args, _node):
    wanted = commands.switch_of("oom", args)
    if wanted is not None:
        agent.observe_allocations(wanted)
    return {"oom": "on" if agent.allocations is not None else "off"}


def _report(agent, _args, _node):
    from . import memory
    last = agent.ooms.last
    if last is None or last.step != agent.steps.step:
        return {}
    found = memory.census(agent)
    items = list(found.items.values())
    reply = memory.report(agent, False)
    reply["oom"] = {"error": last.error, "asked": last.asked, "operator": last.operator, "node": last.name,
                    "where": stack.words(last.place).strip(" ()"), "phase": last.phase, "step": last.step,
                    "shapes": last.shapes, "micro_batch": last.passes, "batch": last.batch}
    measured = agent.allocations.measured() if agent.allocations is not None else []
    reply["fit"] = fitting.batch(measured, last, items)
    paths = [path for path, module in agent.modules.all() if not isinstance(module, _LISTS)]
    reply["checkpoints"] = fitting.checkpoints(items, paths, _seconds(agent), agent.graph.by_id.values())
    return reply


def _seconds(agent):
    """Name of a node -> seconds of its last forward pass."""
    known = agent.allocations.seconds if agent.allocations is not None else {}
    return {agent.graph.by_id[number].name: seconds for number, seconds in known.items()
            if number in agent.graph.by_id}


commands.register("oom", _command, "stop where an allocation fails, and observe allocations: on, off", "[on | off]")
commands.register("oom-report", _report, "what failed, who holds the memory, and what would fit")
