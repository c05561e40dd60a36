# SPDX-License-Identifier: MIT
"""Steps and phases.

A step of the training is a step of the main optimizer: the first one that steps, unless the script or the debugger
names another. Other ends of a step:
- a step that GradScaler skips ends like any other, at the end of GradScaler.update;
- an optimizer that steps inside backward() ends the step when backward() is over;
- a script without an optimizer ends a step where it begins the next forward or backward pass after a backward pass, or
wherever it calls gradb.torch.step(). If it never calls backward(), torch.autograd.grad() counts as one."""
import gc
import weakref

import torch

from .. import _lib, native
from . import checkpoint, commands, events, timing
from .guard import guarded

_REPLACED = 2  # after this many steps of another optimizer on the main one's parameters, that is the main one
_OVER = 16     # after this many steps of another one without one of the main one, its training is over


class Steps(native.base("Steps")):
    """step: the running one, from 1; phase: of enum gradb_phase; forward: a forward pass is known to run; running:
    optimizers inside step(), the outermost first."""

    def __init__(self, agent):
        self.agent = agent
        self.step = 1
        self.phase = _lib.NO_PHASE
        self.forward = False
        self._begun = False
        self._main = None       # weak reference
        self._chosen = ""       # by name; "" when none was chosen
        self._others = 0        # steps of another optimizer on the main one's parameters, since the main one stepped
        self._alone = {}        # id of another optimizer -> its steps since then
        self.in_operator = False  # an operator has run, and begins the forward pass
        self.running = []
        self._closures = 0      # how often its closure was called
        self._in_closure = False
        self._passes = 0        # nested backward passes
        self._accumulates = False  # backward() has run: torch.autograd.grad() is not the training's pass
        self._due = False       # the step is over, but its end has not run
        self._stepped = False   # the optimizer that GradScaler.step was called for has stepped
        self._by_hand = False   # the script says where steps end
        self._over_in = 0       # the last step in which an optimizer has stepped, and the step continued
        self._passed = 0        # passed() when the running forward pass began
        self._has_optimizer = None  # None: unknown yet
        self.skipped_last = None    # (step, optimizer's name) of the last one that GradScaler skipped
        self._stepped_in = weakref.WeakKeyDictionary()  # optimizer other than the main one -> its last step

    def begun(self):
        """Whether steps are counted: a debugger was there, or nobody waited for one."""
        return self._begun

    def is_between(self):
        """Whether nothing of the running step has been computed yet. An evaluation does not compute anything of it."""
        happenings = self.agent.happenings
        if happenings.evaluates:
            return happenings.evaluated < self.step
        return self.phase == _lib.NO_PHASE and self._is_fresh()

    def _is_fresh(self):
        """Whether no pass of the running step has begun. A forward pass without gradients is not one."""
        return not (self._due or self.forward or self._over_in == self.step or self.agent.events.has_passes())

    def computed(self):
        """The last step of which something has been computed, the step of all values; 0: none."""
        return self.step - self.is_between()

    def belongs_to(self):
        """The step of a number that the script reports now."""
        return self.step if self._by_hand else self.passed()

    def passed(self):
        """The last step of which a pass with gradients has begun; 0: none."""
        return self.step - self._is_fresh()

    def passed_before(self):
        """The same before the running forward pass began."""
        return self._passed

    def evaluated(self, trains):
        """What has run since the step began was an evaluation; trains: except that a part of it has begun."""
        self.agent.reporter.graph.step = self.step
        if not trains:
            self.forward = False
            self.phase = _lib.NO_PHASE

    def micro_batch(self):
        """The number of the micro-batch whose forward pass runs, from 1; 0: none is known to run. An optimizer that
        calls its closure again computes the same batch again."""
        if not self.forward or self._passes or (self._in_closure and self._closures > 1):
            return 0
        return self.agent.events.passes() + 1

    def is_outside(self):
        """Whether what runs now belongs to no pass, though the phase is the forward pass's: see operator_begins."""
        return self.phase == _lib.FORWARD and not (self.forward or self._passes or self._in_closure)

    # ---- which optimizer ----

    def use(self, optimizer):
        """The steps of the training are those of this optimizer."""
        self._main = weakref.ref(optimizer)
        self._chosen = self.agent.optimizers.name_of(optimizer)
        self._others = 0

    def choose(self, name):
        """The same by name. CommandError: there is no such optimizer."""
        optimizer = self.agent.optimizers.by_name(name)
        if optimizer is None:
            known = ", ".join(self.agent.optimizers.names()) or "none yet"
            raise commands.CommandError("no optimizer '%s': the optimizers are %s" % (name, known))
        self.use(optimizer)

    def stepped_last(self, optimizer):
        """The step in which it stepped last, at the end of a step; 0: not yet. None: unknown."""
        if optimizer is not self.main():
            return self._stepped_in.get(optimizer, 0)
        return None

    def main(self):
        """The main optimizer, or None."""
        return self._main() if self._main is not None else None

    def _elect(self, optimizer):
        main = self.main()
        if main is optimizer:
            self._others, self._alone = 0, {}
            return
        alone = self._alone[id(optimizer)] = self._alone.get(id(optimizer), 0) + 1
        if main is not None and not self._chosen and self.agent.optimizers.shares(main, optimizer):
            self._others += 1
        if self.agent.optimizers.is_copy(optimizer) and (main is None or alone >= _OVER):
            return
        if main is None or self._others >= _REPLACED or (alone >= _OVER and not self._chosen):
            self._main = weakref.ref(optimizer)
            self._chosen = ""
            self._others, self._alone = 0, {}
            self.agent.observation.starts_over()

    # ---- begin and end ----

    def begin(self):
        """A step begins."""
        agent = self.agent
        self._begun = True
        self._due = False
        self.forward = False
        self.phase = _lib.NO_PHASE
        agent.happenings.fire("step-begin")
        agent.timing.call_waiting(agent.library.gradb_step_begin, agent.handle, self.step)
        agent.step_began()

    def end(self):
        """Ends the step and begins the next one. Raises Ended when the debugger ends the training."""
        agent = self.agent
        agent.watching_now = False
        self._due = False
        told = agent.connected()
        agent.timing.step_ended(told)
        if agent.watching:
            agent.reporter.flush()
        agent.happenings.fire("step-end", *agent.events.loader.place())
        agent.events.step_ended(told)
        agent.step_ends()
        self._save_if_asked()
        agent.timing.call_waiting(agent.library.gradb_step_end, agent.handle)
        self.ended()

    def ended(self):
        """The debugger continues from the end of the step: begins the next one."""
        agent = self.agent
        agent.source.kept.step_ended(self.step)
        self._save_if_asked()
        self.step += 1
        self.begin()
        agent.happenings.step_began()

    def _save_if_asked(self):
        if self.agent.library.gradb_wants_checkpoint(self.agent.handle):
            self.save()

    def save(self):
        """Saves the checkpoint that was asked for."""
        happenings = self.agent.happenings
        happenings.quiet = True
        try:
            checkpoint.save(self.agent)
        finally:
            happenings.quiet = False

    def end_training(self):
        """The debugger may end the training: a step has begun."""
        self.agent.happenings.step_began()

    def _end_if_due(self):
        if self._due:
            self.end()

    def _before_a_pass(self):
        self._end_if_due()
        self._gave_up()

    def enter(self, phase):
        """The training enters another phase; it may stop here."""
        if phase != self.phase:
            agent = self.agent
            if agent.watching:
                agent.reporter.flush()
            self.phase = phase
            agent.timing.call_waiting(agent.library.gradb_enter, agent.handle, phase)

    @guarded
    def by_hand(self):
        """The script says that a step ends here, as it will for all others."""
        self._by_hand = True
        if self._begun:
            self.end()

    # ---- forward ----

    @guarded
    def forward_begins(self):
        """A module is called while no forward pass is known to run. An evaluation, without gradients, is not one."""
        if not self._begun or not torch.is_grad_enabled() or (self._passes and not self._in_closure) \
                or self.agent.regions.are_closed():
            return
        self._before_a_pass()
        self._passed = self.passed()
        self.forward = True
        self.agent.timing.turn(timing.FORWARD)
        self.enter(_lib.FORWARD)

    def operator_begins(self, outputs=()):
        """Whether an operator that has run belongs to the graph: not those of optimizers and of GradScaler. What runs
        between two backward passes is forward again."""
        if not self._begun or self.agent.scaler.stepping is not None:
            return False
        if self.running and not self._in_closure:
            return False
        if self._passes == 0 and not self.forward:
            if any(tensor.requires_grad and not tensor.is_leaf for tensor in outputs):
                self.in_operator = True
                try:
                    self.forward_begins()
                finally:
                    self.in_operator = False
            self.enter(_lib.FORWARD)
        return True

    # ---- backward ----

    def backward_begins(self, tensors=(), gradients=None, accumulates=True):
        """Before a backward pass from `tensors`; accumulates: into the parameters. Returns whether to hook its nodes.
        Call backward_ended afterwards in any case."""
        self._passes += 1
        return bool(self._backward_begins(tensors, gradients, accumulates))

    @guarded
    def _backward_begins(self, tensors, gradients, accumulates):
        if not self._begun or self.agent.regions.recording():
            return False
        if self._passes == 1:
            self._before_a_pass()
            self.agent.evaluation.pass_begins()
            if accumulates and not (self._in_closure and self._closures > 1):
                self.agent.events.backward_begins(tensors, gradients)
            if accumulates:
                self.agent.clearing.pass_begins()
                if self.agent.observation.on:
                    self.agent.observation.tell("loss", events.alone(tensors))
        self.agent.timing.turn(timing.BACKWARD)
        self.agent.timing.pass_begins()
        self.enter(_lib.BACKWARD)
        return self.agent.watch_if_asked()

    def is_training_pass(self, args, accumulates):
        """Whether a pass with run_backward's arguments computes the gradients of a step: backward(), or where nothing
        else does, autograd.grad() of leaves that is not differentiated again."""
        if accumulates:
            self._accumulates = True
            return True
        if self._accumulates or self.running or self._passes or len(args) < 4 or args[2] or not self._begun:
            return False
        return all(isinstance(one, torch.Tensor) and one.is_leaf for one in args[3]) and not self._knows_optimizers()

    def passes_are(self, count):
        """Corrects the number of nested passes after one that did not begin."""
        self._passes = count

    def backward_ended(self, accumulates=True):
        """The pass has ended."""
        self._passes -= 1
        if self._passes == 0:
            self._backward_ended(accumulates)

    @guarded
    def _backward_ended(self, accumulates):
        if not self._begun or self.agent.regions.recording():
            return
        if self.agent.watching:
            self.agent.reporter.backward_ended()
        self.enter(_lib.NO_PHASE)  # another pass may follow at once, as a phase of its own
        if accumulates:
            self.agent.clearing.pass_ended()
            if self.agent.observation.on:
                self.agent.observation.tell("passed")
        self.forward = False
        self.agent.timing.turn(timing.GAP)
        self.agent.timing.pass_ended()
        if self._due and not self._by_hand:
            self.end()  # an optimizer has stepped inside
        elif accumulates and not self._by_hand and not self._knows_optimizers():
            self.agent.events.optimizer_ended("")
            self._due = True

    def _knows_optimizers(self):
        """Whether there is any optimizer. An older one than the agent is looked for once."""
        if not self._has_optimizer:
            self._has_optimizer = bool(self.agent.optimizers.names())
            if not self._has_optimizer and self._has_optimizer_before():
                self._has_optimizer = True
        return self._has_optimizer

    def _has_optimizer_before(self):
        if self._main is not None or self.agent.optimizers.searched:
            return self._main is not None
        self.agent.optimizers.searched = True
        found = any(issubclass(type(thing), torch.optim.Optimizer) for thing in gc.get_objects())
        if not found and self.agent.connected():
            self.agent.library.gradb_log(self.agent.handle, b"gradb: there is no optimizer: a step ends where the "
                                                            b"next forward pass begins, or at gradb.torch.step()")
        return found

    # ---- optimizers ----

    def is_updating(self):
        """Whether an optimizer's step runs, and not the forward and backward passes of its closure."""
        return bool(self.running) and not self._in_closure

    @guarded
    def optimizer_begins(self, optimizer, closure=False):
        """Before Optimizer.step; closure: it is given one."""
        if self.running and any(other is optimizer for other in self.running):
            self._gave_up()
        self.running.append(optimizer)
        if len(self.running) > 1 or not self._begun or self._passes or self.agent.regions.recording():
            return
        if self.agent.scaler.stepping is None:
            self._end_if_due()
        self._closures = 0
        self._has_optimizer = True
        self._elect(optimizer)
        self.agent.watch_if_asked()
        self.agent.timing.turn(timing.OPTIMIZER)
        self.enter(_lib.OPTIMIZER)
        is_main = optimizer is self.main()
        self.agent.events.optimizer_begins(optimizer, "" if is_main else self.agent.optimizers.name_of(optimizer))
        if self.agent.norms.on:
            self.agent.norms.before(optimizer)
        if self.agent.observation.on and not closure:
            self.agent.observation.tell("before_step", optimizer)
        self.agent.pause()

    def closure(self, function):
        """Wraps the closure that an optimizer is given: it runs forward and backward passes."""
        def call(*args, **kwargs):
            self._closure_begins()
            try:
                return function(*args, **kwargs)
            finally:
                self._closure_ended()
        return call

    @guarded
    def _closure_begins(self):
        self._closures += 1
        self._in_closure = True
        self.forward = False
        self.agent.resume()
        self.agent.timing.turn(timing.GAP)

    @guarded
    def _closure_ended(self):
        self._in_closure = False
        self.forward = False
        if self.agent.observation.on and self._closures == 1 and self.running:  # the gradients are there
            self.agent.observation.tell("before_step", self.running[-1])
        self.agent.timing.turn(timing.OPTIMIZER)
        if self._begun:
            self.enter(_lib.OPTIMIZER)
        self.agent.pause()

    @guarded
    def optimizer_ended(self, optimizer):
        """After Optimizer.step, which ends the training's step if it is the main optimizer's."""
        while self.running and self.running[-1] is not optimizer:
            self.running.pop()
        if not self.running:
            return
        self.running.pop()
        self._stepped = True
        if self.running or not self._begun or self.agent.regions.recording():
            return
        if self._passes:
            self._elect(optimizer)
            self._due = self._due or optimizer is self.main()
            return
        agent = self.agent
        if agent.norms.on:
            agent.norms.after(optimizer)
        if agent.observation.on:
            agent.observation.tell("after_step", optimizer)
        if agent.watching:
            agent.resume()
            agent.optimizers.stepped(optimizer)
        agent.clearing.stepped(optimizer)
        if optimizer is not self.main():
            self._stepped_in[optimizer] = self.step
        self._is_over(optimizer)

    def _is_over(self, optimizer):
        """An optimizer has stepped, or its step was skipped."""
        self.agent.timing.turn(timing.GAP)
        self.forward = False
        is_main = optimizer is self.main()
        self._over_in = self.step
        if not is_main and self.agent.optimizers.is_copy(optimizer):
            self.enter(_lib.NO_PHASE)  # the loss belongs to the original
            return
        self.agent.events.optimizer_ended("" if is_main else self.agent.optimizers.name_of(optimizer))
        if not is_main:
            self.agent.reporter.loss_is_over()
        if not is_main or self._by_hand:
            self.enter(_lib.NO_PHASE)
            return
        if self.agent.scaler.stepping is not None:
            self.agent.events.note("skipped", 0)
            self._due = True
        else:
            self.end()

    def _gave_up(self):
        """An optimizer's step that did not end has raised into the program, which continued."""
        if self.running and not self._in_closure:
            self.running = []
            self.agent.optimizers.observed_to_end()
            self.agent.resume()
            self.agent.timing.turn(timing.GAP)

    # ---- GradScaler ----

    def scaled_step_begins(self):
        """GradScaler.step begins."""
        self._stepped = False

    def was_stepped(self):
        """Whether an optimizer has stepped since scaled_step_begins."""
        return self._stepped

    @guarded
    def skipped(self, optimizer):
        """GradScaler.step has skipped the optimizer because of Inf or NaN in its gradients."""
        if not self._begun:
            return
        name = self.agent.optimizers.name_of(optimizer)
        self.skipped_last = self.step, name
        found = self.agent.overflows.skipped()
        self.agent.events.happened("skipped-step", "%s: Inf or NaN in the gradients%s" % (
            name, " (%s)" % found if found else ""))
        if self._stepped:  # a fused one has skipped by itself
            if optimizer is self.main():
                self.agent.events.note("skipped", 1)
            return
        self._elect(optimizer)
        if optimizer is self.main():
            self.agent.events.optimizer_begins(optimizer)
        self.agent.scaler.stepping = optimizer  # it ends at update()
        try:
            self._is_over(optimizer)
        finally:
            self.agent.scaler.stepping = None
        if optimizer is self.main():
            self.agent.events.note("skipped", 1)

    @guarded
    def scaler_updated(self):
        """GradScaler.update has run."""
        if self._begun:
            self._end_if_due()


def _step_of(agent, args, _node):
    name = args.strip()
    if name:
        agent.steps.choose(name)
    main = agent.steps.main()
    return {"optimizer": agent.optimizers.name_of(main) if main is not None else None,
            "optimizers": agent.optimizers.names()}


commands.register("step-of", _step_of, "the optimizer whose steps are the steps of the training", "[NAME]")


def _end_training(agent, _args, _node):
    return agent.happenings.end_training()


commands.register("end-training", _end_training, "end the training by a KeyboardInterrupt (the command kill training)")
