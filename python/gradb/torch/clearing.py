# SPDX-License-Identifier: MIT
"""Are the gradients zeroed between two steps of an optimizer? Watched at one parameter per optimizer."""
import weakref

from .. import _lib, native
from . import values
from .swapping import Ref

_BELIEVED = 3  # after so many gradients that were 0 for no visible reason, they are believed to be
_LOOKS = 256   # looks at values that found nothing; an optimizer that hardly steps would need one per pass
_MAX_OPTIMIZERS = 16     # optimizers that are watched at one time


class Clearings:
    """A Clearing for each optimizer, made when it first steps. The callers are guarded."""

    def __init__(self, agent):
        self.agent = agent
        self.first = Clearing(agent)  # a linked list, see Clearing.next

    def __iter__(self):
        clearing = self.first
        while clearing is not None:
            yield clearing
            clearing = clearing.next

    def pass_begins(self):
        """An outermost backward pass into the parameters begins."""
        for clearing in self:
            clearing.pass_begins()

    def pass_ended(self):
        """It has ended."""
        for clearing in self:
            clearing.pass_ended()

    def lost(self):
        """A Clearing whose gradient exists after each backward pass, but is 0 or gone when the optimizer steps; or
        None. Asked at the end of a step, before the training continues."""
        return next((clearing for clearing in self if clearing.is_lost()), None)

    def stepped(self, optimizer):
        """An optimizer has stepped, outside a backward pass."""
        clearing = self._of(optimizer)
        if clearing is not None:
            clearing.stepped(optimizer)

    def follows(self, optimizer):
        """Whether the optimizer has stepped outside a backward pass."""
        return any(clearing.optimizer() is optimizer for clearing in self)

    def _of(self, optimizer):
        """The Clearing of an optimizer. A new optimizer gets that of one which is gone, or a new one. None: there are
        too many."""
        free = None
        for count, clearing in enumerate(self, 1):
            owner = clearing.optimizer()
            if owner is optimizer:
                return clearing
            if owner is None and free is None:
                free = clearing
            last = clearing
        if free is None and count < _MAX_OPTIMIZERS:
            free = last.next = Clearing(self.agent)
        if free is not None:
            free.follow(optimizer)
        return free

    def found(self, parameter=None):
        """A Clearing whose gradients are never zeroed, preferably that of the parameter's optimizer; None when there is
        none."""
        found = [clearing for clearing in self if clearing.since and clearing.optimizer() is not None]
        own = [clearing for clearing in found if clearing.holds(parameter)]
        return next(iter(own + found), None)


