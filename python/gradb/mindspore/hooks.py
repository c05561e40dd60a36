# SPDX-License-Identifier: MIT
"""The wrappers around MindSpore's classes: where a step begins and ends, and what it is given.

nn.Cell.__call__ and _JitExecutor.__call__ are what Python runs in each step, in both modes; only their outermost call
matters, and an optimizer's. In graph mode and inside @jit everything else runs in C++. The parser of compiled functions
reads `construct`, never `__call__`, so these wrappers change no graph."""
import functools
import inspect
import os
import sys
import threading

import mindspore
from mindspore import context, nn
from mindspore.experimental.optim import optimizer as experimental

try:
    from mindspore.graph import api
except ImportError:  # before 2.9
    from mindspore.common import api

from ..wrappers import Wrappers

KINDS = (nn.Optimizer, experimental.Optimizer)
JIT = "MS_JIT"  # "0" in the environment: nothing is compiled
_GRAPH_MODE = mindspore.GRAPH_MODE
_EXITS = ("asnumpy", "item", "tolist", "__float__", "__array__")
# What nn.Cell asks; get_context takes 30 times as long.
_mode = getattr(context, "_get_mode", functools.partial(mindspore.get_context, "mode"))


class Hooks(Wrappers):
    """Installs and removes the wrappers of one agent. inside: an outermost call runs; compiled: it runs compiled code;
    optimizing: an optimizer that Python called runs."""

    def __init__(self, agent):
        super().__init__()
        self.agent = agent
        self.inside = False
        self.compiled = False
        self.optimizing = False
        self._phase = ""    # MindSpore's name of what the last function with @jit was compiled to
        self._thread = threading.get_ident()

    def install(self):
        """Installs the wrappers."""
        cell = nn.Cell.__call__
        self._wrap(nn.Cell, "__call__", self._cell(cell))
        for kind in KINDS:
            self._wrap(kind, "__call__", self._optimizer(vars(kind).get("__call__", cell)))
            self._wrap(kind, "__init__", self._made(kind.__init__))
        self._wrap(api._JitExecutor, "__call__", self._jit(api._JitExecutor.__call__))
        self._wrap(api._JitExecutor, "compile", self._compile(api._JitExecutor.compile))
        self._wrap(api._PyNativeExecutor, "end_graph", self._end_graph(api._PyNativeExecutor.end_graph))
        self._wrap(api._PyNativeExecutor, "grad", self._grad(api._PyNativeExecutor.grad))
        for name in ("train", "fit", "eval"):
            self._wrap(mindspore.Model, name, self._model(getattr(mindspore.Model, name)))
        self.agent.scaler.wrap(self._wrap)
        mode = getattr(mindspore, "MsDispatchMode", None)
        for name in ("__enter__", "__exit__") if mode is not None else ():
            self._wrap(mode, name, self._mode(getattr(mode, name), name == "__enter__"))
        for name in _EXITS:
            self._wrap(mindspore.Tensor, name, self._exit(name, getattr(mindspore.Tensor, name)))

    def _is_outermost(self):
        return not self.inside and not self.agent.dead and threading.get_ident() == self._thread

    # ---- the wrappers ----

    def _cell(self, original):
        hooks = self

        @functools.wraps(original)
        def __call__(cell, *args, **kwargs):
            if hooks.inside:
                looking = hooks.agent.looking
                return looking.run_cell(original, cell, args, kwargs) if looking else original(cell, *args, **kwargs)
            if not hooks._is_outermost():
                return original(cell, *args, **kwargs)
            return hooks._outermost(original, cell, args, kwargs, compiled=is_graph_mode())
        return __call__

    def _optimizer(self, original):
        hooks = self

        @functools.wraps(original)
        def __call__(optimizer, gradients, *args, **kwargs):
            if hooks.agent.dead or hooks.optimizing or threading.get_ident() != hooks._thread:
                return original(optimizer, gradients, *args, **kwargs)
            if hooks.inside:
                return hooks._optimize(original, optimizer, (gradients, *args), kwargs)
            return hooks._outermost(functools.partial(hooks._optimize, original), optimizer,
                                    (gradients, *args), kwargs, flat=False)
        return __call__

    def _optimize(self, original, optimizer, args, kwargs):
        steps = self.agent.steps
        steps.optimizer_begins(optimizer, args[0])
        self.optimizing = True
        try:
            result = original(optimizer, *args, **kwargs)
        except Exception as error:
            self._failed(error, "optimizer/" + type(optimizer).__name__)
            raise
        finally:
            self.optimizing = False
        steps.optimizer_ended(optimizer)
        return result

    def _failed(self, error, name=""):
        """The program's call has raised."""
        if self.agent.ooms.on and not self.agent.dead:
            self.agent.ooms.failed(error, name)

    def _runs_compiled(self):
        if not self.compiled:
            self.compiled = True
            self.agent.steps.compiled_begins()

    def _outermost(self, original, called, args, kwargs, flat=True, compiled=False):
        """Runs an outermost call; afterwards a step may end. Only the debugger's end of the training is raised."""
        steps = self.agent.steps
        self.inside, self.compiled, self._phase = True, False, ""
        try:
            steps.call_begins(called)
            if compiled:
                self._runs_compiled()
            result = self._inside(original, called, args, kwargs, compiled) if self.agent.looking and flat \
                else original(called, *args, **kwargs) if flat else original(called, args, kwargs)
        except Exception as error:
            self._failed(error)
            raise
        finally:
            self.inside = False
        if compiled or not flat:
            self.agent.compiled.ran(called, self._phase)
        steps.call_ended(called, result, self.compiled)
        return result

    def _inside(self, original, called, args, kwargs, compiled):
        """Runs an outermost call in a step that is looked into."""
        looking = self.agent.looking
        if not compiled:
            return looking.run_cell(original, called, args, kwargs)
        run = _uncompiled(called, original)
        return looking.look_into(called, lambda: run(*args, **kwargs), lambda: original(called, *args, **kwargs))()

    def _jit(self, original):
        hooks = self

        @functools.wraps(original)
        def __call__(executor, *args, **kwargs):
            if hooks.agent.dead or hooks.optimizing or threading.get_ident() != hooks._thread:
                return original(executor, *args, **kwargs)
            if hooks.inside:
                hooks._runs_compiled()
                hooks._phase = ""
                result = original(executor, *args, **kwargs)
                hooks.agent.compiled.ran(executor, hooks._phase)
                if hooks.agent.overflow is not None:
                    hooks.agent.overflow.compiled_ran(executor, args, result)
                return result
            return hooks._outermost(original, executor, args, kwargs, compiled=True)
        return __call__

    def _compile(self, original):
        hooks = self

        @functools.wraps(original)
        def compile(*args, **kwargs):
            hooks._phase = original(*args, **kwargs)
            return hooks._phase
        return compile

    def _made(self, original):
        hooks = self

        @functools.wraps(original)
        def __init__(optimizer, *args, **kwargs):
            original(optimizer, *args, **kwargs)
            hooks.agent.parameters.made(optimizer)
        return __init__

    def _end_graph(self, original):
        """A forward pass that gradients are wanted of has ended: its output is the loss."""
        hooks = self

        @functools.wraps(original)
        def end_graph(executor, called, output, *args, **kwargs):
            result = original(executor, called, output, *args, **kwargs)
            if not hooks.agent.dead:
                hooks.agent.steps.forward_ended(called, output)
            return result
        return end_graph

    def _grad(self, original):
        """A backward pass in PyNative mode."""
        hooks = self

        @functools.wraps(original)
        def grad(*args, **kwargs):
            looking = hooks.agent.looking
            if not looking:
                return original(*args, **kwargs)
            looking.backward_begins()
            result = ()
            try:
                result = original(*args, **kwargs)
                return result
            except Exception as error:
                hooks._failed(error)
                raise
            finally:
                looking.backward_ended(result)
        return grad

    def _mode(self, original, enters):
        """A mode of the program's for operators, which may begin and end when ours is active."""
        hooks = self

        @functools.wraps(original)
        def call(mode, *args):
            looking = hooks.agent.looking if threading.get_ident() == hooks._thread else None
            if not looking:
                return original(mode, *args)
            if not enters:
                return looking.leave(functools.partial(original, mode, *args))
            result = original(mode, *args)
            looking.entered(mode)
            return result
        return call

    def _exit(self, name, original):
        """A function that turns a tensor into a number or an array, through which no gradient comes back."""
        hooks = self

        @functools.wraps(original)
        def leave(tensor, *args, **kwargs):
            looking = hooks.agent.looking
            if looking and not looking.off and threading.get_ident() == hooks._thread:
                looking.left_by(name, tensor, sys._getframe(1))
            return original(tensor, *args, **kwargs)
        return leave

    def _model(self, original):
        """Model.train, fit and eval: a callback of ours comes first, which learns the epoch and the batch."""
        hooks, signature, data = self, inspect.signature(original), self.agent.data

        @functools.wraps(original)
        def run(*args, **kwargs):
            if hooks.agent.dead:
                return original(*args, **kwargs)
            try:
                bound = signature.bind(*args, **kwargs)
                given = bound.arguments.get("callbacks")
                given = list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]
                bound.arguments["callbacks"] = [_Epochs(hooks.agent)] + given
            except TypeError:  # the script's mistake, which the original reports
                return original(*args, **kwargs)
            before, data.told = data.told, True
            try:
                return original(*bound.args, **bound.kwargs)
            finally:
                data.told = before
        return run


