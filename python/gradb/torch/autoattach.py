# SPDX-License-Identifier: MIT
"""Attaches a process when it begins to train, and no other: when it makes its first optimizer, calls a module with
gradients, or runs backward or torch.autograd.grad.

A launcher, a tokenizer, an evaluation or a compiler's helper does none of these. A DataLoader worker might (a transform
can be a module), and so might the unpickling in a process that multiprocessing spawns: those are recognised. A process
that torch.multiprocessing spawns or forks for training is attached like any other."""
import functools
import multiprocessing
import os
import sys

import torch

from ..lines import is_main_script
from ..wrappers import Wrappers
from . import loading

_WAIT_SECONDS = 10.0
_watch = None


def watch(attach):
    """Calls attach(optimizer or None, seconds to wait) when the process begins to train. A second call does nothing."""
    global _watch
    if _watch is None:
        _watch = _Watch(attach)
        _watch.install()
        if is_main_script(os.environ.get("GRADB_LINES", "").split("\n")):
            _watch.attach()  # its lines may run before it trains


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


class _Watch(Wrappers):
    """Wrappers of Optimizer.__init__, Module.__call__, Tensor.backward and autograd.grad, until one of them is used to
    train; and of Module.load_state_dict, see loading."""

    def __init__(self, attach):
        super().__init__()
        self._attach = attach

    def install(self):
        """Installs the wrappers."""
        module, optimizer, tensor = torch.nn.Module, torch.optim.Optimizer, torch.Tensor
        self._wrap(module, "__call__", self._module_wrapper(module.__call__))
        self._wrap(optimizer, "__init__", self._optimizer_wrapper(optimizer.__init__))
        self._wrap(tensor, "backward", self._backward_wrapper(tensor.backward))
        self._wrap(torch.autograd, "grad", self._backward_wrapper(torch.autograd.grad))
        self._wrap(module, "load_state_dict", loading.noting(module.load_state_dict))

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
        def backward(*args, **kwargs):
            if self._wrapped:
                self._trains()
            return original(*args, **kwargs)
        return backward

    def attach(self):
        """Attaches the process, unless it only loads data."""
        self._trains()

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
