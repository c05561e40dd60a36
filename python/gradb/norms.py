# SPDX-License-Identifier: MIT
"""Norms of gradients and updates, for the agents of all frameworks: the command "norms".

    norms grad_norm                       the L2 norm over all gradients of the main optimizer's parameters
    norms grad_norm(TEXT) NODE            that of one parameter's gradient
    norms update_ratio(TEXT) NODE         the L2 norm of its update over the norm of its value before the update
    norms known ...                       the same, unless the program itself reports a metric of that name

Gradients are those that the optimizer uses: after clipping, where the program clips. Nothing is computed before
somebody asks. From then on the value is a metric of each step, of the name that was asked for. The reply has the value
of the present step where its gradients are still there, and the step from which on it is reported.

A framework's Norms has the functions below that raise NotImplementedError."""
import math
import weakref

from .commands import CommandError

_KINDS = ("grad_norm", "update_ratio")
_MOST = 1000  # names that are reported


class Norms:
    """What is asked for. on: anything is, so that the optimizers' hooks call before and after; refer: makes a weak
    reference to a parameter."""
    refer = weakref.ref

    def __init__(self, agent):
        self.agent = agent
        self.on = False
        self._wanted = {}   # name -> (kind, weak reference to the parameter or None)
        self._before = {}   # name -> what it was before the update
        self._updates = False  # between before and after

    # ---- of the framework ----

    def parameters(self, optimizer):
        """Its parameters."""
        raise NotImplementedError

    def gradient(self, optimizer, parameter):
        """A gradient that can be computed with, or None."""
        raise NotImplementedError

    def norm(self, tensors):
        """The L2 norm over all of them, as a number."""
        raise NotImplementedError

    def copy(self, parameter):
        """A copy of its value."""
        raise NotImplementedError

    def ratio(self, parameter, before):
        """The norm of the difference over the norm of what was before."""
        raise NotImplementedError

    def parameter_of(self, node):
        """The parameter of a node, or of its gradient; None: it is not one."""
        raise NotImplementedError

    def main(self):
        """The main optimizer, or None."""
        raise NotImplementedError

    def present(self):
        """(step, a note about it or "") of the gradients that are there now; None: there are none of one step."""
        raise NotImplementedError

    def next_step(self):
        """The first step whose update has not begun."""
        raise NotImplementedError

    def changed(self):
        """Something is asked for now: from the next step on, the hooks must run."""

    def unseen(self):
        """Why no gradient can be seen, in this step and in those like it; "": they can."""
        return ""

    # ---- at the optimizer's step ----

    def before(self, optimizer):
        """The optimizer is about to update its parameters."""
        self._updates = False
        self._tell_gradients(optimizer)
        self.before_any([optimizer])
        self._updates = True

    def before_any(self, optimizers):
        """Code runs that may call the optimizers, and shows no gradients. Then `after` for those that it called."""
        if self._updates:
            return
        self._before.clear()
        for name, (kind, reference) in self._wanted.items():
            parameter = reference() if reference is not None else None
            if kind == "update_ratio" and parameter is not None and any(
                    self._has(optimizer, parameter) for optimizer in optimizers):
                self._before[name] = self.copy(parameter)

    def after(self, optimizer):
        """It has updated them."""
        self._updates = False
        for name, before in list(self._before.items()):
            parameter = self._wanted[name][1]()
            if parameter is not None and self._has(optimizer, parameter):
                del self._before[name]
                self._tell(name, self.ratio(parameter, before))

    def _has(self, optimizer, parameter):
        return any(held is parameter for held in self.parameters(optimizer))

    def _tell_gradients(self, optimizer):
        for name, (kind, reference) in self._wanted.items():
            if kind == "grad_norm":
                value = self._norm_of(optimizer, reference)
                if value is not None:
                    self._tell(name, value)

    def _norm_of(self, optimizer, reference):
        """The norm of one gradient, or over all of the main optimizer's; None: not of this optimizer, or there is
        none."""
        if reference is None:
            if self.main() not in (None, optimizer):
                return None
            held = [self.gradient(optimizer, parameter) for parameter in self.parameters(optimizer)]
        else:
            parameter = reference()
            if parameter is None or not self._has(optimizer, parameter):
                return None
            held = [self.gradient(optimizer, parameter)]
        found = [gradient for gradient in held if gradient is not None]
        return self.norm(found) if found else None

    def _tell(self, name, value):
        self.agent.library.gradb_scalar(self.agent.handle, name.encode(), value)

    # ---- the command ----

    def command(self, args):
        """Carries out the command; see above."""
        known = args.startswith("known ")  # the session has a metric of that name
        name, _, node = (args[6:] if known else args).strip().partition(" ")
        if known and name not in self._wanted:
            return {"name": name, "own": True}
        kind = name.partition("(")[0]
        if kind not in _KINDS or (kind == "update_ratio") > bool(node):
            raise CommandError("norms takes grad_norm, grad_norm(NAME) NODE or update_ratio(NAME) NODE")
        parameter = self._parameter(node.strip()) if node else None
        if len(self._wanted) >= _MOST and name not in self._wanted:
            raise CommandError("%d norms are computed already, which is the limit" % _MOST)
        reference = self.refer(parameter) if parameter is not None else None
        self._wanted[name] = kind, reference
        self.on = True
        self.changed()
        reply = {"name": name, "from": self.next_step(), "step": None, "value": None, "note": "",
                 "unseen": self.unseen() if kind == "grad_norm" else ""}
        if kind == "grad_norm":
            self._add_present(reference, reply)
        return reply

    def _parameter(self, name):
        node = self.agent.graph.nodes.get(name)
        parameter = self.parameter_of(node) if node is not None else None
        if parameter is None:
            raise CommandError("'%s' is not a parameter" % name)
        return parameter

    def _add_present(self, reference, reply):
        """The value of the present step: from the gradients that are still there."""
        found = self.present()
        main = self.main()
        if found is None or main is None:
            return
        step, note = found
        optimizers = [main] if reference is None else self.optimizers()
        values = [self._norm_of(optimizer, reference) for optimizer in optimizers]
        value = next((value for value in values if value is not None), None)
        if value is not None:
            reply.update(step=step, value=value if math.isfinite(value) else str(value), note=note)

    def optimizers(self):
        """All optimizers."""
        main = self.main()
        return [main] if main is not None else []
