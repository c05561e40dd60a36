# SPDX-License-Identifier: MIT
"""The agent, one per training process. It owns libgradb's handle and all hooks, and decides which of them are active.

While nobody watches, the costs are the wrapper of modules, the hook of optimizers, and one read of the word `armed`.
Operators and backward nodes are watched in the first step under a debugger, which shows the graph, and whenever the
debugger wants reports of nodes."""
import atexit
import contextlib
import ctypes
import os
import sys
import threading
import traceback
import weakref

import torch

from .. import _lib, changes, ending, evaluate, happenings, native
from . import (  # some only to register their commands
    allocations, aten, backward, clearing, devices, digest, exceptions, functions, live, memory, metrics, modules,
    norms, observe, oom, ops, optim, overflow_store, program as programs, rates, regions, saving, source_text, stack,
    storages, summary, swapping, training, values, warning_lines)
from ..memory import Growth
from ..lines import Lines
from ..memory_metrics import Metrics
from .evaluation import Evaluation
from .events import Events
from .guard import apart, contained
from .scaler import Scaler
from .source import Source
from .steps import Steps
from .reporter import Reporter
from .timing import Timing


_IDLE = 64  # steps at most until Python checks again whether they are idle


class _OwnMoment:
    """The context of Agent.own_moment. A class, because it is entered several times in each watched step."""
    __slots__ = ("_agent", "_before", "_apart")

    def __init__(self, agent):
        self._agent = agent

    def __enter__(self):
        agent = self._agent
        self._before, agent.watching_now = agent.watching_now, False
        self._apart = apart()
        self._apart.__enter__()

    def __exit__(self, *what):
        self._apart.__exit__(*what)
        if self._before:
            self._agent.watch_again()


