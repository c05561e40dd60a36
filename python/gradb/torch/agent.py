# SPDX-License-Identifier: MIT
"""The agent: one per training process. Owns libgradb's handle and all hooks, and decides what is on.

While nobody asks, what runs is the wrapper of modules, the hook of optimizers, and one read of the word
`armed`. Operators and backward nodes are looked at in the first step under a debugger, which shows the graph,
and whenever the debugger wants to hear of nodes.
"""
import atexit
import contextlib
import ctypes
import os
import sys
import threading
import traceback
import weakref

import torch

from .. import _lib, native
from . import (aten, backward, exceptions, listing, modules, ops, optim, origins, ranks, regions,
               training, values, warned)
from .events import Events
from .guard import contained
from .scaler import Scaler
from .source import Source
from .steps import Steps
from .telling import Telling
from .timing import Timing


_IDLE = 64  # steps at most until Python looks again whether they are


class Agent(native.base("Agent")):
    """See the module. looking: operators are to be told of now; wanted: they are, but for moments of our own; dead:
    a fault of ours, or the end."""

    def __init__(self, library, program=None):
        self.library = library
        self.agent = self
        self.dead = False
        self.looking = False
        self.wanted = False
        self.native = None      # the context of gradb._native, where that is there
        self.in_backward = False
        self.into_leaves = False  # whether the innermost pass adds to gradients: backward(), not autograd.grad()
        self.shards = False     # there may be operators that shard models
        self.detail = None      # aten.Detail while the inside of operators is asked for
        self.overflow = None    # overflow.Checker while outputs that are not finite are looked for
        self.live = values.Live()
        self.source = Source(self)
        self._pid = os.getpid()
        self._ending = None
        self._thread = threading.get_ident()
        self.handle = library.gradb_open(ctypes.byref(self._options(program)))
        if not self.handle:
            raise RuntimeError("gradb_open refused: GRADB_DISABLE is set, or memory is short")
        self.words = _lib.Words.from_address(self.handle)
        self._hidden = 0        # moments of the program's that must not be seen, inside each other
        self._recorded = False  # a whole step was looked at on this connection
        self._records = False   # this one is
        self._mode = ops.OperatorMode(self)
        self.regions = regions.Regions(self)
        self.telling = Telling(self)
        self.timing = Timing(self)
        self.scaler = Scaler(self)
        self.events = Events(self)
        self.overflows = origins.Overflows(self)
        self.clearing = training.Clearings(self)
        self.steps = Steps(self)
        self.modules = modules.Modules(self)
        self._backward = backward.Backward(self)
        self.optimizers = optim.Optimizers(self)
        self.exceptions = exceptions.Exceptions(self)
        self.warnings = warned.Warnings()
        self.native = _native_context(self)
        self._can_hand_over = self.native is not None and bool(native.address(library, "gradb_on_armed"))
        if self.native is not None:
            self._mode.use(self.native)
            self.source.use(self.native)

    def _options(self, program):
        options = _lib.Options()
        options.framework = b"pytorch"
        options.framework_version = _lib.text(torch.__version__)
        options.device = _lib.text(_device_name())
        options.program = _lib.text(program or " ".join(sys.argv))
        options.rank, options.world_size = _rank_and_size()
        options.source = self.source.pointer()
        return options

    # ---- life ----

    def install(self):
        """Puts the cheap hooks on."""
        self.regions.install()
        self.modules.install()
        self._backward.install()
        self.optimizers.install()
        self.exceptions.install()
        self.warnings.install()
        self.scaler.install()
        self.events.loader.install()
        os.register_at_fork(after_in_child=_forked_of(weakref.ref(self)))
        atexit.register(self._exits)
        self._ending = _at_end_of_child(self._exits)

    def wait(self, seconds):
        """Stands before the first step until the debugger lets go; see gradb_wait."""
        self.library.gradb_publish(self.handle)
        self.library.gradb_wait(self.handle, seconds)
        self.steps.begin()

    def is_training_thread(self):
        """Whether this thread is the one that was attached: all others are left alone."""
        return threading.get_ident() == self._thread

    def connected(self):
        """Whether a debugger is there."""
        return not self.dead and bool(self.library.gradb_is_connected(self.handle))

    def close(self, why=""):
        """Takes the hooks off and says goodbye."""
        atexit.unregister(self._exits)
        if self._ending is not None:
            self._ending.cancel()
        self.look(False)
        self.stir()
        self.dead = True
        self.regions.remove()
        self.events.loader.remove()
        self.scaler.remove()
        self.exceptions.remove()
        self.warnings.remove()
        self.optimizers.remove()
        self._backward.remove()
        self.modules.remove()
        if self.native is not None:
            self.native.close()
        handle, self.handle = self.handle, None
        self.words = _lib.Words()  # those of the handle go with it
        if handle and os.getpid() == self._pid:
            self.library.gradb_close(handle, _lib.text(why))

    def fault(self, error):
        """A fault of our own: one line, and the training goes on without us."""
        if self.dead:
            return
        self.dead = True
        self.looking = False
        place = traceback.extract_tb(error.__traceback__)
        where = "%s:%d" % (os.path.basename(place[-1].filename), place[-1].lineno) if place else "?"
        message = "gradb: a fault of the agent, which is off from now on: %s: %s (%s)" % (
            type(error).__name__, str(error).split("\n", 1)[0], where)
        print(message, file=sys.stderr)
        if self.handle:
            self.library.gradb_log(self.handle, _lib.text(message))
        if os.environ.get("GRADB_AGENT_TRACE"):
            traceback.print_exception(type(error), error, error.__traceback__)

    def _exits(self):
        error = sys.exc_info()[1] or getattr(sys, "last_value", None)
        error = None if isinstance(error, SystemExit) else error  # its status says all
        self.close("%s: %s" % (type(error).__name__, error) if error is not None else "")

    def _forked(self):
        self.dead = True
        self.looking = False
        self.handle = None

    # ---- what is on ----

    def step_began(self):
        """Decides what this step is looked at for."""
        connected = self.library.gradb_is_connected(self.handle)
        if not connected:
            self._recorded = False
            self.overflows.disarm()
        self._records = connected and not self._recorded
        looks = bool(connected and (self._records or self.words.armed != 0 or self.timing.on
                                   or self.overflow is not None
                                   or self.source.kept.needs_operators() or self.exceptions.mode == "all"))
        self.telling.begin_step(self.steps.step, looks)
        self.look(looks)
        if self.native is not None and not looks:
            self._rest_from_python(bool(connected))

    def _rest_from_python(self, connected):
        """Nobody looks: the native module may do so many steps alone, unless anything is asked for meanwhile."""
        quiet = self.source.kept.is_empty() and self.telling.graph.is_quiet() and not self.regions.closed
        recording = torch.cuda.is_current_stream_capturing if torch.cuda.is_initialized() else None
        self.native.idle(_IDLE if quiet else 0, connected, recording)
        if quiet and self._may_hand_over():
            self.native.hand_over(True)
            self.modules.hand_over()
            self.optimizers.hand_over()

    def _may_hand_over(self):
        """Whether our wrappers may stand aside in idle steps: what compiled code went through must stay as it is, and
        what takes them back is called on the main thread."""
        return (self._can_hand_over and not self.regions.compiles and not self.modules.path()
                and self._thread == threading.main_thread().ident)

    def take_back(self):
        """Our wrappers are where they were. At any time, in the thread that trains."""
        self.native.hand_over(False)
        self.modules.take_back()
        self.optimizers.take_back()

    def forward_missed(self):
        """In an idle step no module has told that the forward pass began."""
        self.take_back()
        self.modules.missed()

    def stir(self):
        """Something is asked for: the next step's begin finds out what."""
        if self.native is not None:
            self.native.idle(0, False, None)
            self.take_back()

    def step_ends(self):
        """The step's last node has run."""
        if self._records:
            self._recorded = True
        self.telling.end_step()

    def look(self, on):
        """Operators are told of from now on, or not."""
        self.regions.watch()
        before, self.wanted = self.wanted, on
        if on:
            self.stir()
            self.shards = "torch.distributed.fsdp" in sys.modules and _has_process_group()
            if not before:
                self.modules.catch_up()
        if on or before:
            self._apply()

    def _apply(self):
        """Puts the mode on or takes it off, as is wanted here."""
        self.looking = self._may_look()
        (ops.push if self.looking else ops.pop)(self._mode)

    def _may_look(self):
        return self.wanted and not self.dead and not self._hidden and not self.regions.closed

    def leave(self):
        """After a fault of our own: operators are intercepted no more."""
        if self.wanted and self.is_training_thread():
            self.look(False)

    def region_changed(self):
        """Compiled code, which must not be looked at, begins or is over."""
        if self.wanted:
            self._apply()

    def rest(self):
        """Inside of an optimizer nothing is told of, and nothing needs to be intercepted: until `wake`."""
        if self.wanted:
            ops.pop(self._mode)

    def wake(self):
        """The operators are the program's again."""
        if self._may_look():
            ops.push(self._mode)

    def unintercepted(self, function, *args, **kwargs):
        """Calls a function of torch that does much of what is no operator."""
        again = None
        if self.wanted and not self.dead:
            again = ops.off(self._mode)
            if again is not None:  # else it is another thread, or nobody looks
                self.telling.before_write()
        try:
            return function(*args, **kwargs)
        finally:
            if again is not None and self._may_look():
                again()

    def look_again(self):
        """After a moment of our own: operators are the program's again."""
        self.looking = self.wanted and not self.dead

    @contextlib.contextmanager
    def unseen(self):
        """A moment of our own: the operators inside are not the program's."""
        before, self.looking = self.looking, False
        try:
            with ops.apart():
                yield
        finally:
            if before:
                self.look_again()

    @contextlib.contextmanager
    def hidden(self):
        """A moment of the program's in which operators must not be intercepted at all."""
        before = self.looking
        self._hidden += 1
        self._apply()
        try:
            yield
        finally:
            self._hidden -= 1
            if before:
                self._apply()

    def modes_for_backward(self):
        """Operators are looked at inside a backward pass, too. Returns functions that undo it, in order."""
        undo = []
        if self.wanted and not self.regions.closed:
            if self.detail is not None and not self.in_backward:
                undo.append(self.detail.begin())
            again = ops.again(self._mode)
            if again is not None:
                undo.append(again)
        return undo

    def backward_depth(self):
        """How many backward passes run inside each other."""
        return self._backward.depth

    def show_detail(self, on):
        """The inside of operators is asked for, or no more; from the next step on they are looked at."""
        self.detail = aten.Detail(self) if on else None
        self._recorded = self._recorded and not on

    def armed(self):
        """Whether the debugger wants to hear of nodes."""
        return self.words.armed != 0

    def look_if_asked(self):
        """Begins to look in mid-step when the debugger wants to hear of nodes. Whether we look. Called wherever
        the training can be heard of: at each module, backward pass, optimizer and batch."""
        asked = self.words.armed or self.overflow is not None
        if asked and not self.looking and not self.dead and self.is_training_thread() \
                and not self.regions.are_closed():
            self.look(True)
        return self.looking

    @contained
    def module_called(self):
        """A module is called; it may be where a forward pass begins."""
        if not self.steps.forward and not self.dead and self.is_training_thread():
            self.steps.forward_begins()
        return self.look_if_asked()

    def discover(self, optimizer):
        """Names what the optimizer trains by the variables of the user's frames."""
        self.modules.discover(optimizer)


