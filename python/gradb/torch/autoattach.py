# SPDX-License-Identifier: MIT
"""Attaches a process when it begins to train, and no other: when it makes its first optimizer, calls a module with
gradients, or runs backward.

A launcher, a tokenizer, an evaluation or a compiler's helper does none of these. A DataLoader worker might (a transform
can be a module), and so might the unpickling in a process that multiprocessing spawns: those are recognised. A process
that torch.multiprocessing spawns or forks for training is attached like any other."""
import functools
import multiprocessing
import os
import sys

import torch

_WAIT_SECONDS = 10.0
_watch = None


def watch(attach):
    """Calls attach(optimizer or None, seconds to wait) when the process begins to train. A second call does nothing."""
    global _watch
    if _watch is None:
        _watch = _Watch(attach)
        _watch.install()


def unwatch():
    """Stops waiting and removes the wrappers."""
    global _watch
    if _watch is not None:
        _watch.remove()
        _watch = None


def _is_loading():
    """Whether this is a DataLoader worker, or a process of multiprocessing that has not begun its work."""
    if torch.utils.data.get_worker_info() is not None:
        return True
    return getattr(multiprocessing.current_process(), "_inheriting", False)


class _Watch:
    """Wrappers of Optimizer.__init__, Module.__call__ and Tensor.backward, until one of them is used to train."""

    def __init__(self, attach):
        self._attach = attach
        self._wrapped = []  # (class, name, original, wrapper)

    def install(self):
        """Installs the wrappers."""
        self._wrap(torch.nn.Module, "__call__", self._module_wrapper)
        self._wrap(torch.optim.Optimizer, "__init__", self._optimizer_wrapper)
        self._wrap(torch.Tensor, "backward", self._backward_wrapper)

    def remove(self):
        """Removes the wrappers. One that was itself wrapped stays and only passes calls on."""
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
        """The process begins to train: attaches it. Returns whether it could."""
        if _is_loading():
            return False
        unwatch()
        try:
            return self._attach(optimizer, float(os.environ.get("GRADB_WAIT", _WAIT_SECONDS)))
        except Exception as error:  # a fault of ours must not reach the user's code
            print("gradb: cannot attach to PyTorch: %s" % error, file=sys.stderr)
            return False
