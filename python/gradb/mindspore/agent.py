# SPDX-License-Identifier: MIT
"""The agent of one MindSpore training: it holds libgradb's handle, the hooks and the graph."""
import atexit
import contextlib
import ctypes
import os
import sys
import traceback
import weakref

import mindspore

from .. import _lib, changes, ending, evaluate, happenings
from . import (  # noqa: F401: some only to register their commands
    checkpoint, compiled, data, exceptions, hooks, memory, metrics, norms, oom, operators, program as programs, ranks,
    rates, saving, summary, taps, timing, values, words)
from ..lines import Lines
from ..memory import Growth
from ..memory_metrics import Metrics
from .graph import Graph
from .guard import guarded
from .outside import INPUT, Outside
from .overflow import Overflows
from .parameters import Parameters
from .scaler import Scaler
from .source import Source
from .steps import Steps


_NOTHING = contextlib.nullcontext()


class Agent:
    """library: libgradb; handle: None after close(); dead: nothing is reported any more; looking: the
    operators.Looking of a step whose operators are watched, or None."""

    def __init__(self, library, program=None):
        self.library = library
        self.dead = False
        self.looking = None
        self.always_looks = False
        self.overflow = None    # an overflow.Checker while overflows are looked for
        self.overflows = Overflows(self)
        self.gives_gradients = True  # Python sees the gradients of a step that is not watched
        self.gradient_asked = -1     # the last step at whose end the debugger asked for a gradient
        self.followed = 0       # the last step whose operators and backward passes were all watched
        self.loss = None        # Node at which the first backward pass of that step began
        self._cut_off = frozenset()  # ids of the parameters that none of its backward passes led to
        self.exits = {}         # of that step, see operators.Looking
        self._looked = None     # of the step that has just ended
        self._recorded = False  # a whole step was watched
        self._asked = ()        # (Words.changes, nodes) when it was asked last which gradients are wanted
        self._wants_any = False  # the answer: some are
        self._said_rehearsal = False
        self._said = set()
        self.lines = Lines(self)
        self.source = Source(self)
        self._pid = os.getpid()
        self.handle = library.gradb_open(ctypes.byref(self._options(program)))
        if not self.handle:
            raise RuntimeError("gradb_open failed: GRADB_DISABLE is set, or memory is short")
        self.words = _lib.Words.from_address(self.handle)
        self.graph = Graph(library, self.handle)
        self.parameters = Parameters(self)
        self.outside = Outside(self)
        self.timing = timing.Timing(self)
        self.happenings = happenings.Happenings(self, self.timing.call_waiting)
        self.data = data.Data(self)
        self.saving = saving.Saving(self)
        self.steps = Steps(self)
        self.scaler = Scaler(self)
        self.compiled = compiled.Compiled(self)
        self.rates = rates.Rates(self)
        self.hooks = hooks.Hooks(self)
        self.metrics = metrics.Metrics(self)
        self.norms = norms.Norms(self)
        self.exceptions = exceptions.Exceptions(self)
        self.ooms = oom.Ooms(self)
        self.memory_metrics = Metrics(self, memory.device_numbers)
        self.growth = Growth()
        self.taps = taps.Taps(self)
        program_ = programs.Program(self)
        self.evaluator, self.changes = evaluate.Evaluator(self, program_), changes.Changes(program_)

    def _options(self, program):
        options = _lib.Options()
        options.framework = b"mindspore"
        options.framework_version = _lib.text(mindspore.__version__)
        options.device = _lib.text(mindspore.get_context("device_target").lower())
        options.program = _lib.text(program or " ".join(sys.argv))
        options.rank, options.world_size = ranks.rank_and_size()
        options.source = self.source.pointer()
        return options

    # ---- life ----

    def install(self):
        """Installs the hooks."""
        self.hooks.install()
        self.data.install()
        self.saving.install()
        self.exceptions.install()
        self.rates.hook()
        os.register_at_fork(after_in_child=_forked_of(weakref.ref(self)))
        atexit.register(self._exits)

    def wait(self, seconds):
        """Stops before the first step until the debugger continues, see gradb_wait."""
        self.graph.publish()
        self.library.gradb_publish(self.handle)
        self.library.gradb_wait(self.handle, seconds)
        self.happenings.begins()
        self.timing.begins()
        self.steps.begin()

    @staticmethod
    def runs_aside():
        """Whether this thread runs the program's code for the training thread, which waits: there is none."""
        return False

    def connected(self):
        """Whether a debugger is connected."""
        return not self.dead and bool(self.library.gradb_is_connected(self.handle))

    def close(self, why=""):
        """Removes the hooks and closes the connection; why: shown to the user, "" for a normal end."""
        atexit.unregister(self._exits)
        self.dead = True
        self.lines.forget()
        self.metrics.stop()
        self.hooks.remove()
        self.data.remove()
        self.saving.remove()
        self.exceptions.remove()
        self.rates.remove()
        handle, self.handle = self.handle, None
        self.words = _lib.Words()  # the handle's words are freed with it
        if handle and os.getpid() == self._pid:
            self.library.gradb_close(handle, _lib.text(why))

    def fault(self, error):
        """Reports a fault of the agent in one line and turns it off. The training continues."""
        if self.dead:
            return
        self.dead = True
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
        self.close("%s: %s" % (type(error).__name__, str(error).split("\n", 1)[0]) if error is not None else "")

    @guarded
    def tell(self, name, *args):
        """Something happened: calls that method of the happenings."""
        getattr(self.happenings, name)(*args)

    def _training_ends(self):
        if self.handle and os.getpid() == self._pid and not self.library.gradb_wants_stop(self.handle):
            self.tell("ends")

    @property
    def agent(self):
        """Itself, for `guarded`."""
        return self

    def forked(self):
        """This is a forked child: the agent belongs to its parent."""
        self.dead = True
        self.lines.forget()
        self.handle = None

    # ---- the training ----

    def before_line(self):
        """The program stops at a line: a step of which nothing has run yet, but whose forward pass has begun, is the
        running one."""
        if not self.steps.is_between() and self.steps.phase == _lib.NO_PHASE:
            self.steps.enter(_lib.FORWARD)

    def step_begins(self):
        """A step begins: decides whether its operators are watched."""
        self.evaluator.resumed()
        self.changes.resumed()
        if self.overflow is not None and not self.connected():
            self.overflows.disarm()
        connected = self.connected()
        self.timing.step_begins(connected)
        if connected:
            wanted = self._wants_operators()
            if wanted or self.timing.on:
                self.looking = operators.Looking(self, not wanted)

    def _wants_operators(self):
        """Whether the debugger wants to see what happens inside the step. The first step in PyNative mode is watched,
        so that the graph is known; in graph mode the first one in which it waits for a node that may become known."""
        if self.always_looks or self.exceptions.mode == "all" or self.overflow is not None or self.ooms.on:
            return True
        if not self._recorded and not hooks.is_graph_mode():
            return True
        if self._wants_gradients():
            return True
        if not self._recorded:
            new = getattr(self.library, "gradb_wants_new", None)
            return bool(self.words.armed) or new is not None and new(self.handle)
        if not self.words.armed:
            return False
        wants, handle = self.library.gradb_wants, self.handle
        return any(wants(handle, node.id) for node in self.graph.by_id.values()
                   if node.phase != _lib.NO_PHASE and (node.kind != _lib.GRADIENT or node.get is None
                                                       or not self.gives_gradients))

    def _wants_gradients(self):
        """Whether the debugger wants, at the end of this step, gradients that Python may not see otherwise."""
        if self.gives_gradients and self.steps.step > 1:
            return False
        if self.gradient_asked == self.steps.step - 1:
            return True
        asked = self.words.changes, len(self.graph.by_id)
        if asked != self._asked:
            self._asked = asked
            wants, handle = getattr(self.library, "gradb_wants_at_end", None), self.handle
            self._wants_any = wants is not None and any(
                wants(handle, node.id) for node in self.graph.by_id.values()
                if node.kind == _lib.GRADIENT and node.get is not None)
        return self._wants_any

    def say(self, text):
        """Shows the user a line at once."""
        self.library.gradb_event(self.handle, b"unseen", _lib.text(text), 0)

    def say_once(self, text):
        """The same, but not twice."""
        if text not in self._said:
            self._said.add(text)
            self.say(text)

    def stop_looking(self):
        """The step is over, or has failed: its operators are not watched any more; their outputs stay."""
        if self.looking is not None:
            self.looking.end()
            if self.looking.rehearsal and not self._said_rehearsal:
                self._said_rehearsal = True
                self.say("step %d is compiled: its operators were watched in an uncompiled rehearsal (%.2f s of the "
                         "processor), and the training continues with the compiled results" % (
                             self.steps.step, self.looking.rehearsal))
            self._looked, self.looking = self.looking, None
            self.ooms.step_ended(self._looked)
            if self._looked.followed():
                self.followed, self.loss, self.exits = self.steps.step, self._looked.loss, self._looked.exits
                self._cut_off = {id(parameter) for known, _ in self.parameters.living()
                                 for parameter in (update[0]() for update in known.updates)
                                 if parameter is not None and not self._looked.reaches(parameter)}
            self._recorded = True

    def is_cut_off(self, parameter):
        """Whether no backward pass led to the parameter when a step was last watched: MindSpore then gives the
        optimizer zeros."""
        looked = self.looking
        return not looked.reaches(parameter) if looked and looked.followed() else id(parameter) in self._cut_off

    def step_ended(self):
        """The debugger continues from the end of the step."""
        if self._looked is not None:
            self._looked.forget()
            self._looked = None

    def output(self, node, slot):
        """The output of an operator that was watched in this step. NoValue."""
        looked = self.looking or self._looked
        outputs = looked.outputs.get(node.id) if looked is not None else None
        if outputs is None and node.operator == INPUT:
            raise values.NoValue("no operator was watched that read it in this step", _lib.GONE)
        if outputs is None:
            raise values.NoValue("its operator has not run in this step while the debugger was watching: `watch`, "
                                 "`break` or `next` look into the next step")
        if slot >= len(outputs) or outputs[slot] is None:
            raise values.NoValue("its output %d is not a tensor" % slot)
        return outputs[slot]

    def report(self, nodes):
        """The nodes have just been computed; their values can be located."""
        if self.words.armed:
            did, handle, call = self.library.gradb_did_slow, self.handle, self.timing.call_waiting
            for node in nodes:
                node.step = self.steps.step
                call(did, handle, node.id)

    def own_moment(self):
        """A moment of gradb's own: what runs inside is not the program's."""
        return self.looking.own_moment() if self.looking is not None else _NOTHING

    # ---- words ----

    def why_no_gradient(self):
        """Why there is no gradient."""
        if not self.gives_gradients:
            return "the step ran compiled, its gradients are inside: `watch` them, or `agent operators on`"
        return "the optimizer has not been given a gradient of this step yet"


def _forked_of(agent):
    """For os.register_at_fork, which has no counterpart that removes it: it must not keep the agent alive."""
    def forked():
        if agent() is not None:
            agent().forked()
    return forked
