# SPDX-License-Identifier: MIT
"""Commands of the training process: `agent operators`, `agent training`, `agent digest`."""
import ctypes
import fnmatch

import mindspore

from .. import _lib
from . import commands, operators, values

_AUDIT = "audit"  # word of the command: look at the gradients of all parameters
_MOST_ELEMENTS = 1 << 28  # of all gradients together
_MOST_NAMES = 4
_KNOWN_TO_NUMPY = (mindspore.float16, mindspore.float32, mindspore.float64)


def _operators(agent, args, _node):
    wanted = commands.switch_of("operators", args)
    if wanted is not None:
        agent.always_looks = wanted
    return {"operators": "on" if agent.always_looks else "when they are watched"}


# ---- facts for `why`, see ../torch/training.py ----

def _trained(agent, node):
    """The record of the parameter that a node is, or whose gradient or update it is; None for other nodes."""
    parameters = agent.parameters
    parameter = node.get() if node.kind == _lib.WEIGHT and node.get is not None else None
    for known, optimizer in parameters.living():
        for reference, weight, gradient, update in known.updates:
            if node in (gradient, update):
                node, parameter = weight, reference()
    if parameter is None:
        return None
    record = _parameter_record(agent, parameter, node)
    for known, optimizer in parameters.living():
        if any(parameter is held for held in optimizer.parameters):
            record.update(_optimizer_record(agent, known, optimizer))
            break
    return record


def _parameter_record(agent, parameter, weight):
    return {"parameter": weight.name, "frozen": not parameter.requires_grad,
            "gradient": parameter.requires_grad and not agent.is_cut_off(parameter),
            "optimizers": len(agent.parameters.living())}


def _optimizer_record(agent, known, optimizer):
    record = {"optimizer": known.name}
    rate = agent.steps.rate_of(known)
    if rate is not None:
        record["lr"] = rate
    if known.stepped is not None:
        record["stepped"] = known.stepped
    return record


def _audit(agent):
    """How many gradients of the main optimizer are missing, all 0, or not finite; {}: none of this step is known."""
    known, optimizer = agent.steps.main()
    kinds = {kind: {"count": 0, "names": []} for kind in ("none", "zero", "nonfinite")}
    held = looked = left = 0
    for reference, weight, _, _ in known.updates if known is not None else ():
        parameter = reference()
        if parameter is None or not parameter.requires_grad:
            continue
        held += 1
        gradient = agent.parameters.gradients.get(id(parameter))
        left += gradient.size if gradient is not None else 0
        if gradient is None or left > _MOST_ELEMENTS:
            continue
        looked += 1
        kind = "none" if agent.is_cut_off(parameter) else _kind_of(gradient)
        if kind:
            kinds[kind]["count"] += 1
            if len(kinds[kind]["names"]) < _MOST_NAMES:
                kinds[kind]["names"].append(weight.name)
    if looked == 0:
        return {}
    return {"gradients": dict(kinds, held=held, looked=looked, optimizer=known.name)}


def _kind_of(gradient):
    """"zero", "nonfinite", or "" for any other gradient."""
    import numpy
    held = gradient.astype(mindspore.float32).asnumpy() if gradient.dtype not in _KNOWN_TO_NUMPY else gradient.asnumpy()
    if not numpy.isfinite(held).all():
        return "nonfinite"
    return "" if held.any() else "zero"


def _training(agent, args, node):
    if node is None and args.strip() not in ("", _AUDIT):
        node, _ = commands.node_of(agent, args)
    exits = agent.looking.exits if agent.looking else agent.exits
    reply = {"exits": [{"node": name, "by": by, "line": line} for name, (by, line) in exits.items()]}
    if agent.loss is not None:
        reply["loss"] = agent.loss.name
    raised = agent.exceptions.raised_now()
    if raised is not None:
        reply["raised"] = raised
    if agent.scaler.skipped is not None:
        reply["skipped"] = dict(zip(("step", "optimizer", "scaler"), agent.scaler.skipped))
    if agent.scaler.lowers():
        reply["scaler"] = agent.scaler.name()
    sees = agent.looking and operators.MODE is not None and agent.taps.step != agent.steps.step
    followed = agent.steps.step if sees else agent.followed
    if followed > 0:
        reply["followed"] = followed
    record = _trained(agent, node) if node is not None else None
    if record is not None:
        reply["trained"] = record
    if args.strip() == _AUDIT and not values.is_fixed():
        reply.update(_audit(agent))
    return reply


# ---- digests, see ../torch/digest.py ----

_K = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_KINDS = {"parameters": (_lib.WEIGHT,), "gradients": (_lib.GRADIENT,), "optimizer": (_lib.PARAMETER,),
          "buffers": (_lib.PARAMETER,)}


def _digest(tensor):
    """64 bits over the bytes of a tensor, as all agents compute them."""
    import numpy
    struct, _held = values.describe(tensor)
    data = ctypes.string_at(struct.data, tensor.nbytes) if tensor.nbytes else b""
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
commands.register("training", _training, "the optimizer of a parameter; audit: the gradients of the main optimizer",
                  "[NODE|audit]")
commands.register("digest", _digests, "64 bits over the bytes of each tensor, to compare ranks",
                  "[parameters|optimizer|gradients|buffers|all|PATTERN]")