class Agent(native.base("Agent")):
    """See the module. watching: operators are watched; watching_now: even at this moment, which is not gradb's own;
    dead: the agent had a fault, or is closed."""

    def __init__(self, library, program=None):
        self.library = library
        self.agent = self
        self.dead = False
        self.before_line = None
        self.watching_now = False
        self.watching = False
        self.native = None      # the native Context, where there is one
        self.in_backward = False
        self.into_leaves = False  # the innermost pass adds to gradients: backward(), not autograd.grad()
        self.shards = False     # there may be operators that shard the model
        self.detail = None      # an aten.Detail while ATen calls are nodes
        self.overflow = None    # an overflow_checker.Checker while overflows are looked for
        self.observer = None    # the observe.Observation in a step whose operators its watchers see
        self.allocations = None  # an allocations.Allocations while allocations are observed
        self.growth = Growth()
        self.live = live.Live()
        self.lines = Lines(self)
        self.source = Source(self)
        self._pid = os.getpid()
        self._ending = None
        self._thread = threading.get_ident()
        self.handle = library.gradb_open(ctypes.byref(self._options(program)))
        if not self.handle:
            raise RuntimeError("gradb_open failed: GRADB_DISABLE is set, or memory is short")
        if "ATen parallel backend: OpenMP" in torch.__config__.parallel_info():  # its threads exist in any case
            _lib.use_openmp(library, self.handle, torch._C.__file__)
        self.words = _lib.Words.from_address(self.handle)
        self._held = None       # the main optimizer, while a debugger waits for the end, to look at its parameters
        self._hidden = 0        # nested moments in which the program must not be watched
        self._recorded = False  # a whole step was watched on this connection
        self._records = False   # this step is watched for the graph
        self._mode = ops.OperatorMode(self)
        self.regions = regions.Regions(self)
        self.reporter = Reporter(self)
        self.timing = Timing(self)
        self.happenings = happenings.Happenings(self, self.timing.call_waiting)
        self.scaler = Scaler(self)
        self.events = Events(self)
        self.saving = saving.Saving(self)
        self.swapping = swapping.Swapping(self)
        self.evaluation = Evaluation(self)
        self.overflows = overflow_store.Overflows(self)
        self.observation = observe.Observation(self)
        self.clearing = clearing.Clearings(self)
        self.steps = Steps(self)
        self.metrics = metrics.Metrics(self)
        self.norms = norms.Norms(self)
        self.modules = modules.Modules(self)
        self._backward = backward.Backward(self)
        self.optimizers = optim.Optimizers(self)
        self.rates = rates.Rates(self)
        self.exceptions = exceptions.Exceptions(self)
        self.ooms = oom.Ooms(self)
        self.memory_metrics = Metrics(self, memory.device_numbers)
        self.warnings = warning_lines.Warnings()
        program_ = programs.Program(self)
        self.evaluator, self.changes = evaluate.Evaluator(self, program_), changes.Changes(program_)
        self.native = _native_context(self)
        if self.native is not None:
            backward.marks.native = self.native
            self.native.use_sites(*stack.tables(), self.reporter.scopes, self.modules.paths)
            self.live.seen, self.reporter.graph.origin_of = self.native, self.native.origin_of
        self._can_hand_over = self.native is not None and bool(native.address(library, "gradb_on_armed"))
        if self.native is not None:
            self._mode.use(self.native)
            self.source.use(self.native)

    def _options(self, program):
        options = _lib.Options()
        options.framework = b"pytorch"
        options.framework_version = _lib.text(torch.__version__)
        options.device = _lib.text(devices.of_process())
        options.program = _lib.text(program or " ".join(sys.argv))
        options.rank, options.world_size = self.rank_and_size()
        options.source = self.source.pointer()
        return options

    @staticmethod
    def rank_and_size():
        """(rank, number of ranks) of this process."""
        return _rank_and_size()

    @property
    def graph(self):
        """The nodes."""
        return self.reporter.graph

    # ---- life ----

    def install(self):
        """Installs the hooks that are cheap."""
        storages.install()
        self.regions.install()
        self.modules.install()
        self._backward.install()
        self.optimizers.install()
        self.rates.hook()
        self.exceptions.install()
        self.warnings.install()
        self.scaler.install()
        self.events.loader.install()
        self.saving.install()
        self.swapping.install()
        os.register_at_fork(after_in_child=_forked_of(weakref.ref(self)))
        atexit.register(self._exits)
        self._ending = _at_end_of_child(self._exits)

    def wait(self, seconds):
        """Stops before the first step until the debugger continues, see gradb_wait. seconds: how long to wait for a
        debugger."""
        self.library.gradb_publish(self.handle)
        self.library.gradb_wait(self.handle, seconds)
        self.happenings.begins()
        self.steps.begin()

    def is_training_thread(self):
        """Whether this is the thread that was attached; all others are left alone."""
        return threading.get_ident() == self._thread

    def thread(self):
        """The identifier of that thread."""
        return self._thread

    def runs_aside(self):
        """Whether this is a thread of PyTorch's that runs a backward pass for the training thread, which waits: that of
        a device."""
        return self.in_backward and not self.is_training_thread() \
            and isinstance(threading.current_thread(), threading._DummyThread)

    def connected(self):
        """Whether a debugger is connected."""
        if self.dead:
            return False
        if self.native is not None:
            return self.native.is_connected()
        return bool(self.library.gradb_is_connected(self.handle))

    def wants_numbers(self):
        """Whether the numbers of the step must be reported before it ends."""
        wants = getattr(self.library, "gradb_wants_numbers", None)
        return wants is None or wants(self.handle)

    def close(self, why=""):
        """Removes the hooks and closes the connection; why: shown to the user, "" for a normal end."""
        atexit.unregister(self._exits)
        if self._ending is not None:
            self._ending.cancel()
        self.set_watching(False)
        self.end_idle()
        self.observe_allocations(False)
        self.dead = True
        self.lines.forget()
        self.metrics.stop()
        self.timing.collectives.end()
        self.regions.remove()
        self.events.loader.remove()
        self.saving.remove()
        self.scaler.remove()
        self.exceptions.remove()
        self.warnings.remove()
        self.rates.remove()
        self.optimizers.remove()
        self._backward.remove()
        self.modules.remove()
        if self.native is not None:
            self.native.close()
        handle, self.handle = self.handle, None
        self.words = _lib.Words()  # the handle's words are freed with it
        if handle and os.getpid() == self._pid:
            self.library.gradb_close(handle, _lib.text(why))

    def fault(self, error):
        """Reports a fault of the agent in one line and turns it off. The training continues."""
        if self.dead:
            return
        self.dead = True
        self.watching_now = False
        place = traceback.extract_tb(error.__traceback__)
        where = "%s:%d" % (os.path.basename(place[-1].filename), place[-1].lineno) if place else "?"
        message = "gradb: internal error, the agent is off now: %s: %s (%s)" % (
            type(error).__name__, str(error).split("\n", 1)[0], where)
        print(message, file=sys.stderr)
        if self.handle:
            self.library.gradb_log(self.handle, _lib.text(message))
        if os.environ.get("GRADB_AGENT_TRACE"):
            traceback.print_exception(type(error), error, error.__traceback__)

    def _exits(self):
        error = sys.exc_info()[1] or getattr(sys, "last_value", None)
        if isinstance(error, SystemExit) or ending.is_on_purpose(error):
            error = None  # the exit status says enough
        self._training_ends()
        self.close("%s: %s" % (type(error).__name__, error) if error is not None else "")

    @contained
    def _training_ends(self):
        if not self.dead and os.getpid() == self._pid and not self.library.gradb_wants_stop(self.handle):
            with apart():
                self.events.settle()
            self.happenings.ends()
            self._held = None

    def _forked(self):
        self.dead = True
        self.lines.forget()
        self.watching_now = False
        self.handle = None

    # ---- what is on ----

    def step_began(self):
        """Decides whether this step is watched."""
        self.evaluator.resumed()
        self.changes.resumed()
        connected = self.library.gradb_is_connected(self.handle)
        if not connected:
            self._recorded = False
            self.observe_allocations(False)
            self.overflows.disarm()
            self.observation.disarm()
        self._records = connected and not self._recorded
        self.timing.step_begins(connected)
        looks = bool(connected and (self._records or self.words.armed != 0 or self.timing.on
                                   or self.overflow is not None or self.allocations is not None
                                   or self.observation.wants(self.steps.step)
                                   or self.source.kept.needs_operators() or self.exceptions.mode == "all"))
        self._held = self.steps.main() if connected and self.happenings.is_awaited("end") else None
        self.reporter.begin_step(self.steps.step, looks)
        self.reporter.parameters.check_names()
        self.set_watching(looks)
        if self.allocations is not None:
            self.allocations.step_begins(self.steps.step)
        if self.observation.on:
            self.observation.step_begins(self.steps.step)
        if self.native is not None and not looks:
            self._go_idle(bool(connected))

    def _go_idle(self, connected):
        """Nobody watches: lets the native module run the next steps alone, until something is asked for."""
        quiet = (self.source.kept.is_empty() and self.reporter.graph.is_quiet() and not self.regions.closed
                 and not self.happenings.each_step and not self.happenings.is_to_end)
        device = devices.used()
        recording = device.is_capturing if device is not None else None
        most = self.timing.collectives.most_idle(self.timing.sampling.most_idle(_IDLE)) if connected else _IDLE
        self.native.idle(most if quiet else 0, connected, recording)
        if quiet and self._may_hand_over():
            self.native.hand_over(True)
            self.modules.hand_over()
            self.optimizers.hand_over()

    def _may_hand_over(self):
        """Whether our wrappers may be out of use in idle steps. Not around compiled code, which must find what it was
        compiled with; and only on the main thread, where they are put back."""
        return (self._can_hand_over and not self.regions.compiles and not self.modules.path()
                and self._thread == threading.main_thread().ident)

    def take_back(self):
        """Puts our wrappers back. At any time, on the training thread."""
        self.native.hand_over(False)
        self.modules.take_back()
        self.optimizers.take_back()

    def forward_missed(self):
        """An idle step runs backward, but no module has announced the forward pass."""
        self.take_back()
        self.modules.missed()

    def heed_next_pass(self):
        """The next forward pass must not begin without Python, which learns there that an evaluation is over."""
        if self.native is not None:
            self.native.idle(0, False, None)

    def end_idle(self):
        """Something was asked for: the next step decides again what is watched."""
        if self.native is not None:
            self.native.idle(0, False, None)
            self.take_back()

    def step_ends(self):
        """The step's last node has run."""
        if self._records:
            self._recorded = True
        self.reporter.end_step()

    def set_watching(self, on):
        """Begins or ends watching operators."""
        self.regions.watch()
        before, self.watching = self.watching, on
        if on:
            self.end_idle()
            self.shards = "torch.distributed.fsdp" in sys.modules and _has_process_group()
            if not before:
                self.modules.catch_up()
        if on or before:
            self._apply()

    def _apply(self):
        """Pushes or pops the mode, as wanted now."""
        self.watching_now = self._may_watch()
        functions.hook(self._mode if self.watching_now else None)
        if self.steps.in_operator:
            return  # PyTorch has taken the mode off for the operator that runs, and will put it back
        (ops.push if self.watching_now else ops.pop)(self._mode)

    def _may_watch(self):
        return self.watching and not self.dead and not self._hidden and not self.regions.closed

    def stop_watching(self):
        """Stops intercepting operators after a fault."""
        if self.watching and self.is_training_thread():
            self.set_watching(False)

    def region_changed(self):
        """Code that must not be watched begins or ends."""
        if self.watching:
            self._apply()

    def pause(self):
        """Stops intercepting inside an optimizer, where nothing is reported; until `resume`."""
        if self.watching:
            ops.pop(self._mode)

    def resume(self):
        """Intercepts again: the operators are the program's."""
        if self._may_watch():
            ops.push(self._mode)

    def unintercepted(self, function, *args, **kwargs):
        """Calls a function of PyTorch without intercepting the many operators in it, none of which is a node."""
        again = None
        if self.watching and not self.dead:
            again = ops.off(self._mode)
            if again is not None:  # else: another thread, or nobody watches
                self.reporter.before_write()
        try:
            return function(*args, **kwargs)
        finally:
            if again is not None and self._may_watch():
                again()

    def watch_again(self):
        """Watches again after a moment of gradb's own."""
        self.watching_now = self.watching and not self.dead

    def own_moment(self):
        """A moment of gradb's own: the operators inside are not the program's."""
        return _OwnMoment(self)

    @contextlib.contextmanager
    def off_duty(self):
        """A moment in which the agent takes part in nothing: the user evaluates code while the training is stopped."""
        again = ops.off(self._mode)
        watching, dead = self.watching, self.dead
        self.watching, self.dead = False, True
        try:
            yield
        finally:
            self.watching, self.dead = watching, dead
            if again is not None:
                again()

    @contextlib.contextmanager
    def hidden_moment(self):
        """A moment of the program in which operators must not be intercepted."""
        before = self.watching_now
        self._hidden += 1
        self._apply()
        try:
            yield
        finally:
            self._hidden -= 1
            if before:
                self._apply()

    def modes_for_backward(self):
        """Watches operators inside a backward pass too. Returns functions that undo it, in order."""
        undo = []
        if self.watching and not self.regions.closed:
            if self.detail is not None and not self.in_backward:
                undo.append(self.detail.begin())
            if self.allocations is not None:
                end = self.allocations.begin("backward")
                if end is not None:
                    undo.append(end)
            again = ops.again(self._mode)
            if again is not None:
                undo.append(again)
        return undo

    def observe_allocations(self, on):
        """Begins or ends observing allocations, from the next step on."""
        if on and self.allocations is None:
            self.allocations = allocations.Allocations(self)
            with self.own_moment(), values.outside_training():
                self.allocations.step_begins(self.steps.step, whole=False)
        elif not on and self.allocations is not None:
            observed, self.allocations = self.allocations, None
            observed.close()

    def running_pass(self):
        """The backward.PassNode that runs; None: unknown."""
        return self._backward.running()

    def backward_depth(self):
        """How many backward passes are running, one inside another."""
        return self._backward.depth

    def show_detail(self, on):
        """Turns ATen calls as nodes on or off, from the next step on."""
        self.detail = aten.Detail(self) if on else None
        self._recorded = self._recorded and not on

    def armed(self):
        """Whether the debugger wants reports of nodes."""
        return self.words.armed != 0

    def watch_if_asked(self):
        """Begins to watch in mid-step when the debugger wants reports of nodes. Returns whether operators are watched.
        Called wherever the training passes: at each module, backward pass, optimizer and batch."""
        asked = self.words.armed or self.overflow is not None or self.allocations is not None
        if asked and not self.watching_now and not self.dead and self.is_training_thread() \
                and not self.regions.are_closed():
            self.set_watching(True)
        return self.watching_now

    @contained
    def module_called(self):
        """A module is called, where a forward pass may begin."""
        if not self.steps.forward and not self.dead and self.is_training_thread():
            self.steps.forward_begins()
        return self.watch_if_asked()

    def discover(self, optimizer):
        """Names the modules that the optimizer trains after the variables in the user's frames."""
        self.modules.discover(optimizer)


