# SPDX-License-Identifier: MIT
"""Steps of the training: a step of the main optimizer, which is the first one that steps.

A step is over when the outermost call of a cell or a compiled function returns and the main optimizer has stepped in
it. An optimizer that Python called is seen; one inside compiled code has increased its counter. A step that the loss
scaler skips ends, too."""
import weakref

from mindspore import nn

from .. import _lib
from . import checkpoint, commands, hooks, rates, values
from .guard import guarded


class Steps:
    """step: the running one, from 1; place: (epoch, batch) that Model.train is at, or None; evaluating: Model
    evaluates."""

    def __init__(self, agent):
        self.agent = agent
        self.step = 1
        self.place = None
        self.run_context = None  # weak reference, while Model.train runs
        self._at_epoch = False   # Model.train begins an epoch: it takes at least one step more
        self.evaluating = False
        self.phase = _lib.NO_PHASE
        self._begun = False
        self._main = None       # weak reference
        self._stepped = []      # optimizers that stepped in this outermost call
        self._loss = None       # of this step: a tensor
        self._rates = {}        # name -> number
        self._numbers = {}      # name -> number, by the script
        self._by_hand = False
        self._computes = False  # an outermost call that trains has begun in this step
        self._trainers = weakref.WeakSet()  # what was called when the main optimizer stepped
        self._trained = weakref.WeakSet()   # cells that were called in training mode, and those in them

    # ---- begin and end ----

    def begin(self):
        """A step begins."""
        self._begun, self._computes = True, False
        self.phase = _lib.NO_PHASE
        if self.step <= 2:  # later it cannot change
            values.ask_where()
        agent = self.agent
        agent.happenings.fire("step-begin")
        agent.timing.call_waiting(agent.library.gradb_step_begin, agent.handle, self.step)
        agent.step_begins()

    def end(self):
        """Ends the step and begins the next one. Raises Ended when the debugger ends the training."""
        agent = self.agent
        self._computes = True  # a compiled step does not show it
        agent.stop_looking()
        agent.compiled.tell()
        agent.graph.publish()
        self._feeds()
        agent.happenings.fire("step-end", *(self.place or (0, 0)))
        told = agent.connected()
        if told:
            self._tell()
        agent.timing.step_ended(told)
        agent.timing.call_waiting(agent.library.gradb_step_end, agent.handle)
        agent.source.step_ended(self.step)
        agent.step_ended()
        if agent.library.gradb_wants_checkpoint(agent.handle):
            checkpoint.save(agent)
        agent.parameters.gradients.clear()
        agent.scaler.step_ended()
        self._loss, self._rates, self._numbers = None, {}, {}
        self.step += 1
        self.begin()
        agent.happenings.step_began()

    def is_between(self):
        """Whether no part of the running step is known to have been computed. An evaluation computes none."""
        happenings = self.agent.happenings
        return happenings.evaluated < self.step if happenings.evaluates else not self._computes

    def computed(self):
        """The last step of which something has been computed, the step of all values; 0: none."""
        return self.step - self.is_between()

    def evaluated(self, _trains):
        """What has run since the step began was an evaluation."""
        self.phase = _lib.NO_PHASE
        if self.agent.looking:
            self.agent.looking.new_pass()

    def enter(self, phase):
        """The training enters another phase; it may stop here."""
        if phase != self.phase and self._begun:
            self.phase = phase
            self.agent.timing.call_waiting(self.agent.library.gradb_enter, self.agent.handle, phase)

    def model_enters(self, run_context, epoch):
        """Model.train begins a step, or an epoch."""
        self.run_context = weakref.ref(run_context)
        self._at_epoch = epoch

    def end_model(self):
        """Asks Model.train to end, if it runs. Returns after what it will: "step", "next step" or "epoch"; None: it
        does not run."""
        context = self.run_context() if self.run_context is not None else None
        if context is None:
            return None
        context.request_stop()
        if context.original_args().get("dataset_sink_mode"):
            return "epoch"
        return "next step" if self._at_epoch else "step"

    def use(self, optimizer):
        """The steps of this optimizer are those of the training."""
        self._main = weakref.ref(optimizer)

    @guarded
    def by_hand(self):
        """The script says that a step ends here, as it will for all others."""
        self._by_hand = True
        if self._begun:
            self.end()

    @guarded
    def log(self, name, value):
        """A metric of the script's own. Between two steps it belongs to the one that has ended."""
        number = values.number_of(value)
        step = self.step if self._by_hand else self.computed()
        if number is not None and step == self.step:
            self._numbers[name] = number
        elif number is not None and self.agent.connected():
            self.agent.happenings.number(name, float(number), step)

    # ---- outermost calls ----

    @guarded
    def call_begins(self, called):
        """An outermost call begins."""
        self._stepped = []
        if self._begun:
            self._notice(called)
        if self.agent.looking:
            self.agent.looking.begin(called)

    def _notice(self, called):
        """An outermost call begins: whether it trains, or evaluates a cell that has trained."""
        cell = called if isinstance(called, nn.Cell) and not isinstance(called, nn.Optimizer) else None
        if self.evaluating:
            return
        if called in self._trainers or self._is_trained(cell) or hooks.takes_gradients(called):
            self._feeds()
            self._computes = True
        elif cell is not None and cell in self._trained:
            self.agent.happenings.evaluation_begins(self.computed())

    def _is_trained(self, cell):
        """Whether a cell in training mode has parameters; then an evaluation of its parts is one of a trained model."""
        if cell is None or not cell.training:
            return False
        if cell not in self._trained and cell.trainable_params():
            self._trained.update(child for _, child in cell.cells_and_names() if child.trainable_params())
        return cell in self._trained

    def _feeds(self):
        """The training uses the last batch of a dataset."""
        self.agent.happenings.evaluation_ends()
        self.place = self.agent.data.feeds() or self.place

    def begun(self):
        """Whether steps are counted: the debugger has let the training begin."""
        return self._begun

    @guarded
    def call_ended(self, called, result, compiled):
        """An outermost call returned. Ends the step if the main optimizer stepped in it."""
        if self.agent.looking:
            self.agent.looking.left()
        if not self._begun:
            return
        trains = not (self.evaluating or isinstance(called, nn.Cell) and not called.training)
        loss = None
        if compiled:
            if not trains and not self._stepped:
                self.agent.timing.not_trained()
            elif not hooks.is_own(called):
                loss = values.find_number(result)
                self._loss = loss if loss is not None else self._loss
        self.agent.scaler.call_ended(called, result, loss is not None)
        stepped, self._stepped = self._stepped, []
        if stepped and not self._by_hand:
            self._elect(stepped[0])
            if self._main() in stepped:
                self._trainers.add(called)
                for cell in self.agent.parameters.roots():
                    self._is_trained(cell)
                self.end()
        if not stepped and self.agent.scaler.skips(compiled):
            self.skipped()

    @guarded
    def compiled_begins(self):
        """Compiled code is about to run, which may call optimizers: notes their counters."""
        for known, optimizer in self.agent.parameters.living():
            known.count = rates.counter_of(optimizer)
        if self.agent.norms.on:
            self.agent.norms.before_any(self.agent.norms.optimizers())
        self.agent.scaler.compiled_begins()

    @guarded
    def compiled_ended(self):
        """Finds the optimizers that stepped inside compiled code, which this waits for."""
        if not self._begun:
            return
        for known, optimizer in self.agent.parameters.living():
            before, known.count = known.count, None
            if before is None or optimizer in self._stepped or rates.counter_of(optimizer) == before:
                continue
            self._stepped.append(optimizer)
            known.stepped = self.step
            self.agent.gives_gradients = False
            self.agent.parameters.complete(known, optimizer)
            self._note_rate(known, optimizer, before)
            if self.agent.norms.on:
                self.agent.norms.after(optimizer)

    @guarded
    def report_updates(self):
        """Compiled code that was watched has ended: the optimizers in it have updated their parameters."""
        for known, optimizer in self.agent.parameters.living():
            if known.count is not None and rates.counter_of(optimizer) != known.count:
                self.enter(_lib.OPTIMIZER)
                self.agent.report(node for _, _, _, node in known.updates if node is not None)

    def _elect(self, optimizer):
        if self._main is None or self._main() is None:
            self._main = weakref.ref(optimizer)

    def main(self):
        """(record, optimizer) of the main optimizer; (None, None): there is none."""
        optimizer = self._main() if self._main is not None else None
        return (self.agent.parameters.known(optimizer), optimizer) if optimizer is not None else (None, None)

    # ---- what happens in a step ----

    def forward_begins(self):
        """A forward pass in PyNative mode that gradients are wanted of begins."""
        self._computes = self._computes or not self.agent.happenings.evaluates

    @guarded
    def forward_ended(self, called, output):
        """A forward pass in PyNative mode that gradients are wanted of has ended; nested ones come first."""
        if self._begun and not self.evaluating:
            loss = values.find_number(output)
            self._loss = loss if loss is not None else self._loss
            if self.agent.looking:
                self.agent.looking.forward_ended(output)

    @guarded
    def optimizer_begins(self, optimizer, gradients):
        """Python calls an optimizer: its argument has the gradients, in the order of its parameters."""
        agent = self.agent
        known = agent.parameters.known(optimizer)
        if known is None:  # older than the agent
            agent.parameters.made(optimizer)
            known = agent.parameters.known(optimizer)
        agent.parameters.complete(known, optimizer)
        if not self._begun:
            return
        if agent.connected():
            self._note_rate(known, optimizer, None)
            if agent.looking:
                agent.looking.optimizer_begins(known)
            _take_gradients(agent, optimizer, gradients)
            self.enter(_lib.BACKWARD)
            agent.report(node for _, _, node, _ in known.updates if node is not None)
            self.enter(_lib.OPTIMIZER)
            if agent.norms.on and not (agent.looking and agent.looking.rehearses):
                agent.norms.before(optimizer)

    @guarded
    def optimizer_ended(self, optimizer):
        """It has returned."""
        if self._begun:
            known = self.agent.parameters.known(optimizer)
            if not (self.agent.looking and self.agent.looking.rehearses):
                self._stepped.append(optimizer)
                known.stepped = self.step
                if self.agent.norms.on:
                    self.agent.norms.after(optimizer)
            if self.agent.connected():
                self.agent.report(node for _, _, _, node in known.updates if node is not None)
                if self.agent.overflow is not None:
                    self.agent.overflow.optimizer_ran(known)

    @guarded
    def skipped(self):
        """The loss scaler has skipped the step, because not all gradients are finite."""
        if not self._begun or self._by_hand or self._loss is None:
            return
        agent, scaler = self.agent, self.agent.scaler.name()
        known, _ = self.main()
        agent.scaler.skipped = self.step, known.name if known is not None else "the optimizer", scaler
        found = agent.overflows.skipped()
        agent.library.gradb_event(agent.handle, b"skipped-step", _lib.text("the loss scaler skipped step %d%s" % (
            self.step, " (%s)" % found if found else "")), 0)
        self._numbers["skipped"] = 1
        self.end()

    # ---- metrics ----

    def _note_rate(self, known, optimizer, count):
        if not self.agent.connected():
            return
        prefix = "lr" if self._main is None or self._main() is optimizer else "lr_" + known.name
        with self.agent.own_moment():
            found = rates.rates_at(optimizer, count)
        for index, rate in enumerate(found):
            if rate is not None:
                self._rates["%s_%d" % (prefix, index) if index else prefix] = rate

    def rate_of(self, known):
        """The learning rate that an optimizer used last, or None."""
        optimizer = known.reference()
        found = rates.rates_at(optimizer) if optimizer is not None else []
        return found[0] if found else None

    def _tell(self):
        numbers = {}
        name, loss = self.agent.scaler.read(self._loss)
        if loss is not None:
            numbers[name] = loss
        numbers.update(self._rates)
        scale = self.agent.scaler.scale()
        if scale is not None:
            numbers["loss_scale"] = scale
        if self.place is not None:
            numbers["epoch"], numbers["batch"] = self.place
        numbers.update(self._numbers)
        library, handle = self.agent.library, self.agent.handle
        for name, value in numbers.items():
            library.gradb_scalar(handle, _lib.text(name), float(value))


def _take_gradients(agent, optimizer, gradients):
    held = agent.parameters.gradients
    if not isinstance(gradients, (tuple, list)):
        return
    for parameter, gradient in zip(optimizer.parameters, gradients):
        if gradient is not None:
            held[id(parameter)] = gradient


def _end_training(agent, _args, _node):
    """Ends the training as a callback of the script would, where that is possible."""
    return agent.happenings.end_training(agent.steps.end_model())


commands.register("end-training", _end_training, "end Model.train after this step (the command kill training)")
