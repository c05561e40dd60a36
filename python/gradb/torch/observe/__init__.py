# SPDX-License-Identifier: MIT
"""What `diagnose` knows of a run: evidence, gathered by watchers while the training runs.

A watcher looks at one subject (the order of calls, updates, losses, data, ...) and states what it measured: a piece of
evidence is a dict of "kind", numbers and texts, with the "file", "line" and "node" that it is about. It does not judge:
the rules of the debugger do (src/repl/diagnose/), from thresholds that they state.

Watchers see each operator in observed steps only: the first 8, and then steps 16, 32, 64 and so on, so that their cost
fades. Of long steps, to which that adds more time, the first 4, and then those of steps 8, 16, 32, 64 and so on whose
cost is small beside the time that the training has taken by then. Losses, updates and the order of calls are noted in
each step. A fault in a watcher ends that watcher, and is reported: the training and the other watchers continue."""
import contextlib
import os
import time

import torch

from .. import commands, stack
from ..values import outside_training
from .opaque import find, refusing

_ALL = 8            # so many first steps are observed,
_FEW = 4            # and so many where each of them takes at least
_LONG = 0.1         # seconds. All times are of the processor, which a loaded machine does not change much.
_SHARE = 0.03       # of the time of all steps that observing the later ones of them may add
_MOST_EVIDENCE = 64  # pieces of one kind
_level = getattr(torch._C._functorch, "maybe_current_level", None)  # of nested transforms (vmap, grad); not in 1.13


class Watcher:
    """The base of all. operators: the names of the operators that it wants to see; None: all. Override what is needed:
    methods that are not overridden cost nothing. All of them are called on the training thread, apart from the
    program's operators, and must change nothing of the training: no random number may be drawn, no gradient made, no
    hook left behind. Keep no tensor alive longer than a step, except small copies.
    """

    operators = None

    def __init__(self, observation):
        self.observation = observation
        self.agent = observation.agent

    def begins(self, step):
        """An observed step begins."""

    def operator(self, call):
        """An operator of an observed step has returned: a Call."""

    def left(self, call):
        """The same for a call that is not a node: it made a number or an array of a tensor (item, numpy, tolist), or
        a tensor without a gradient (data)."""

    def called(self, module, grad):
        """A module is called outside all others, in any step; grad: whether gradients are enabled."""

    def loss(self, tensor):
        """A backward pass into the parameters begins at `tensor`, in any step."""

    def passed(self):
        """A backward pass has ended, in any step: the gradients of its parameters are there."""

    def before_step(self, optimizer):
        """An optimizer is about to step, in any step."""

    def after_step(self, optimizer):
        """It has stepped."""

    def zeroed(self, optimizer):
        """optimizer.zero_grad() has run, in any step."""

    def batch(self, batch):
        """A DataLoader returned a batch to the training thread, in any step."""

    def loads(self, module, state_dict):
        """A module's load_state_dict is about to run, in any step."""

    def starts_over(self):
        """Another training begins: the main optimizer is another one."""

    def closes(self):
        """Observation ends: undo what was put in place."""

    def ends(self, step):
        """A step has ended; `self.observation.observes` says whether it was an observed one."""

    def evidence(self):
        """What was found: a list of dicts, see `piece`. May be asked for at any stop, several times."""
        return []


class Call:
    """An operator that has returned. name: as in node names (`linear`, `cross_entropy`); function: what was called;
    grad: whether gradients were enabled."""
    __slots__ = ("agent", "name", "function", "args", "kwargs", "result", "writes", "grad", "_forward")

    def __init__(self, agent, operator, function, args, kwargs, result, grad):
        self.agent = agent
        self.grad = grad
        self.name = operator.name
        self.writes = operator.writes
        self.function = function
        self.args = args
        self.kwargs = kwargs or {}
        self.result = result
        self._forward = None  # not known yet

    def given(self, index, name, default=None):
        """The argument at that position, or of that name."""
        return self.args[index] if len(self.args) > index else self.kwargs.get(name, default)

    def module(self):
        """The path of the module that runs; "" outside of modules."""
        return self.agent.modules.path() or ""

    def node(self):
        """The name of the node that made the result, or ""."""
        return node_of(self.agent, self.result)

    def is_forward(self):
        """Whether it belongs to the forward pass or to the loss of a training step: gradients are on, and it is neither
        the optimizer's nor the backward pass's."""
        if self._forward is None:
            self._forward = self.grad and not self.agent.in_backward and not self.agent.steps.is_updating()
        return self._forward

    def where(self):
        """{"file", "line", "node"} of the call. Only while it runs."""
        found = here()
        node = self.node()
        if node:
            found["node"] = node
        return found


def here():
    """{"file", "line"} of the user's line that runs now; {} where there is none."""
    return record_of(stack.shown(stack.frames(2)))


def record_of(place):
    """{"file", "line"} of a (code, line); {} for None."""
    return {} if place is None else {"file": place[0].co_filename, "line": place[1]}