class Clearing(native.base("Clearing")):
    """Watches whether the gradient of one parameter is zeroed between two steps of its optimizer.

    A gradient that was zeroed is another tensor or was written to, which its version shows. Only where neither is
    the case is its value looked at before a pass adds to it (a script may write without autograd's knowledge), and
    only until one step has shown that this is not needed: looking waits for the device.

    since: the first step whose gradients were added to those of the previous step; 0: none. next: the next Clearing, or
    None."""

    def __init__(self, agent):
        self.agent = agent
        self.next = None
        self._optimizer = None  # weak reference
        self._forget()

    def _forget(self):
        self.since = 0
        self._parameter = None  # weak reference
        self._seen = self._version = 0  # identity and version of the gradient as it was left; 0 and 0: there was none
        self._cleared = True
        self._added = False     # a pass has added to it since the optimizer stepped
        self._looked = False    # it was not 0 when it was last looked at, since the optimizer stepped
        self._asks = True       # its value is to be read
        self._believed = False  # if not, it is believed to be 0
        self._zeros = self._looks = 0  # how often it was found to be 0, and not to be
        self._left = self._left_version = 0  # like _seen and _version, at the end of the last pass

    def follow(self, optimizer):
        """Watches this optimizer from now on."""
        self._forget()
        self._optimizer = weakref.ref(optimizer)

    def optimizer(self):
        """The optimizer that is watched; None: it is gone, or there was none yet."""
        return self._optimizer() if self._optimizer is not None else None

    def holds(self, parameter):
        """Whether the optimizer steps the parameter."""
        return any(held is parameter for group in self.optimizer().param_groups for held in group["params"])

    def _watched(self):
        return self._parameter() if self._parameter is not None else None

    def _gradient(self):
        parameter = self._watched()
        return parameter.grad if parameter is not None else None

    @property
    def name(self):
        """The name of the parameter; "" when it has none."""
        parameter = self._watched()
        return parameter is not None and self.agent.reporter.parameters.name_now(parameter) or ""

    @property
    def whose(self):
        """The name of the optimizer; "" for the main one."""
        optimizer = self.optimizer()
        return "" if optimizer is self.agent.steps.main() else self.agent.optimizers.name_of(optimizer)

    def pass_begins(self):
        """See Clearings."""
        if self._cleared or self.since:
            return
        gradient = self._gradient()
        if gradient is None or values.state_of(gradient) != (self._seen, self._version):
            self._cleared = True
        elif not self._added:
            self._looked = False
            if self._asks:
                self.look_at(gradient)
            else:
                self._cleared = self._believed

    def look_at(self, gradient):
        """Looks at a gradient that nothing seems to have changed since the previous step: is it 0 all the same?"""
        if self.optimizer() is None:  # the optimizer is gone
            self._cleared = True
        elif self._is_zero(gradient):
            self._cleared = True
            self._zeros += 1
            self._believed = self._zeros >= _BELIEVED
            self._asks = not self._believed
        else:
            self._looked = True
            self._looks += 1
            self._asks = self._looks < _LOOKS

    def _is_zero(self, gradient):
        """Whether all elements are 0. Of a sharded gradient only the local part is read: the whole would involve the
        other ranks."""
        with self.agent.own_moment(), values.outside_training():
            try:
                return not bool(values.readable(gradient).count_nonzero())
            except values.NoValue:  # it cannot be read
                return True

    def pass_ended(self):
        """See Clearings."""
        gradient = self._gradient()
        state = self._left, self._left_version = values.state_of(gradient) if gradient is not None else (0, 0)
        if self._cleared or self.since:
            return
        self._added = self._added or (gradient is not None and state != (self._seen, self._version))
        self._seen, self._version = state

    def stepped(self, optimizer):
        """See Clearings."""
        if self.since:
            return
        if self._added and not self._cleared and self._is_sure():
            self.since = self.agent.steps.step
            self._tell()
        else:
            self._watch(optimizer)

    def is_lost(self):
        """See Clearings.lost. An optimizer class of the script's own may zero gradients when it has stepped."""
        optimizer = self.optimizer()
        if not self._left or optimizer is None or not type(optimizer).__module__.startswith("torch.optim"):
            return False
        gradient = self._gradient()
        if gradient is None:
            return self._watched() is not None
        identity, version = values.state_of(gradient)
        return identity == self._left and version > self._left_version and self._is_zero(gradient)

    def _is_sure(self):
        """Whether a pass certainly added to a gradient that was not zeroed. It is not certain where the gradient was
        replaced since, where the parameter left the optimizer, and where nobody has looked whether it was 0: then it is
        read next time."""
        gradient = self._gradient()
        if gradient is None or id(gradient) != self._seen or not self.holds(self._watched()):
            return False
        if not self._looked:
            self._asks = True
            self._looks = 0
        return self._looked

    def _watch(self, optimizer):
        """Watches the same parameter in the next step if its gradient was zeroed, else the first one that has a
        gradient."""
        gradient = self._gradient() if self._cleared else None
        if self._cleared and self._looked:
            self._asks = False
        self._added = self._looked = False
        if gradient is None:
            parameter = next((parameter for group in optimizer.param_groups for parameter in group["params"]
                              if parameter.grad is not None), None)
            self._cleared = parameter is None
            if self._cleared:  # its gradient may be there when the pass ends: see is_lost
                self._watch_any(optimizer)
                return
            self._parameter = Ref(parameter)
            gradient = parameter.grad
        self._seen, self._version = values.state_of(gradient)
        self._cleared = False

    def _watch_any(self, optimizer):
        parameter = next((parameter for group in optimizer.param_groups for parameter in group["params"]
                          if parameter.requires_grad), None)
        if parameter is not None and parameter is not self._watched():
            self._parameter = Ref(parameter)
            self._left = self._left_version = 0

    def _tell(self):
        if self.agent.connected():
            name, whose = self.name, self.whose
            self.agent.library.gradb_event(self.agent.handle, b"warning", _lib.text(
                "the gradients %sare never zeroed: those of step %d are added to those of %s%s. Is %szero_grad() "
                "called?" % ("of %s " % whose if whose else "", self.since, "its last step" if whose else
                             "the previous step", " (%s.grad)" % name if name else "", "its " if whose else "")), 0)
