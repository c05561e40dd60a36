# SPDX-License-Identifier: MIT
"""The events of a training, for the agents of all frameworks, and who subscribes to them.

    begin                   the first step is about to begin
    epoch-begin, epoch-end  of the data that the training reads
    step-begin, step-end    of a step of the optimizer
    eval-begin, eval-end    forward passes of the trained model outside its training steps
    checkpoint              the script has saved a state
    end                     the training is over: its script ends, or an exception ends it

Functions of gradb's own subscribe with `agent.happenings.on(kind, function)`. They are called on the training thread,
before the debugger may stop there, in the order in which they subscribed: function(kind, info). info has what is known
of "step", "epoch", "batch" and "path"; between two steps, "step" is the one that has ended. A fault in one is a fault
of the agent (see its guard)."""

from . import _lib, ending

KINDS = ("begin", "epoch-begin", "epoch-end", "step-begin", "step-end", "eval-begin", "eval-end", "checkpoint", "end")
_STEPS = ("step-begin", "step-end")


class Happenings:
    """The subscriptions of one agent, and where its training is.

    each_step: there are subscriptions to steps, so none may pass unseen by Python; quiet: what happens now is gradb's
    own doing, and no event; evaluates: an evaluation has begun and not ended; evaluated: the step that it, or the last
    one, belongs to; epoch: the number of the last epoch that has begun, or 0; is_to_end: the debugger ends the training
    where the running step ends, or now if none runs."""

    def __init__(self, agent, call=lambda function, *args: function(*args)):
        """call(function, *args): calls a function of libgradb that may wait."""
        self.agent = agent
        self.each_step = self.quiet = self.evaluates = False
        self.epoch = self.evaluated = 0
        self.is_to_end = False
        self._ended_at = None  # the last step of a training that the debugger has ended
        self._call = call
        self._begun = False
        self._in_epoch = False
        self._functions = {}  # kind -> functions

    def on(self, kind, function):
        """Calls function(kind, info) at each event of that kind. Returns the function."""
        if kind not in KINDS:
            raise ValueError("no event '%s': the events are %s" % (kind, ", ".join(KINDS)))
        self._functions.setdefault(kind, []).append(function)
        self._changed()
        return function

    def off(self, kind, function):
        """Takes that back."""
        held = self._functions.get(kind, [])
        if function in held:
            held.remove(function)
        self._changed()

    def _changed(self):
        self.each_step = any(self._functions.get(kind) for kind in _STEPS)
        self._end_idle()

    def wants(self, kind):
        """Whether anybody listens: a subscription, or a debugger."""
        return bool(self._functions.get(kind)) or self.agent.connected()

    # ---- what happens ----

    def fire(self, kind, epoch=0, batch=0, path="", step=None):
        """An event happened in the running step, or in `step`. epoch, batch, path: what is known of them."""
        agent = self.agent
        if agent.dead or self.quiet or agent.handle is None:
            return
        functions = self._functions.get(kind)
        if functions:
            begins = kind in _STEPS or kind == "begin"
            info = {"step": step if step is not None else agent.steps.step if begins else agent.steps.computed()}
            info.update((name, value) for name, value in (("epoch", epoch), ("batch", batch), ("path", path)) if value)
            for function in tuple(functions):
                function(kind, info)
        happened = getattr(agent.library, "gradb_happened", None)
        if happened is not None and kind not in _STEPS:  # libgradb knows of these
            self._call(happened, agent.handle, kind.encode(), epoch, batch, _lib.text(path))
            if kind != "end":
                self._end_if_asked()

    def step_began(self):
        """A step has begun, and the debugger may have stopped the training before it. Raises Ended."""
        self._end_if_asked()
        if self.agent.library.gradb_wants_stop(self.agent.handle):
            raise ending.Ended()

    def _end_if_asked(self):
        """Only once: what the script does after that is its own."""
        if self.is_to_end and self.agent.steps.is_between():
            self.is_to_end = False
            ending.end_after(self.agent.steps.step - 1)

    def end_training(self, after=None):
        """The debugger ends the training; after: the framework ends it, after this. Returns the command's reply."""
        steps = self.agent.steps
        if steps.is_between() and self._ended_at == steps.step - 1:
            return {"how": "ended"}
        self._ended_at = steps.step - steps.is_between()
        if after is not None:
            return {"how": "request_stop", "after": after}
        self.is_to_end = True
        self._end_idle()
        return {"how": "KeyboardInterrupt"}

    def _end_idle(self):
        end_idle = getattr(self.agent, "end_idle", None)  # where steps may pass without Python
        if end_idle is not None:
            end_idle()

    def is_awaited(self, kind):
        """Whether a debugger waits for events of that kind."""
        wants = getattr(self.agent.library, "gradb_wants_event", None)
        return wants is not None and wants(self.agent.handle, kind.encode())

    def begins(self):
        """The first step is about to begin."""
        if not self._begun:
            self._begun = True
            self.fire("begin")

    def epoch_begins(self, epoch):
        """The training begins an epoch; the one before is over, however far it came."""
        self.evaluation_ends()
        self.epoch_ends()
        self.epoch, self._in_epoch = epoch, True
        self.fire("epoch-begin", epoch)

    def epoch_ends(self):
        """The epoch that has begun is over."""
        if self._in_epoch:
            self._in_epoch = False
            self.fire("epoch-end", self.epoch)

    def evaluation_begins(self, step):
        """The trained model runs outside its training steps; step: that it belongs to."""
        if not self.evaluates and not self.quiet:
            self.evaluated = step
            self.evaluates = True
            self.as_of(self.evaluated)
            self.fire("eval-begin", self.epoch)

    def evaluation_ends(self, trains=False):
        """It does so no more; trains: because a part of a training step has begun."""
        if self.evaluates:
            self.evaluates = False
            if self.evaluated < self.agent.steps.step:
                self.agent.steps.evaluated(trains)
            try:
                self.fire("eval-end", self.epoch, step=self.evaluated)
            finally:
                self.as_of(None)

    def as_of(self, step):
        """What libgradb is given from here on, numbers and batches of evaluations, belongs to that step; None: to that
        of the evaluation, or to the running one."""
        tell = getattr(self.agent.library, "gradb_as_of", None)
        if tell is not None:
            tell(self.agent.handle, step if step is not None else self.evaluated if self.evaluates else -1)

    def number(self, name, value, step):
        """Reports a number that belongs to a step which has ended."""
        self.as_of(step)
        self.agent.library.gradb_scalar(self.agent.handle, _lib.text(name), value)
        self.as_of(None)

    def saved(self, path):
        """The script has saved a state; path: "" where it is unknown."""
        if not self.quiet:
            self.evaluation_ends()
            self.fire("checkpoint", self.epoch, path=path)

    def ends(self):
        """The training is over."""
        if self._begun:
            self.evaluation_ends()
            self.epoch_ends()
            self.fire("end")
