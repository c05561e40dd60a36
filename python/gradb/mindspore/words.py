# SPDX-License-Identifier: MIT
"""Commands of the training process: `agent operators`, `agent training`, `agent digest`."""
import fnmatch

from .. import _lib
from . import commands, operators, values


def _operators(agent, args, _node):
    word = args.strip()
    if word not in ("", "on", "off"):
        raise commands.CommandError("expected on or off, not %s" % word)
    if word == "on" and operators.MODE is None:
        raise commands.CommandError("this MindSpore has no operator dispatch: 2.9 has")
    if word:
        agent.always_looks = word == "on"
    return {"operators": "on" if agent.always_looks else "when they are watched"}


def _training(agent, args, node):
    """Facts for `why`, as gradb's agent for PyTorch gives them."""
    if node is None and args.strip() not in ("", "audit"):
        node, _ = commands.node_of(agent, args)
    reply = {"exits": [], "followed": False}
    found = None
    for known, optimizer in agent.parameters.living():
        for reference, weight, gradient, update in known.updates:
            if node is not None and node in (weight, gradient, update):
                found = (known, optimizer, reference())
    if found is not None and found[2] is not None:
        known, _, parameter = found
        record = {"parameter": agent.parameters.node_of(parameter).name, "frozen": not parameter.requires_grad,
                  "gradient": id(parameter) in agent.parameters.gradients, "optimizer": known.name,
                  "optimizers": len(agent.parameters.living())}
        rate = agent.steps.rate_of(known)
        if rate is not None:
            record["lr"] = rate
        reply["trained"] = record
    elif node is not None and node.kind == _lib.WEIGHT and node.get is not None and node.get() is not None:
        reply["trained"] = {"parameter": node.name, "frozen": not node.get().requires_grad, "gradient": False,
                            "optimizers": len(agent.parameters.living())}
    scale = values.number_of(getattr(agent.steps.scaler, "scale_value", None))
    if scale is not None and scale != 1.0:
        reply["scale"] = scale
    return reply


# ---- digests, see ../torch/digest.py ----

_K = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_KINDS = {"parameters": (_lib.WEIGHT,), "gradients": (_lib.GRADIENT,), "optimizer": (_lib.PARAMETER,),
          "buffers": (_lib.PARAMETER,)}


def _digest(tensor):
    """64 bits over the bytes of a tensor, as all agents compute them."""
    import numpy
    data = tensor.asnumpy().tobytes()
    words = numpy.frombuffer(data + b"\0" * (-len(data) % 8), dtype="<u8").copy()
    with numpy.errstate(over="ignore"):
        words += numpy.arange(1, len(words) + 1, dtype="u8") * numpy.uint64(_K)
        for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            words ^= words >> numpy.uint64(shift)
            words *= numpy.uint64(multiplier)
        total = int(words.sum(dtype="u8"))
    number = (total + len(data)) & _MASK
    for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        number = ((number ^ (number >> shift)) * multiplier) & _MASK
    return number


def _digests(agent, args, node):
    word = node.name if node is not None else args.strip()
    lines = []
    for held in list(agent.graph.by_id.values()):
        if held.get is None or held.phase == _lib.OPTIMIZER or not _is_wanted(held, word):
            continue
        tensor = held.get()
        if tensor is None:
            continue
        lines.append("%016x %s" % (_digest(tensor), held.name))
    return "\n".join(lines)


def _is_wanted(node, word):
    if word in ("", "all"):
        return word == "all" or node.kind == _lib.WEIGHT or node.operator == "State"
    if word == "optimizer":
        return node.operator == "State"
    if word == "buffers":
        return node.operator == "Buffer"
    if word in _KINDS:
        return node.kind in _KINDS[word]
    return fnmatch.fnmatchcase(node.name, word)


commands.register("operators", _operators, "watch the operators of each step, or only when they are asked for",
                  "[on|off]")
commands.register("training", _training, "the optimizer of a parameter", "[NODE|audit]")
commands.register("digest", _digests, "64 bits over the bytes of each tensor, to compare ranks",
                  "[parameters|optimizer|gradients|buffers|all|PATTERN]")