def node_of(agent, tensor):
    """The name of the node that made a tensor or holds it, or ""."""
    if not isinstance(tensor, torch.Tensor):
        return ""
    origin = agent.graph.producer(tensor)
    node = origin[2] if origin is not None else None
    node = node if node is not None else agent.graph.holder(tensor)
    return node.name if node is not None else ""


def parameter_name(agent, parameter):
    """The name of a parameter as nodes have it, or ""."""
    held = agent.graph.holder(parameter)
    return held.name if held is not None else ""


def piece(kind, where=None, **numbers):
    """A piece of evidence. Numbers must be Python's own; None is left out."""
    found = {"kind": kind}
    found.update(where or {})
    found.update((key, value) for key, value in numbers.items() if value is not None)
    return found


class Observation:
    """The watchers of one agent. on: they are armed; observes: the running step's operators are seen by them."""

    def __init__(self, agent):
        self.agent = agent
        self.on = self.observes = False
        self._first = 0         # the step in which they were armed
        self._all = _ALL        # first steps that are observed
        self._begun = None      # when the step that runs began
        self._shortest = 0.0    # seconds of an observed step, since the first
        self._seconds = {}      # observed or not -> [steps, their seconds], without the first, which prepares things
        self.steps = 0          # that have ended while armed
        self.observed = 0       # of them, those whose operators were seen
        self.operators = 0      # that were seen
        self.sources = None     # the source_lines.Sources, once read
        self.ended = False      # the program has ended by itself
        self._watchers = []
        self._reported = 0, []  # models that existed at the last report, and its evidence
        self._layers = {}       # path -> class name of the modules of torch.nn that were seen
        self._failed = []       # {"watcher", "error"}
        self._plain = True      # watchers can read all tensors that were seen (see opaque.py)
        self._lists = {}        # method -> the watchers that override it
        self._wanting = {}      # name of an operator -> of those that override `operator`, the ones that want it

    # ---- arming ----

    def arm(self):
        """Makes the watchers, from the next step on (or this one, if nothing of it has run)."""
        if self.on:
            return
        from . import registry  # their modules need this one
        self._watchers = [kind(self) for kind in registry.WATCHERS]
        self.on = True
        self._first = self.agent.steps.step + (not self.agent.steps.is_between())
        self.steps = self.observed = self.operators = 0
        self._failed = []
        self._all, self._begun, self._shortest = _ALL, None, float("inf")
        self._seconds = {True: [0, 0.0], False: [0, 0.0]}
        self._list()
        self.agent.happenings.on("step-end", self._step_ended)
        self.agent.end_idle()
        if self.agent.steps.is_between():
            self.step_begins(self.agent.steps.step)

    def disarm(self):
        """Ends it. The evidence is gone."""
        if self.on:
            self.on = self.observes = False
            self.agent.observer = None
            for watcher in self._watchers:
                watcher.closes()
            self._watchers, self._lists = [], {}
            self.agent.happenings.off("step-end", self._step_ended)

    def _list(self):
        names = ("called", "begins", "operator", "left", "loss", "passed", "before_step", "after_step", "zeroed",
                 "batch", "loads", "ends", "starts_over")
        self._lists = {name: [watcher for watcher in self._watchers
                              if getattr(type(watcher), name) is not getattr(Watcher, name)] for name in names}
        self._wanting = {}

    def starts_over(self):
        """The main optimizer is another one: its first steps are observed, too."""
        if self.on and self.steps:
            self._first = self.agent.steps.step + 1
            self.tell("starts_over")

    def wants(self, step):
        """Whether the operators of that step are to be seen."""
        number = step - self._first + 1
        return self.on and (number <= self._all or number & (number - 1) == 0 and self._affords())

    def _affords(self):
        """Whether one more observed step costs little beside the time of all steps so far."""
        (observed, slow), (others, fast) = self._seconds[True], self._seconds[False]
        if self._all == _ALL or not observed or not others:
            return True
        adds = max(0.0, slow / observed - fast / others)
        return (observed - self._all + 2) * adds <= _SHARE * (slow + fast)  # the first one is not in `observed`

    # ---- what happens ----

    @contextlib.contextmanager
    def _apart(self, *args):
        """A moment in which watchers may look at tensors. args: what they get."""
        with self.agent.own_moment(), outside_training():
            self._plain = self._plain and self._are_plain(args)
            with contextlib.nullcontext() if self._plain else refusing():
                yield

    def _are_plain(self, args):
        """Nothing is opaque of what watchers get, and of what they look at then."""
        if isinstance(args[0] if args else None, Call):
            call, = args
            args = call.args, call.kwargs, call.result
        else:
            args = *args, self.agent.steps.main()
        return find(args) is None

    def step_begins(self, step):
        """A step begins: decides whether its operators are seen."""
        self.observes = self.wants(step)
        self.agent.observer = self if self.observes else None
        self._begun = time.thread_time()
        if self.observes:
            self._plain = self._plain and find(self.agent.modules.roots()) is None
            self._tell("begins", step)

    def _step_ended(self, _kind, info):
        self.steps += 1
        self.observed += self.observes
        self._note_time()
        if self.observes:
            self._layers.update((path, type(module).__name__) for path, module in self.agent.modules.all()
                                if type(module).__module__.startswith("torch.nn."))
        self._tell("ends", info["step"])

    def _note_time(self):
        if self._begun is None:
            return
        took = time.thread_time() - self._begun
        if self.observes:
            self._shortest = min(self._shortest, took)
            self._all = _FEW if self._shortest >= _LONG else _ALL
        if self.steps > 1:
            seconds = self._seconds[self.observes]
            seconds[0] += 1
            seconds[1] += took

    def operator_ran(self, operator, function, args, kwargs, result):
        """An operator of the program has run, in an observed step."""
        self.operators += 1
        if self.agent.is_training_thread():
            wanting = self._wanting.get(operator.name)
            if wanting is None:
                wanting = self._wanting[operator.name] = [
                    one for one in self._lists["operator"] if one.operators is None or operator.name in one.operators]
            self._tell_these(wanting, "operator",
                             (Call(self.agent, operator, function, args, kwargs, result, torch.is_grad_enabled()),))

    def left(self, operator, function, args, kwargs, result):
        """A call that is not a node has run."""
        if self.agent.is_training_thread():
            self._tell("left", Call(self.agent, operator, function, args, kwargs, result, torch.is_grad_enabled()))

    def tell(self, name, *args):
        """Something happened, of those that are noted in each step."""
        if self.on and self.agent.is_training_thread():
            self._tell(name, *args)

    def _tell(self, name, *args):
        self._tell_these(self._lists.get(name), name, args)

    def tell_one(self, watcher, name, *args):
        """Something happened that one watcher wants to know."""
        self._tell_these((watcher,), name, args)

    def _tell_these(self, told, name, args):
        if not told or (_level is not None and _level() is not None):  # tensors of a transform stand for others
            return
        with self._apart(*args):
            for watcher in told:
                try:
                    getattr(watcher, name)(*args)
                except Exception as error:  # one subject is not looked at any more
                    self._fails(watcher, error)

    def _fails(self, watcher, error):
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = "%s:%d" % (os.path.basename(place.tb_frame.f_code.co_filename), place.tb_lineno) if place else ""
        self._failed.append({"watcher": type(watcher).__name__, "error": "%s: %s (%s)" % (
            type(error).__name__, str(error).split("\n", 1)[0][:200], where)})
        self._watchers.remove(watcher)
        watcher.closes()
        self._list()

    # ---- evidence ----

    def report(self, ended):
        """What is known by now, for the debugger. ended: the program's functions have returned, and some of what they
        held may be gone; what was reported of it before counts then."""
        found, counts = [], {}
        self.ended = ended
        if not torch.is_grad_enabled():
            from .lines import only_line
            found.append(piece("grad-mode", only_line(r"set_grad_enabled\(\s*(mode=)?False")))
        with self._apart():
            for watcher in tuple(self._watchers):
                try:
                    pieces = watcher.evidence()
                except Exception as error:
                    self._fails(watcher, error)
                    continue
                for one in pieces:
                    counts[one["kind"]] = counts.get(one["kind"], 0) + 1
                    if counts[one["kind"]] <= _MOST_EVIDENCE:
                        found.append(one)
            self._add_layers(found)
        if ended:
            found += self._caught()
        roots = len(self.agent.modules.roots())
        if ended and roots < self._reported[0]:
            found += [one for one in self._reported[1] if one["kind"] not in counts]
        self._reported = roots, found
        return {"step": self.agent.steps.computed(), "steps": self.steps, "observed": self.observed,
                "operators": self.operators, "watchers": [type(one).__name__ for one in self._watchers],
                "failed": self._failed, "evidence": found}

    def _caught(self):
        """The exception in the last step, which the program caught, and then ended. Nothing, where it has caught others
        before, and continued."""
        failures = self.agent.reporter.failures
        step, text, place = failures.passed or (0, "", None)
        if failures.survives or step == 0 or step != self.agent.steps.step:
            return []
        return [piece("exception", record_of(place), text=text, step=step, caught=True)]

    def _add_layers(self, found):
        """Where the layer is made that evidence is about: users do not write its forward()."""
        from .source_lines import sources_of
        for one in found:
            path = one.get("node", "").rpartition("/")[0]
            made = sources_of(self).module_made(path, self._layers[path]) if path in self._layers else {}
            also = one.get("also", [])
            if made and made not in also and (made["file"], made["line"]) != (one.get("file"), one.get("line")):
                one["also"] = also + [made]


def _observe(agent, args, _node):
    wanted = commands.switch_of("observe", args)
    if wanted is True:
        agent.observation.arm()
    elif wanted is False:
        agent.observation.disarm()
    return {"on": agent.observation.on}


def _evidence(agent, args, _node):
    if not agent.observation.on:
        raise commands.CommandError("nothing is observed: `diagnose` turns that on")
    return agent.observation.report(args.strip() == "ended")


commands.register("observe", _observe, None)
commands.register("evidence", _evidence, None)
