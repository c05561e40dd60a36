# SPDX-License-Identifier: MIT
"""Facts that only the training process knows, for `why`: which optimizer updates a parameter, whether the gradients are
zeroed, and what an operator that raised was given.

    agent training [NODE]
    agent training audit"""
import torch

from . import commands, values

_AUDIT = "audit"  # word of the command: look at the gradients of all parameters
_MOST_ELEMENTS = 1 << 28  # of all gradients together
_MOST_NAMES = 4


def _parameter_of(agent, node):
    """The parameter that a node is, or whose gradient or update it is; None for other nodes."""
    leaf = agent.live.leaf(node.id)
    if leaf is not None:
        return leaf
    parts = node.name.split("/", 2)
    name = parts[2] if parts[0] == "optimizer" and len(parts) == 3 else node.name
    weight = agent.reporter.graph.nodes.get(name)
    if weight is None or not agent.live.is_lasting(weight.id):
        return None
    try:
        tensor, _ = agent.live.find(weight.id, 0)
    except values.NoValue as error:  # it is gone
        raise commands.CommandError(str(error)) from None
    return tensor if isinstance(tensor, torch.nn.Parameter) or tensor.requires_grad else None


def _parameter_record(agent, parameter):
    held = agent.optimizers.group_of(parameter)
    record = {"parameter": agent.reporter.parameters.name_now(parameter), "frozen": not parameter.requires_grad,
              "gradient": parameter.grad is not None}
    if held is not None:
        name, group = held
        rate = group.get("lr")
        record["optimizer"] = name
        if isinstance(rate, (int, float)):
            record["lr"] = float(rate)
        stepped = agent.steps.stepped_last(agent.optimizers.by_name(name))
        if stepped is not None:
            record["stepped"] = stepped
    record["optimizers"] = len(agent.optimizers.names())
    return record


def _audit(agent):
    """The gradients that the main optimizer stepped with, at the end of a step."""
    lost, main = agent.clearing.lost(), agent.steps.main()
    reply = {}
    if lost is not None:
        reply["lost"] = {"parameter": lost.name, "optimizer": agent.optimizers.name_of(lost.optimizer())}
    if main is not None and agent.clearing.follows(main):
        reply["gradients"] = dict(_gradients(agent, main), optimizer=agent.optimizers.name_of(main))
    return reply


def _scaling(agent):
    """What GradScaler does now, and did last."""
    scale, skipped = agent.scaler.scale_now(), agent.steps.skipped_last
    reply = {"scale": scale} if scale != 1.0 else {}
    if skipped is not None:
        reply["skipped"] = {"step": skipped[0], "optimizer": skipped[1]}
    return reply


def _gradients(agent, optimizer):
    """How many parameters an optimizer holds, and how many of their gradients are missing, all 0, or not finite."""
    kinds = {kind: {"count": 0, "names": []} for kind in ("none", "zero", "nonfinite")}
    held = [parameter for group in optimizer.param_groups for parameter in group["params"] if parameter.requires_grad]
    looked = left = 0
    with agent.own_moment(), values.outside_training(), torch.no_grad():
        for parameter in held:
            gradient = parameter.grad
            left += gradient.numel() if gradient is not None else 0
            if left > _MOST_ELEMENTS:
                break
            kind = _kind_of(gradient)
            if kind is not None:
                looked += 1
            if kind:
                name = agent.reporter.parameters.name_now(parameter)
                kinds[kind]["count"] += 1
                if name is not None and len(kinds[kind]["names"]) < _MOST_NAMES:
                    kinds[kind]["names"].append(name)
    return dict(kinds, held=len(held), looked=looked)


def _kind_of(gradient):
    """"none", "zero", "nonfinite", or "" for any other gradient; None for one that cannot be read."""
    if gradient is None:
        return "none"
    try:
        gradient = values.readable(gradient)
        if not bool(torch.isfinite(gradient).all()):
            return "nonfinite"
        return "" if bool(gradient.count_nonzero()) else "zero"
    except (values.NoValue, RuntimeError):
        return None


def _training(agent, args, node):
    if node is None and args.strip() not in ("", _AUDIT):
        node, _ = commands.node_of(agent, args)
    reply = {"loss": agent.reporter.loss} if agent.reporter.loss is not None else {}
    raised = agent.reporter.failures.raised
    if raised is not None and raised.step == agent.steps.step:
        reply["raised"] = raised.record()
    parameter = _parameter_of(agent, node) if node is not None else None
    if parameter is not None:
        reply["trained"] = _parameter_record(agent, parameter)
    exits = agent.reporter.exits
    reply["exits"] = [{"node": name, "by": by, "line": line} for name, (by, line) in exits.items()]
    reply["followed"] = agent.reporter.followed
    reply.update(_scaling(agent))
    if args.strip() == _AUDIT:
        reply.update(_audit(agent))
    clearing = agent.clearing.found(parameter)
    if clearing is not None:
        reply["not set back"] = {"since": clearing.since, "parameter": clearing.name}
        if clearing.whose:
            reply["not set back"]["optimizer"] = clearing.whose
    return reply


commands.register("training", _training, "the optimizer of a parameter; whether gradients are zeroed; what raised; "
                                         "audit: the gradients of the main optimizer", "[NODE|audit]")
