# SPDX-License-Identifier: MIT
"""What the training consists of: the cells, the optimizers and the present batch. See ../summary.py.

    agent model
    agent optimizer
    agent batch"""
import mindspore
from mindspore import Parameter, Tensor

from .. import summary
from . import commands, values
from .parameters import STATISTICS, own

# What optimizers call their hyperparameters.
_OPTIONS = ("momentum", "beta1", "beta2", "eps", "weight_decay", "loss_scale", "use_nesterov", "nesterov", "amsgrad",
            "dampening", "centered", "decay")


# ---- info model ----

def _model(agent, _args, _node):
    roots = agent.parameters.roots()
    if not roots:
        raise commands.CommandError("no network is known yet: it is named when an optimizer is made for it")
    tree = summary.Tree()
    for root in roots:
        name = agent.parameters.path_of(root) or type(root).__name__
        for path, cell in root.cells_and_names():
            path = "%s/%s" % (name, path.replace(".", "/")) if path else name
            tree.add(path, type(cell).__name__, list(_held(cell)))
    return tree.report(agent.steps.computed())


def _held(cell):
    for parameter in own(cell):
        state = parameter.name.rsplit(".", 1)[-1] in STATISTICS
        yield summary.Held(id(parameter), int(parameter.size), int(parameter.nbytes), bool(parameter.requires_grad),
                           state, str(parameter.dtype).lower(), _device())


def _device():
    return str(mindspore.get_context("device_target")).lower()


# ---- info optimizer, info lr ----

def _optimizer(agent, _args, _node):
    living = agent.parameters.living()
    if not living:
        raise commands.CommandError("the training has made no optimizer yet")
    main = agent.rates.main_name()
    return {"step": agent.steps.computed(),
            "optimizers": [_one(agent, known.name, optimizer, main) for known, optimizer in living]}


def _one(agent, name, optimizer, main):
    trained = list(optimizer.parameters)
    rows = agent.rates.groups(name)
    groups = [{"group": index, "lr": rate, "options": _options(optimizer, index)}
              for index, (rate, _) in enumerate(rows)]
    held = _members(optimizer, len(groups))
    for row, parameters in zip(groups, held):
        row.update(parameters=len(parameters), elements=sum(int(one.size) for one in parameters),
                   frozen=sum(not one.requires_grad for one in parameters))
    ids = {id(parameter) for parameter in trained}
    state = [one for one in optimizer.get_parameters() if id(one) not in ids]
    return {"name": name, "class": type(optimizer).__name__, "main": name == main, "parameters": len(trained),
            "elements": sum(int(one.size) for one in trained), "groups": groups, "state_tensors": len(state),
            "state_bytes": sum(int(one.nbytes) for one in state),
            "schedulers": [{"name": type(scheduler).__name__, "place": place}
                           for scheduler, place in agent.rates.schedulers(name)]}


def _members(optimizer, count):
    """The parameters of each group, where the optimizer says which; all of them for a single group."""
    groups = vars(optimizer).get("param_groups")
    if groups and len(groups) == count:
        return [list(group.get("params", ())) for group in groups]
    return [list(optimizer.parameters)] if count == 1 else []


def _options(optimizer, index):
    groups = vars(optimizer).get("param_groups")
    held = groups[index] if groups and index < len(groups) else None
    found = {}
    if isinstance(held, dict):
        pairs = [(key, value) for key, value in held.items() if key not in ("params", "lr", "initial_lr")]
    else:
        pairs = [(key, getattr(optimizer, key, None)) for key in _OPTIONS]
    for key, value in pairs:
        if isinstance(value, (Parameter, Tensor)):
            value = values.number_of(value) if value.size == 1 else None
        value = summary.option(value)
        if value is not None:
            found[str(key)] = value
    return found


# ---- info batch ----

def _batch(agent, _args, _node):
    epoch, batch = agent.steps.place or (0, 0)
    reply = {"step": agent.steps.computed(), "source": "dataset", "tensors": [
        {"name": name, "dtype": str(dtype).lower(), "shape": list(shape), "device": _device(), "bytes": size}
        for name, shape, dtype, size in agent.data.parts]}
    if agent.data.kind:
        reply["loader"] = {"class": agent.data.kind}
    if epoch:
        reply.update(epoch=epoch, batch=batch)
    return reply


commands.register("model", _model, "the cells with their parameters, as `info model` shows them")
commands.register("optimizer", _optimizer, "the optimizers with their groups, as `info optimizer` shows them")
commands.register("batch", _batch, "the tensors of the present batch, as `info batch` shows them")
