# SPDX-License-Identifier: MIT
"""Values of the previous step, for nodes that are compared with it.

Lasting values (weights, gradients, states) are copied at the end of the step, when nothing looks at it any more; an
operator's outputs are copied when it has run. The copies are on the same device as the values."""
import torch

from . import devices, values


_copy_all = getattr(torch, "_foreach_copy_", None)


def _fits(tensor, place):
    """Whether a plain tensor can be copied to that place, which may be anything."""
    return (type(tensor) in values.PLAIN and isinstance(place, torch.Tensor) and place.shape == tensor.shape
            and place.dtype == tensor.dtype and place.device == tensor.device and place.layout is tensor.layout)


class Kept:
    """The copies. A node has two places for them: of the previous step, and of the running one.

    before: node number -> (step, [copy or NoValue per slot], scale) of the previous step; always the same dict."""

    def __init__(self, agent):
        self._agent = agent
        self._nodes = frozenset()
        self.before = {}
        self._now = {}  # the same, of operators that have run in this step
        agent.live.on_kept = self._ran

    def keep(self, numbers):
        """Replaces the set of nodes."""
        self._nodes = frozenset(numbers)
        for table in (self.before, self._now):
            for number in [number for number in table if number not in self._nodes]:
                del table[number]
        live = self._agent.live
        live.kept = frozenset(number for number in self._nodes if not live.is_lasting(number))

    def is_empty(self):
        """Whether no values are kept."""
        return not self._nodes

    def needs_operators(self):
        """Whether operators must be watched for it."""
        return bool(self._agent.live.kept)

    def step_ended(self, step):
        """The step is over: its values become those of the previous step."""
        if not self._nodes:
            return
        live, before, now = self._agent.live, self.before, self._now
        with values.outside_training():
            copied = self._copy_again(step)
            for number in self._nodes:
                if number in copied:
                    continue
                if live.is_lasting(number):
                    spare = before.get(number)
                    before[number] = (step, [self._copy(self._now_of(number), spare, 0)],
                                      self._agent.source.scale_of(number))
                elif number in now and now[number][0] == step:
                    before[number], now[number] = now[number], before.get(number)
                    if now[number] is None:
                        del now[number]
                else:
                    before.pop(number, None)  # it has not run

    def _copy_again(self, step):
        """Copies those lasting values that fit into the places of their last copies, all at once. Returns their nodes'
        numbers."""
        if _copy_all is None or self._agent.scaler.scaling or devices.is_capturing():
            return ()
        places, tensors, found = [], [], set()
        for number in self._nodes:
            entry, tensor = self.before.get(number), self._agent.live.lasting(number)
            if entry is not None and tensor is not None and _fits(tensor, entry[1][0]) and values.has_memory(tensor):
                places.append(entry[1][0])
                tensors.append(tensor)
                found.add(number)
        try:
            if places:
                _copy_all(places, tensors)
        except RuntimeError:  # each is copied alone, and then says what is wrong
            return ()
        for number in found:
            self.before[number] = (step, self.before[number][1], 1.0)
        return found

    def _now_of(self, number):
        try:
            return self._agent.live.find(number, 0)[0]
        except values.NoValue as error:
            return error

    def _ran(self, number, tensors):
        spare = self._now.get(number)
        with values.outside_training():
            copies = [self._copy(tensor, spare, slot) for slot, tensor in enumerate(tensors)]
        self._now[number] = (self._agent.steps.step, copies, self._agent.source.scale_of(number))

    @staticmethod
    def _copy(tensor, spare, slot):
        """A copy, in the memory of the last one where it fits. A NoValue instead: why there is none."""
        if tensor is None or isinstance(tensor, values.NoValue):
            return tensor
        try:
            tensor = values.readable(tensor)
            place = spare[1][slot] if spare is not None and slot < len(spare[1]) else None
            if _fits(tensor, place):
                return place.copy_(tensor)
            return tensor.clone(memory_format=torch.contiguous_format)
        except values.NoValue as error:
            return error
        except RuntimeError as error:
            return values.NoValue("it could not be kept: %s" % str(error).split("\n", 1)[0])

    def first(self, number):
        """(copy of the first output, step) of the previous step's value; (None, -1): none, or it is scaled."""
        step, copies, scale = self.before.get(number, (-1, (None,), 1.0))
        return (copies[0], step) if copies and scale == 1.0 else (None, -1)

    def is_unscaled(self, number):
        """Whether what is kept of the node, if anything, is what the value was."""
        entry = self.before.get(number)
        return entry is None or entry[2] == 1.0

    def find(self, number, slot):
        """(copy, step, scale) of the previous step's value. NoValue."""
        if number not in self._nodes:
            raise values.NoValue("its value of the previous step was not kept")
        entry = self.before.get(number)
        if entry is None:
            raise values.NoValue("no previous value yet: it is kept from the end of the next step in which it runs")
        step, copies, scale = entry
        if slot >= len(copies) or copies[slot] is None:
            raise values.NoValue("its output %d is not a tensor" % slot)
        if isinstance(copies[slot], values.NoValue):
            raise copies[slot]
        return copies[slot], step, scale

    def memory(self):
        """device -> (tensors, bytes) of the copies."""
        found = {}
        for table in (self.before, self._now):
            for _, copies, _ in table.values():
                for copy in copies:
                    if isinstance(copy, torch.Tensor):
                        count, size = found.get(str(copy.device), (0, 0))
                        found[str(copy.device)] = (count + 1, size + copy.numel() * copy.element_size())
        return found
