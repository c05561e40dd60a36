# SPDX-License-Identifier: MIT
"""Tensors that no operator was seen to make: data, labels, masks, constants. Each is a node `input/NAME`, after the
user's variable that holds it. One that no variable holds, and that is more than a number, may as well be the result of
an operator that MindSpore does not report: it is a value of its own, `net/fc1/MatMul.input`."""
from .. import _lib
from . import stack, values

INPUT, VALUE = "Input", "Value"  # the types of these nodes
EVALUATION = "eval"  # scope of what runs in evaluation


def is_outside(maker):
    """Whether a (Node, slot) that made a tensor, or None, means that no operator was seen to make it."""
    return maker is None or maker[0].operator in (INPUT, VALUE)


class Outside:
    """The nodes. The tensor at one place, an input of an operator, is the same node in every step."""

    def __init__(self, agent):
        self._agent = agent
        self._named = {}  # name -> [Node]
        self._at = {}     # (name of the operator's node, number of the input) -> Node

    def node_of(self, tensor, address, place):
        """The node of a tensor that is read there, made when there is none; None when it cannot be made."""
        node = self._at.get(place)
        if node is None or node.step == self._agent.steps.step:  # that one is another tensor
            node = self._at[place] = self._unused(tensor, address, place)
        return node

    def new_pass(self):
        """What is read from here on are the same nodes again."""
        for node in (*self._at.values(), *(node for nodes in self._named.values() for node in nodes)):
            if node is not None:
                node.step = 0

    def _unused(self, tensor, address, place):
        name = stack.name_at(address)
        if name is None and tensor.size > 1:
            reader, number = place
            return self._agent.graph.add("%s.input%s" % (reader, number or ""), _lib.OTHER, VALUE, phase=_lib.FORWARD,
                                         outputs=(values.shape_of(tensor),))
        name = "input/" + (name or "tensor")
        if self._agent.happenings.evaluates:
            name = EVALUATION + "/" + name
        nodes = self._named.setdefault(name, [])
        for node in nodes:
            if node.step != self._agent.steps.step:
                return node
        graph = self._agent.graph
        node = graph.add(graph.unused_name(name), _lib.PARAMETER, INPUT,
                         outputs=(values.shape_of(tensor),))
        if node is not None:
            graph.changes_anytime(node)
            nodes.append(node)
        return node
