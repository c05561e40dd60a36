# SPDX-License-Identifier: MIT
"""What the training consists of: the modules, the optimizers and the present batch. See ../summary.py.

    agent model
    agent optimizer
    agent batch"""
import torch

from .. import summary
from . import commands, members, stack, values, variables

_MOST_VARIABLES = 64


# ---- info model ----

def _model(agent, _args, _node):
    roots = agent.modules.roots()
    if not roots:
        raise commands.CommandError("no module is known yet: it is named when an optimizer is made for it, or when it "
                                    "is called")
    tree = summary.Tree()
    with agent.own_moment(), values.outside_training():
        for name, root in roots.items():
            for path, module, _, _ in members.paths(root, name):
                tree.add(path, type(module).__name__, list(_held(module)), "" if module.training else "eval")
    return tree.report(agent.steps.computed())


def _held(module):
    for _, parameter, _ in members.parameters_of(module):
        yield _part(parameter, False)
    for buffer in list(module._buffers.values()):
        if isinstance(buffer, torch.Tensor):
            yield _part(buffer, True)


def _part(tensor, buffer):
    local = getattr(tensor, "_local_tensor", tensor)
    try:
        elements, size = tensor.numel(), local.numel() * local.element_size()
    except (RuntimeError, ValueError):  # a lazy module's, before its first call
        elements = size = 0
    return summary.Held(id(tensor), elements, size, tensor.requires_grad, buffer, _dtype(tensor), str(local.device))


def _dtype(tensor):
    return str(tensor.dtype).rpartition(".")[2]


# ---- info optimizer, info lr ----

def _optimizer(agent, _args, _node):
    names = agent.optimizers.names()
    if not names:
        raise commands.CommandError("the training has made no optimizer yet")
    main = agent.rates.main_name()
    with agent.own_moment(), values.outside_training():
        found = [_one(agent, name, main) for name in names]
    return {"step": agent.steps.computed(), "optimizers": found}


def _one(agent, name, main):
    optimizer = agent.optimizers.by_name(name)
    groups = [_group(index, group) for index, group in enumerate(optimizer.param_groups)]
    tensors = [value for state in list(optimizer.state.values()) if isinstance(state, dict)
               for value in state.values() if isinstance(value, torch.Tensor)]
    local = [getattr(tensor, "_local_tensor", tensor) for tensor in tensors]
    return {"name": name, "class": type(optimizer).__name__, "main": name == main,
            "parameters": sum(group["parameters"] for group in groups),
            "elements": sum(group["elements"] for group in groups), "groups": groups,
            "state_tensors": len(tensors), "state_bytes": sum(one.numel() * one.element_size() for one in local),
            "schedulers": [{"name": type(scheduler).__name__, "place": place}
                           for scheduler, place in agent.rates.schedulers(name)]}


def _group(index, group):
    held = [parameter for parameter in group["params"] if isinstance(parameter, torch.Tensor)]
    options = {key: summary.option(_plain(value)) for key, value in group.items() if key not in ("params", "lr")}
    rate = summary.option(_plain(group.get("lr")))
    return {"group": index, "lr": rate if isinstance(rate, (int, float)) else None, "parameters": len(held),
            "elements": sum(_part(parameter, False).elements for parameter in held),
            "frozen": sum(not parameter.requires_grad for parameter in held),
            "options": {str(key): value for key, value in options.items() if value is not None}}


def _plain(value):
    readable = isinstance(value, torch.Tensor) and value.numel() == 1 and not values.is_opaque(value)
    return value.item() if readable else value


# ---- info batch ----

def described(name, tensor):
    """The row of a tensor of a batch."""
    return {"name": name, "dtype": _dtype(tensor), "shape": list(tensor.shape), "device": str(tensor.device),
            "bytes": tensor.numel() * tensor.element_size()}


def _batch(agent, _args, _node):
    loader = agent.events.loader
    data, parts = loader.latest()
    with agent.own_moment(), values.outside_training():
        if data is not None:
            found, source = parts, "DataLoader"
        else:
            found, source = _variables(), "variables"
        reply = {"step": agent.steps.computed(), "source": source, "tensors": found, **loader.numbers()}
        if data is not None:
            reply["loader"] = _loader(data)
    return reply


def _variables():
    """Tensors of the innermost frame of the program that hold data: not computed with gradients, and no parameters."""
    for frame in stack.user_frames(2):
        found = [(name, value) for name, value in variables.of_frame(frame)
                 if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter)
                 and value.grad_fn is None and not value.requires_grad]
        if found:
            return [described(name, value) for name, value in found[:_MOST_VARIABLES]]
    return []


def _loader(data):
    row = {"class": type(data).__name__, "dataset": type(data.dataset).__name__, "workers": data.num_workers,
           "drop_last": bool(data.drop_last), "pin_memory": bool(data.pin_memory)}
    if isinstance(data.batch_size, int):
        row["batch_size"] = data.batch_size
    sampler = type(getattr(data, "sampler", None)).__name__
    row["shuffle"] = sampler == "RandomSampler"
    row["sampler"] = sampler
    for name, thing in (("samples", data.dataset), ("batches", data)):
        try:
            row[name] = len(thing)
        except Exception:  # the program's own __len__, or none: then it is unknown
            pass
    return row


commands.register("model", _model, "the modules with their parameters, as `info model` shows them")
commands.register("optimizer", _optimizer, "the optimizers with their groups, as `info optimizer` shows them")
commands.register("batch", _batch, "the tensors of the present batch, as `info batch` shows them")
