# SPDX-License-Identifier: MIT
"""Attaches a process when it begins to train, and no other: where it makes its first optimizer, calls a module
with gradients, or runs backward.

A launcher, a tokenizer, an evaluation or a compiler's helper does none of these. A DataLoader's worker might (a
transform can be a module), and so might the unpickling of a process that multiprocessing spawns: those are told
apart. What torch.multiprocessing spawns or forks to train is attached as any other.
"""
import functools
import multiprocessing
import os
import sys

import torch

_WAIT_SECONDS = 10.0
_watch = None


def watch():
    """Waits for the process to train, unless it is attached or waited for already."""
    global _watch
    if _watch is None and not _is_attached():
        _watch = _Watch()
        _watch.install()


def unwatch():
    """Waits no longer: all is as it was."""
    global _watch
    if _watch is not None:
        _watch.remove()
        _watch = None


def _is_attached():
    from . import is_attached
    return is_attached()


def _is_loading():
    """Whether this is a DataLoader's worker, or a process of multiprocessing before its work begins."""
    if torch.utils.data.get_worker_info() is not None:
        return True
    return getattr(multiprocessing.current_process(), "_inheriting", False)


class _Watch:
    """Wrappers of Optimizer.__init__, Module.__call__ and Tensor.backward, until one of them is used to train."""

    def __init__(self):
        self._wrapped = []  # (class, name, original, wrapper)

    def install(self):
        """Puts the wrappers on."""
        self._wrap(torch.nn.Module, "__call__", self._module_wrapper)
        self._wrap(torch.optim.Optimizer, "__init__", self._optimizer_wrapper)
        self._wrap(torch.Tensor, "backward", self._backward_wrapper)

    def remove(self):
        """Takes them off. One that somebody wrapped again stays, and only passes through from now on."""
        for kind, name, original, wrapper in self._wrapped:
            if getattr(kind, name) is wrapper:
                setattr(kind, name, original)
        self._wrapped = []

    def _wrap(self, kind, name, make):
        original = getattr(kind, name)
        wrapper = make(original)
        self._wrapped.append((kind, name, original, wrapper))
        setattr(kind, name, wrapper)

    def _module_wrapper(self, original):
        def __call__(module, *args, **kwargs):
            if self._wrapped and module.training and torch.is_grad_enabled() and self._trains():
                return torch.nn.Module.__call__(module, *args, **kwargs)  # through the agent's own wrapper
            return original(module, *args, **kwargs)
        return __call__

    def _optimizer_wrapper(self, original):
        @functools.wraps(original)
        def __init__(optimizer, *args, **kwargs):
            original(optimizer, *args, **kwargs)
            if self._wrapped:
                self._trains(optimizer)
        return __init__

    def _backward_wrapper(self, original):
        @functools.wraps(original)
        def backward(tensor, *args, **kwargs):
            if self._wrapped:
                self._trains()
            return original(tensor, *args, **kwargs)
        return backward

    def _trains(self, optimizer=None):
        """The process begins to train: the agent takes over. Whether it did."""
        if _is_loading():
            return False
        unwatch()
        try:
            from . import attach_here
            return attach_here(optimizer, float(os.environ.get("GRADB_WAIT", _WAIT_SECONDS)))
        except Exception as error:  # never into the user's code
            print("gradb: PyTorch will not be seen: %s" % error, file=sys.stderr)
            return False
