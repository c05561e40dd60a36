# SPDX-License-Identifier: MIT
"""Digests of tensors that should have the same values on all ranks of a job.

A digest is 64 bits over the bytes of a tensor, computed where the tensor is: only the digest leaves the device. The
bytes, padded with zeros, are words w[0], w[1], ... of 64 bits, little endian; the digest is mix(sum of mix(w[i] + (i +
1) * K) + number of bytes), all modulo 2**64, where mix is the finalizer of splitmix64. So two tensors are equal bit for
bit (0.0 differs from -0.0) where their digests are, except for a chance of 1 in 2**64."""
import fnmatch

import torch

from . import commands, values

_K = 0x9E3779B97F4A7C15
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SHIFTS = (30, 27, 31)
_MASK = (1 << 64) - 1
_CHUNK = 1 << 14        # words that are processed at once: they fit into the processor's cache
_CHUNK_AWAY = 1 << 22   # the same on another device, where each call has a cost
_PARALLEL = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)
_KINDS = ("parameters", "optimizer", "gradients", "buffers")


def _signed(number):
    """The int64 with the same bits."""
    return number - (1 << 64) if number >> 63 else number


def _mix_words(words):
    """Applies mix() to each word of an int64 tensor, in place. Shifts of int64 keep the sign, which is masked out."""
    for shift, multiplier in zip(_SHIFTS, _MULTIPLIERS + (None,)):
        words.bitwise_xor_((words >> shift) & ((1 << (64 - shift)) - 1))
        if multiplier is not None:
            words.mul_(_signed(multiplier))
    return words


def _mix(number):
    for shift, multiplier in zip(_SHIFTS, _MULTIPLIERS + (1,)):
        number = ((number ^ (number >> shift)) * multiplier) & _MASK
    return number


def _bytes_of(tensor):
    """The tensor's bytes in element order, padded to whole words, as an int64 tensor; and their number."""
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    flat = tensor.contiguous().reshape(-1).view(torch.uint8)
    count = flat.numel()
    if count % 8 or flat.storage_offset() % 8:
        whole = torch.zeros((count + 7) // 8 * 8, dtype=torch.uint8, device=flat.device)
        whole[:count] = flat
        flat = whole
    return flat.view(torch.int64), count


def digest(tensor):
    """The digest of a dense tensor, an int of 64 bits. RuntimeError: it has no bytes to read."""
    words, count = _bytes_of(tensor)
    chunk = _CHUNK if words.device.type == "cpu" else _CHUNK_AWAY
    total = 0
    for first in range(0, words.numel(), chunk):
        part = words[first:first + chunk]
        places = torch.arange(first + 1, first + 1 + part.numel(), dtype=torch.int64, device=part.device)
        total += int(_mix_words(places.mul_(_signed(_K)).add_(part)).sum())
    return _mix((total + count) & _MASK)


def _is_sharded(tensor):
    """Whether each rank has its own part of it, so that they should not agree."""
    return hasattr(tensor, "to_local") or hasattr(tensor, "local_shards") or hasattr(tensor, "_local_shard")


def _modules(agent, method):
    for root, module in agent.modules.roots().items():
        module = getattr(module, "module", module) if isinstance(module, _PARALLEL) else module
        for name, tensor in getattr(module, method)():
            yield "%s/%s" % (root, name.replace(".", "/")), tensor


def _parameters(agent):
    """(name, parameter) of all modules and optimizers, each once, with the name of its node where it has one."""
    seen = set()
    holder = agent.reporter.graph.holder
    trained = ((None, tensor) for name in agent.optimizers.names()
               for group in agent.optimizers.by_name(name).param_groups for tensor in group["params"])
    for name, tensor in list(_modules(agent, "named_parameters")) + list(trained):
        node = holder(tensor)
        name = node.name if node is not None else name
        if name is not None and id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor


def _states(agent, named):
    for name in agent.optimizers.names():
        optimizer = agent.optimizers.by_name(name)
        for parameter, tensor in named:
            state = optimizer.state.get(tensor)
            for key, value in state.items() if isinstance(state, dict) else ():
                yield "optimizer/%s/%s.%s" % (name, parameter, key), value


def _tensors(agent, kinds):
    """(name, tensor) of all tensors of those kinds."""
    named = list(_parameters(agent))
    if "parameters" in kinds:
        yield from named
    if "gradients" in kinds:
        yield from ((name + ".grad", tensor.grad) for name, tensor in named if tensor.grad is not None)
    if "optimizer" in kinds:
        yield from _states(agent, named)
    if "buffers" in kinds:
        yield from _modules(agent, "named_buffers")


def _wanted(args):
    """(kinds, pattern) that a command's words ask for."""
    word = args.strip()
    if not word:
        return ("parameters", "optimizer"), "*"
    if word == "all":
        return _KINDS, "*"
    if word in _KINDS:
        return (word,), "*"
    return _KINDS, word


def _digests(agent, args, node):
    kinds, pattern = _wanted(node.name if node is not None else args)
    lines = []
    with agent.own_moment(), values.outside_training():
        for name, tensor in _tensors(agent, kinds):
            if not isinstance(tensor, torch.Tensor) or not fnmatch.fnmatchcase(name, pattern):
                continue
            if _is_sharded(tensor) or values.is_opaque(tensor):
                lines.append("- %s" % name)
                continue
            try:
                lines.append("%016x %s" % (digest(tensor), name))
            except (RuntimeError, NotImplementedError):  # sparse, quantized, or on the meta device
                lines.append("- %s" % name)
    return "\n".join(lines)


commands.register("digest", _digests, "64 bits over the bytes of each tensor, to compare ranks",
                  "[parameters|optimizer|gradients|buffers|all|PATTERN]")
