# SPDX-License-Identifier: MIT
"""The graphs that backward() goes through: whether a pass repeats that of an earlier one, and whether those of earlier
steps are kept."""

from ..swapping import Ref
from . import Watcher, here, piece, trace

_MOST_NODES = 8192
_MOST_PARAMETERS = 256
_MOST_LOSSES = 1024


class Graphs(Watcher):
    """Looks at the graph of each loss of an observed step."""

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._roots = []       # (what a pass of this step began at, where, [(parameter, gradient, version)])
        self._pending = None   # of the pass that runs: (where, of the earlier pass, what that left)
        self._now = None       # (what it began at, where)
        self._twice = self._looked = 0
        self._at = self._before_at = {}
        self._sizes = []       # (step, nodes, of them those of earlier steps)
        self._measured = 0     # the last step of them
        self._newest = None    # the last node that earlier steps have made, by number
        self._top = None       # the same for this step
        self._kept_at = self._pass_at = {}
        self._losses = []      # numbers with a gradient that this step has made since the last pass
        self._batches = 0      # of DataLoaders, in this step
        self._unused = None    # the piece on losses that no pass went through

    def begins(self, step):
        """Nothing has run yet."""
        self.trace.begins(step)
        self._roots, self._pending = [], None
        self._losses = []
        self._looked += 1

    def starts_over(self):
        """Sizes of another training's graphs say nothing."""
        self._sizes, self._newest, self._top = [], None, None

    def operator(self, call):
        """Notes how tensors are made."""
        made = self.trace.see(call)
        if made is not None and made.grad and not made.shape and call.is_forward() and len(self._losses) < _MOST_LOSSES:
            self._losses.append(made)

    def batch(self, batch):
        """Counts them."""
        self._batches += 1

    def loss(self, tensor):
        """A pass begins."""
        self._pending = self._now = None
        if not self.observation.observes or getattr(tensor, "grad_fn", None) is None:
            return
        made, where = self.trace.of(tensor), here()
        self._now = _weighed(made), where
        self._note_unused(made)
        if self._roots:
            above = trace.ancestors(made)
            self._pending = next(((where, at, left) for root, at, left in self._roots
                                  if root in above and any(_is_untouched(one) for one in left)), None)
        if self._measured != self.agent.steps.step:
            self._measured = self.agent.steps.step
            self._measure(tensor.grad_fn, made, where)

    def _note_unused(self, root):
        """Losses of the root's line that the pass does not go through, although each had a batch of its own."""
        where = root.where()
        alike = [one for one in self._losses if one.name == root.name and one is not root and _line(one) == _line(root)]
        unused = len(set(alike) - trace.ancestors(root)) if alike else 0
        self._losses = []
        if not where or not self._batches:
            return
        found = self._unused = self._unused or piece("loss-unused", where, steps=0, held=0)
        found["steps"] += 1
        found["held"] += 0 < unused < self._batches
        found.update(unused=unused, batches=self._batches)

    def passed(self):
        """It has ended: whether it has added to what the earlier one left."""
        if self._now is None:
            return
        if self._pending is not None:
            where, before, left = self._pending
            if any(_is_added_to(one) for one in left):
                self._twice += 1
                self._at, self._before_at = where, before
        self._roots.append((*self._now, self._gradients()))
        self._pending = self._now = None

    def after_step(self, optimizer):
        """Its gradients are used."""
        self._roots = []

    def ends(self, step):
        """What comes now is of a later step."""
        if self._top is not None:
            self._newest, self._top = self._top, None
        self._roots, self._batches = [], 0

    def _gradients(self):
        found = []
        optimizers = self.agent.optimizers
        for optimizer in filter(None, map(optimizers.by_name, optimizers.names())):
            for one in (one for group in optimizer.param_groups for one in group["params"]):
                if one.grad is not None and len(found) < _MOST_PARAMETERS:
                    found.append((Ref(one), Ref(one.grad), one.grad._version))
        return found

    def _measure(self, root, made, where):
        seen, waiting, old = {root}, [root], 0
        numbered = hasattr(root, "_sequence_nr")
        while waiting and len(seen) < _MOST_NODES:
            node = waiting.pop()
            if numbered and self._newest is not None:
                old += node._sequence_nr() <= self._newest
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    waiting.append(following)
        self._top = root._sequence_nr() if numbered else None
        self._sizes.append((self._measured, len(seen), old if numbered else None))
        del self._sizes[:-32]
        self._pass_at = where
        if not self._kept_at and len(self._sizes) > 1:
            self._kept_at = _kept(made)

    def evidence(self):
        """A piece on passes through the same graph, one on the size of the graphs."""
        found = []
        if self._twice:
            found.append(piece("graph-again", self._before_at, twice=self._twice, looked=self._looked,
                               also=[self._at] if self._at else None))
        if self._kept_at:
            found.append(piece("graph-kept", self._kept_at))
        if self._unused:
            found.append(self._unused)
        if len(self._sizes) > 4:
            counts = [count for _, count, _ in self._sizes]
            steps = [later - earlier for earlier, later in zip(counts, counts[1:])]
            olds = [old for _, _, old in self._sizes[1:]]
            found.append(piece("graph-size", self._kept_at or self._pass_at, steps=len(counts), first=counts[0],
                               last=counts[-1], last_step=self._sizes[-1][0], rises=sum(one > 0 for one in steps),
                               even=max(steps[1:5]) - min(steps[1:5]) <= 0.5 * max(steps[1:5]),
                               old=None if None in olds else sum(one > 0 for one in olds),
                               also=[self._pass_at] if self._pass_at else None))
        return found


def _weighed(made):
    """What a loss was before it was multiplied by a constant or a scale."""
    for _ in range(8):
        trained = [one for one in made.parents() if one.grad]
        if made.name not in trace.SAME | {"mul", "div", "imul", "truediv"} or len(trained) != 1:
            break
        made = trained[0]
    return made


def _line(made):
    where = made.where()
    return where.get("file"), where.get("line")


def _kept(made):
    """Where a tensor is read that an earlier step has made, and that has a gradient; {}: nowhere."""
    for one in trace.ancestors(made):
        if any(given.grad and given.name == "" for given in one.parents()):
            return one.where()
    return {}


def _same(left):
    parameter, gradient, version = left[0](), left[1](), left[2]
    if parameter is None or gradient is None or parameter.grad is not gradient:
        return None
    return gradient._version - version


def _is_untouched(left):
    return _same(left) == 0


def _is_added_to(left):
    return bool(_same(left))
