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

from ..clock import BACKWARD, OPTIMIZER
from ..wrappers import Wrappers

KINDS = (nn.Optimizer, experimental.Optimizer)
JIT = "MS_JIT"  # "0" in the environment: nothing is compiled
_GRAPH_MODE = mindspore.GRAPH_MODE
_EXITS = ("asnumpy", "item", "tolist", "__float__", "__array__")
_READS = _EXITS + ("__bool__", "__int__", "__index__", "__str__")  # they wait for a value
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
        compiles = self.agent.timing.compiles
        self._wrap(api._JitExecutor, "compile", self._compile(compiles.function(api._JitExecutor.compile)))
        self._wrap(api._CellGraphExecutor, "compile", compiles.cell(api._CellGraphExecutor.compile))
        self._wrap(api._PyNativeExecutor, "new_graph", self._new_graph(api._PyNativeExecutor.new_graph))
        self._wrap(api._PyNativeExecutor, "end_graph", self._end_graph(api._PyNativeExecutor.end_graph))
        self._wrap(api._PyNativeExecutor, "grad", self._grad(api._PyNativeExecutor.grad))
        for name in ("train", "fit", "eval"):
            self._wrap(mindspore.Model, name, self._model(name, getattr(mindspore.Model, name)))
        self.agent.scaler.wrap(self._wrap)
        mode = getattr(mindspore, "MsDispatchMode", None)
        for name in ("__enter__", "__exit__") if mode is not None else ():
            self._wrap(mode, name, self._mode(getattr(mode, name), name == "__enter__"))
        for name in filter(functools.partial(hasattr, mindspore.Tensor), _READS):
            self._wrap(mindspore.Tensor, name, self._read(name, getattr(mindspore.Tensor, name)))
        self._wrap(nn.DistributedGradReducer, "__call__", self._reducer(self._cell(cell)))

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
        steps, timing = self.agent.steps, self.agent.timing
        section = timing.turn(timing.until_done())
        steps.optimizer_begins(optimizer, args[0])
        self.optimizing = True
        timing.turn(OPTIMIZER)
        try:
            result = original(optimizer, *args, **kwargs)
            if timing.on:
                timing.wait_for(optimizer.parameters)
        except Exception as error:
            self._failed(error, "optimizer/" + type(optimizer).__name__)
            raise
        finally:
            self.optimizing = False
            timing.turn(section)
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
        steps, timing = self.agent.steps, self.agent.timing
        self.inside, self.compiled, self._phase = True, False, ""
        section = timing.section()
        try:
            steps.call_begins(called)
            if compiled:
                self._runs_compiled()
                timing.compiled_begins(is_own(called) and not is_graph_mode())
            result = self._inside(original, called, args, kwargs, compiled) if self._looks(compiled) and flat \
                else original(called, *args, **kwargs) if flat else original(called, args, kwargs)
            if self.compiled:
                timing.turn(timing.until_done())
                steps.compiled_ended()
        except Exception as error:
            self._failed(error)
            raise
        finally:
            self.inside = False
            timing.turn(section)
        if compiled or not flat:
            self.agent.compiled.ran(called, self._phase)
        steps.call_ended(called, result, self.compiled)
        return result

    def _looks(self, compiled):
        """Whether the outermost call is looked into: a compiled one has no times of operators."""
        looking = self.agent.looking
        return looking and not (compiled and looking.only_times)

    def _inside(self, original, called, args, kwargs, compiled):
        """Runs an outermost call in a step that is looked into."""
        looking = self.agent.looking
        if not compiled:
            return looking.run_cell(original, called, args, kwargs)
        run = _uncompiled(called, original)
        with self.agent.timing.stopped():
            call = looking.look_into(called, lambda: run(*args, **kwargs), lambda: original(called, *args, **kwargs))
        return call()

    def _jit(self, original):
        hooks = self

        @functools.wraps(original)
        def __call__(executor, *args, **kwargs):
            if hooks.agent.dead or hooks.optimizing or threading.get_ident() != hooks._thread:
                return original(executor, *args, **kwargs)
            if hooks.inside:
                hooks._runs_compiled()
                hooks._phase = ""
                timing = hooks.agent.timing
                section = timing.compiled_begins(is_own(executor))
                try:
                    result = original(executor, *args, **kwargs)
                finally:
                    timing.turn(section)
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

    def _new_graph(self, original):
        """A forward pass that gradients are wanted of begins."""
        hooks = self

        @functools.wraps(original)
        def new_graph(executor, called, *args, **kwargs):
            agent = hooks.agent
            if not agent.dead and not agent.steps.evaluating and getattr(called, "training", True) \
                    and threading.get_ident() == hooks._thread:
                agent.timing.forward_begins()
                agent.steps.forward_begins()
            return original(executor, called, *args, **kwargs)
        return new_graph

    def _end_graph(self, original):
        """A forward pass that gradients are wanted of has ended: its output is the loss."""
        hooks = self

        @functools.wraps(original)
        def end_graph(executor, called, output, *args, **kwargs):
            result = original(executor, called, output, *args, **kwargs)
            if not hooks.agent.dead:
                if threading.get_ident() == hooks._thread:
                    hooks.agent.timing.forward_ended()
                hooks.agent.steps.forward_ended(called, output)
            return result
        return end_graph

    def _grad(self, original):
        """A backward pass in PyNative mode."""
        hooks = self

        @functools.wraps(original)
        def grad(*args, **kwargs):
            if threading.get_ident() != hooks._thread:
                return hooks._go_back(original, args, kwargs)
            section = hooks.agent.timing.turn(BACKWARD)
            try:
                return hooks._go_back(original, args, kwargs)
            finally:
                hooks.agent.timing.turn(section)
        return grad

    def _go_back(self, original, args, kwargs):
        looking, result = self.agent.looking, ()
        if not looking:
            return original(*args, **kwargs)
        looking.backward_begins()
        try:
            result = original(*args, **kwargs)
            return result
        except Exception as error:
            self._failed(error)
            raise
        finally:
            looking.backward_ended(result)

    def _reducer(self, original):
        """Gradients are added up over ranks; where nothing is compiled around it, Python calls it."""
        hooks = self

        @functools.wraps(original)
        def __call__(cell, *args, **kwargs):
            if hooks.agent.dead or is_graph_mode() or threading.get_ident() != hooks._thread:
                return original(cell, *args, **kwargs)
            return hooks.agent.timing.reduces(original, cell, args, kwargs)
        return __call__

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

    def _read(self, name, original):
        """A function that waits for a tensor's value. Most turn it into a number or an array, through which no gradient
        comes back."""
        hooks, is_exit = self, name in _EXITS

        @functools.wraps(original)
        def read(tensor, *args, **kwargs):
            looking, timing = hooks.agent.looking, hooks.agent.timing
            if looking and is_exit and not looking.off and threading.get_ident() == hooks._thread:
                looking.left_by(name, tensor, sys._getframe(1))
            if timing.listens and threading.get_ident() == hooks._thread:
                return timing.reads(name, original, tensor, args, kwargs)
            return original(tensor, *args, **kwargs)
        return read

    def _model(self, name, original):
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
            if "dataset_sink_mode" in signature.parameters and name != "eval":
                hooks.agent.timing.sink = bool(bound.arguments.get("dataset_sink_mode", False))
            before, data.told = data.told, True
            try:
                return original(*bound.args, **bound.kwargs)
            finally:
                data.told = before
        return run


def is_own(called):
    """Whether a compiled call is a function of MindSpore's own that computes no loss: an optimizer, amp's unscaling."""
    if isinstance(called, nn.Cell):
        return isinstance(called, KINDS)
    function = getattr(called, "fn", None)
    return isinstance(called, KINDS) or (getattr(function, "__module__", None) or "").startswith("mindspore.") \
        and not getattr(function, "__qualname__", "").startswith("_Grad.")


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
        self._happens("evaluation_begins", self._agent.steps.computed())

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
