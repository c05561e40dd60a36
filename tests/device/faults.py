# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults in the agent's code for devices, one at a time: GRADB_FAULT names it. Each must be noticed by test_agent.py.

Where it is set, if to nothing, copies to the host are made in smaller parts, so that small tensors need several."""
import importlib.machinery
import os
import sys

from emulated import Loader

_STAGING = 2048  # bytes


def _copy(device, tensor, pinned, *, source=None, wanted=True, finished=True):
    """devices.Accelerator.copy() without a part of it. source: the stream that is waited for; None: the current one."""
    module = device.module
    stream = device._streams.get(tensor.device)
    if stream is None:
        stream = device._streams[tensor.device] = module.Stream(tensor.device)
    if wanted:
        stream.wait_stream(source or module.current_stream(tensor.device))
    with module.stream(stream):
        pinned.copy_(tensor, non_blocking=True)
    if finished:
        stream.synchronize()
    return stream


def _other_device(device, tensor):
    import torch
    return device.module.current_stream(torch.device(device.name, 1 - tensor.device.index))


def _default_stream(device, tensor):
    import torch
    with device.module.stream(torch.Stream(device=tensor.device)):
        before = device.module.current_stream(tensor.device)
    return type(before)(stream_id=0, device_index=tensor.device.index, device_type=before.device_type)


def _waits_elsewhere(device, tensor, pinned):
    _copy(device, tensor, pinned, finished=False)
    device.module.current_stream(tensor.device).synchronize()


def _event_too_early(device, tensor, pinned):
    stream = device._streams.get(tensor.device)
    event = device.module.Event()
    if stream is not None:
        event.record(stream)
    _copy(device, tensor, pinned, finished=False)
    event.synchronize()


def _freed(device, tensor, pinned):
    kept = tensor.clone()
    stream = _copy(device, kept, pinned, finished=False)
    del kept
    device.module.current_stream(tensor.device).synchronize()
    stream.synchronize()


def _draws(device, tensor, pinned):
    import torch
    torch.rand(1, device=tensor.device)
    _copy(device, tensor, pinned)


COPIES = {
    "no-wait-for-the-value": lambda *args: _copy(*args, wanted=False),
    "no-wait-for-the-copy": lambda *args: _copy(*args, finished=False),
    "wait-for-another-stream": _waits_elsewhere,
    "wait-for-another-device": lambda device, tensor, pinned: _copy(device, tensor, pinned, source=_other_device(
        device, tensor)),
    "wait-for-the-default-stream": lambda device, tensor, pinned: _copy(device, tensor, pinned, source=_default_stream(
        device, tensor)),
    "event-is-recorded-too-early": _event_too_early,
    "freed-while-it-is-copied": _freed,
    "draws-from-the-device": _draws,
}


FAULTS = (*COPIES, "staging-is-used-again", "host-reads-the-device", "waits-in-each-step")


def _all_at_once(module):
    """to_host() that uses its staging memory again before it has been read."""
    def to_host(tensor):
        import torch
        result = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
        pieces = list(module._parts(tensor, result, max(1, _STAGING // tensor.element_size())))
        staging = torch.empty(max((piece.numel() for piece, _ in pieces), default=0), dtype=tensor.dtype, device="cpu",
                              pin_memory=True)
        device = module.devices.of(tensor)
        for piece, _ in pieces:
            device.copy(piece.contiguous(), staging[:piece.numel()].view(piece.shape))
        for piece, place in pieces:
            place.copy_(staging[:piece.numel()].view(piece.shape))
        return result
    return to_host if os.environ["GRADB_FAULT"] == "staging-is-used-again" else lambda tensor: tensor.contiguous()


def _apply(module):
    fault = os.environ.get("GRADB_FAULT", "")
    part = module.__name__.rpartition(".")[2]
    if part == "device_stats" and "GRADB_FAULT" in os.environ:
        module._STAGING = _STAGING  # several pieces, of which each must be right
        if fault in ("staging-is-used-again", "host-reads-the-device"):
            of_cpu, changed = module.to_host, _all_at_once(module)
            module.to_host = lambda tensor: of_cpu(tensor) if module.devices.of(tensor) is None else changed(tensor)
    elif fault in COPIES:
        module.Accelerator.copy = COPIES[fault]
    elif fault == "waits-in-each-step":
        used = module.used

        def used_and_waited():
            found = used()
            if found is not None:
                found.wait()
            return found
        module.used = used_and_waited


class _Finder:
    """Changes the agent's modules as they are imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Only those two are of interest."""
        if not name.endswith((".torch.devices", ".torch.device_stats")) or "gradb" not in name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = Loader(spec.loader, lambda: None, lambda module, _: _apply(module))
        return spec


def wait_for_agent():
    """To be called before the agent is imported."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
