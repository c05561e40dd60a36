# SPDX-License-Identifier: MIT
"""The nodes of parameters, buffers and gradients: lasting values, under the name by which the program reaches them."""

import torch

from .. import _lib
from . import members, values, variables
from .guard import guarded
from .swapping import Ref

_MAX_NAMES = 10000     # of tied parameters
GATHERED = "Gathered"  # type of the node of a sharded parameter while it is gathered from all ranks


class Parameters:
    """Makes and finds the nodes. Part of the reporter."""

    def __init__(self, agent, graph):
        self.agent = agent
        self.graph = graph
        self._parameters = []  # (weak reference to a parameter, name), in order
        self._frozen = set()   # numbers of the nodes of parameters that are not trained
        self._tied = set()     # numbers of the nodes of tied parameters
        self._names = {}       # other name of a tied parameter -> (its node, the members.Held of that place)

    @guarded
    def add_module(self, module, known):
        """Makes nodes of the parameters and buffers of one module, not of those below it."""
        for key, parameter, place in members.parameters_of(module):
            self.add_parameter(parameter, known.path + "/" + key, members.Held(known, parameter, *place))
        for key, buffer in module._buffers.items():
            if isinstance(buffer, torch.Tensor) and self.graph.holder(buffer) is None:
                node = self._add_lasting(buffer, known.path + "/" + key, _lib.PARAMETER, "Buffer",
                                         held=members.Held(known, buffer, "_buffers", key))
                if node is not None and hasattr(self.agent.library, "gradb_momentary"):
                    self.agent.library.gradb_momentary(self.agent.handle, node.id)

    def add_parameter(self, parameter, name, held=None):
        """The node of a parameter, made when it has none; None when it cannot be made. held: its members.Held."""
        known = self.graph.holder(parameter)
        if known is not None:
            self._tie(known, name, held)
            return known
        is_weight = parameter.requires_grad or parameter.is_floating_point()
        attrs = () if parameter.requires_grad else (("frozen", "requires_grad was False when it was first seen"),)
        kind = _lib.WEIGHT if is_weight else _lib.PARAMETER
        node = self._add_lasting(parameter, name, kind, "Parameter", attrs, held)
        if node is not None:
            self._untie(node.name)
            self._parameters.append((Ref(parameter), node.name))
            if not parameter.requires_grad:
                self._frozen.add(node.id)
        return node

    def add_names(self, known):
        """Gives the parameters of a module their names at another path of it. known: the members.Known of that."""
        module = known.ref()
        for key, parameter, place in members.parameters_of(module) if module is not None else ():
            node = self.graph.holder(parameter)
            if node is not None:
                self._tie(node, known.path + "/" + key, members.Held(known, parameter, *place))

    def _tie(self, node, name, held):
        """The node of a parameter has that name, too, as long as the program reaches it there."""
        if held is None or name == node.name or name in self.graph.nodes or name in self._names \
                or len(self._names) >= _MAX_NAMES:
            return
        self._names[name] = node, held
        self._say_names(node)

    def _untie(self, name):
        node, _ = self._names.pop(name, (None, None))
        if node is not None:
            self._say_names(node)

    def check_names(self):
        """Removes the other names of parameters that the program has replaced."""
        for name, (node, held) in list(self._names.items()):
            if held() is not self.agent.live.lasting(node.id):
                self._untie(name)

    def is_split(self, number):
        """Whether the names of a tied parameter reach different ones now."""
        return number in self._tied and any(node.id == number and held() is not self.agent.live.lasting(number)
                                            for node, held in self._names.values())

    def _say_names(self, node):
        names = self.names_of(node.name)
        (self._tied.add if names else self._tied.discard)(node.id)
        self.graph.set_attr(node, "tied to", ", ".join(names))
        gradient = self.graph.nodes.get(node.name + ".grad")
        if gradient is not None:
            self.graph.set_attr(gradient, "tied to", ", ".join(name + ".grad" for name in names))

    def names_of(self, name):
        """The other names of the parameter of that name."""
        return [other for other, (node, _) in self._names.items() if node.name == name]

    def say_frozen(self):
        """Says which parameters have begun or ceased to be trained."""
        for reference, name in self._parameters:
            parameter, node = reference(), self.graph.nodes.get(name)
            if parameter is None or node is None or parameter.requires_grad != (node.id in self._frozen):
                continue
            if self.agent.live.lasting(node.id) is parameter:
                self._frozen.symmetric_difference_update((node.id,))
                self.graph.set_attr(node, "frozen", "" if parameter.requires_grad else "requires_grad is False now")

    def _add_lasting(self, tensor, name, kind, operator, attrs=(), held=None):
        """A node whose value is one tensor for good, or what `held` returns. The node of a dead tensor of that name is
        reused."""
        node = self.graph.add(name, kind, operator=operator, outputs=(values.shape_of(tensor),),
                              attrs=(*attrs, *values.notes((tensor,))))
        if node is not None:
            self.graph.produced(tensor, node, 0, lasting=True)
            self.agent.live.lasts(node.id, held or Ref(tensor))
            node.gradient = None
        return node

    def take_place(self, parameter, name, held):
        """The node of the parameter that the program reaches by that name now; another one that had the name loses it.
        """
        for reference, given in self._parameters:
            before = reference() if given == name else None
            if before is not None and before is not parameter:
                self.graph.forget(before)
        self.check_names()
        return self.add_parameter(parameter, name, held)

    def new_node(self, tensor):
        """The node of a parameter that did not exist when modules were named. While a sharded module runs, its gathered
        parameter is not among `weights`: its memory is released within the step, and the part is what is trained."""
        place = self.agent.modules.place_of(tensor)
        known = self.graph.nodes.get(place)
        held = self.agent.live.lasting(known.id) if known is not None else None
        if held is not None and type(held) not in values.PLAIN:
            return self.graph.add(place + ".gathered", _lib.OTHER, operator=GATHERED, phase=_lib.FORWARD,
                                  outputs=(values.shape_of(tensor),), attrs=values.notes((tensor,)))
        reached, now = self.agent.modules.reach(tensor)
        if reached is not None:
            return self.take_place(tensor, reached, now)
        if place is None or held is not None:
            place = self.unused_name(place or variables.name_of(tensor) or "parameter")
        return self.add_parameter(tensor, place)

    def part_of(self, tensor):
        """The node of the sharded parameter or gradient that the tensor is, or whose local part it is (as clipping
        reads it)."""
        part = getattr(tensor, "_local_tensor", tensor)
        for reference, name in self._parameters:
            parameter = reference()
            if type(parameter) in values.PLAIN or parameter is None:
                continue
            if getattr(parameter.grad, "_local_tensor", None) is part:
                return self.graph.nodes.get(name + ".grad")
            if getattr(parameter, "_local_tensor", None) is part:
                return self.graph.nodes.get(name)
        return None

    def gradient_of(self, parameter, weight, own):
        """The node of a leaf's gradient; made when a backward pass gets there (own: its backward.PassNode), so that it
        has its place in the order of execution."""
        node = self.add_gradient(parameter, weight.name, own, "Gradient" if weight.operator == "Parameter"
                                  else "InputGradient")
        if self.graph.holder(parameter) is weight:
            weight.gradient = node
        return node

    def add_gradient(self, parameter, name, own=None, operator="Gradient"):
        known = self.graph.nodes.get(name + ".grad")
        if known is not None and self.agent.live.leaf(known.id) is parameter:
            return known
        node = self.graph.add(name + ".grad", _lib.GRADIENT, operator=operator, phase=_lib.BACKWARD,
                              outputs=(values.shape_of(parameter),), inputs=own.inputs() if own is not None else (),
                              attrs=values.notes((parameter.grad,), self.agent.scaler.scale_of(parameter)))
        if node is not None:
            if self.names_of(name) and name in self.graph.nodes:
                self._say_names(self.graph.nodes[name])
            self.agent.live.gradient(node.id, self._held(name, parameter) or Ref(parameter))
            self.agent.library.gradb_lasts(self.agent.handle, node.id)
        return node

    def name_now(self, parameter):
        """The name by which the program reaches a parameter now; None when it has none, or another one has it."""
        node = self.graph.holder(parameter)
        if node is not None and self.agent.live.lasting(node.id) is parameter:
            return node.name
        return self.agent.modules.reach(parameter)[0]

    def _held(self, name, parameter):
        """The function that returns the value of the node of that name, where that is the parameter now."""
        weight = self.graph.nodes.get(name)
        held = self.agent.live.getter(weight.id) if weight is not None else None
        return held if held is not None and held() is parameter else None

    def unused_name(self, name):
        base, count = name, 0
        while name in self.graph.nodes:
            count += 1
            name = "%s_%d" % (base, count)
        return name

    def add_missed_gradients(self):
        """Makes gradient nodes, without a value, for parameters that the pass did not reach; not for those that no
        optimizer holds: averaged weights and target networks only look as if they were trained."""
        self.say_frozen()
        missed = [(reference(), name) for reference, name in self._parameters
                  if name + ".grad" not in self.graph.nodes]
        missed = [(parameter, name) for parameter, name in missed
                  if parameter is not None and parameter.requires_grad]
        held = self.agent.optimizers.owners() if missed else {}
        for parameter, name in missed:
            if not held or id(parameter) in held:
                self.add_gradient(parameter, name)