# Functions of libgradb that gradb._native calls, in the order that it has them in.
ADDRESSES = ("gradb_did_slow", "gradb_did_with_slow", "gradb_did_with_same_slow", "gradb_step_begin", "gradb_step_end",
             "gradb_enter", "gradb_scalar", "gradb_timing", "gradb_is_connected", "gradb_wants_stop",
             "gradb_wants_checkpoint", "gradb_on_armed", "gradb_try_enter", "gradb_try_step")


def _forked_of(agent):
    """What os.register_at_fork is given, which can never be taken back: it must not keep the agent."""
    def forked():
        if agent() is not None:
            agent()._forked()
    return forked


def _at_end_of_child(function):
    """What multiprocessing forked ends without atexit. Returns what can be cancelled; None elsewhere."""
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if process is None or util is None or process.parent_process() is None:
        return None
    return util.Finalize(None, function, exitpriority=-1)


def _rank_and_size():
    """Of torch.distributed where it is initialised, as in a process of torch.multiprocessing.spawn; else of the
    environment."""
    if _has_process_group():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return _number("RANK", 0), _number("WORLD_SIZE", 1)


def _native_context(agent):
    """What gradb._native needs to take over what is known, of an agent that is all there; None: it is not there."""
    library = agent.library
    if native.module is None or not isinstance(library, ctypes.CDLL):  # tests have others
        return None
    return native.module.Context(
        agent, (torch.Tensor, ops.apart, values.storage_of, torch._C._get_tracing_state, torch.is_grad_enabled,
                torch._C._is_torch_function_mode_enabled, torch.nn.Parameter, torch._C._DisableTorchDispatch,
                *backward.NATIVE_PARTS, ops.stand_in), agent.handle,
        tuple(native.address(library, name) for name in ADDRESSES))


def _has_process_group():
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _number(name, default):
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else default


def _device_name():
    if torch.cuda.is_available() and "LOCAL_RANK" in os.environ:
        return "cuda:" + os.environ["LOCAL_RANK"]
    return "cuda" if torch.cuda.is_available() else "cpu"