# The functions of libgradb that gradb._native calls, in its order.
ADDRESSES = ("gradb_did_slow", "gradb_did_with_slow", "gradb_did_with_same_slow", "gradb_step_begin", "gradb_step_end",
             "gradb_enter", "gradb_scalar", "gradb_timing", "gradb_is_connected", "gradb_wants_stop",
             "gradb_wants_checkpoint", "gradb_on_armed", "gradb_try_enter", "gradb_try_step")


def _forked_of(agent):
    """For os.register_at_fork, which has no counterpart that removes it: it must not keep the agent alive."""
    def forked():
        if agent() is not None:
            agent()._forked()
    return forked


def _at_end_of_child(function):
    """Registers a function with multiprocessing, whose forked children end without atexit. Returns an object with
    cancel(); None elsewhere."""
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if process is None or util is None or process.parent_process() is None:
        return None
    return util.Finalize(None, function, exitpriority=-1)


def _rank_and_size():
    """From torch.distributed where it is initialised (as in a process of torch.multiprocessing.spawn), else from the
    environment."""
    if _has_process_group():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return _number("RANK", 0), _number("WORLD_SIZE", 1)


def _native_context(agent):
    """The native Context of a complete agent; None where there is no native module."""
    library = agent.library
    if native.module is None or not isinstance(library, ctypes.CDLL):  # tests use other objects
        return None
    return native.module.Context(
        agent, (torch.Tensor, apart, values.storage_of, torch._C._get_tracing_state, torch.is_grad_enabled,
                torch._C._is_torch_function_mode_enabled, torch.nn.Parameter, torch._C._DisableTorchDispatch,
                *backward.NATIVE_PARTS, ops.stand_in, swapping.Ref), agent.handle,
        tuple(native.address(library, name) for name in ADDRESSES))


def _has_process_group():
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _number(name, default):
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else default