def takes_gradients(executor):
    """Whether compiled code is what value_and_grad, grad or GradOperation made."""
    return getattr(getattr(executor, "fn", None), "__qualname__", "").startswith(("_Grad.", "GradOperation."))


def _uncompiled(called, original):
    """What a compiled call is in Python."""
    if isinstance(called, nn.Cell):
        return functools.partial(original, called)
    if called.obj is not None and inspect.ismethod(called.fn):
        return lambda _own, *args, **kwargs: called.fn(*args, **kwargs)
    return called.fn


class _Epochs(mindspore.Callback):
    """Notes where Model.train is. It must not be pickled or compiled, only called."""

    def __init__(self, agent):
        super().__init__()
        self._agent = agent

    def on_train_epoch_begin(self, run_context):
        """Called by MindSpore before each epoch."""
        self._agent.steps.model_enters(run_context, True)
        self._happens("epoch_begins", int(run_context.original_args().cur_epoch_num))

    def on_train_epoch_end(self, run_context):
        """Called by MindSpore."""
        self._happens("epoch_ends")

    def on_train_step_begin(self, run_context):
        """Called by MindSpore before each step."""
        told = run_context.original_args()
        batches = max(1, int(getattr(told, "batch_num", 1) or 1))
        self._agent.steps.place = (int(told.cur_epoch_num), (int(told.cur_step_num) - 1) % batches + 1)
        self._agent.steps.model_enters(run_context, False)

    def on_train_end(self, run_context):
        """Called by MindSpore."""
        self._agent.steps.run_context = None

    def on_eval_begin(self, run_context):
        """Called by MindSpore."""
        self._agent.steps.evaluating = True
        self._happens("evaluation_begins")

    def on_eval_end(self, run_context):
        """Called by MindSpore."""
        self._happens("evaluation_ends")
        self._agent.steps.evaluating = False

    def _happens(self, name, *args):
        if not self._agent.dead and self._agent.steps.begun():
            self._agent.tell(name, *args)


def is_graph_mode():
    """Whether calls of cells are compiled now."""
    return _mode() == _GRAPH_MODE and os.environ.get(JIT) != "0"
