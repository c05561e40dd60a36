# SPDX-License-Identifier: MIT
"""Where the training is in its data, in scripts that iterate over a dataset themselves: epochs and batches, like
../torch/loader.py. Model.train reports its own, see hooks."""
import functools
import threading
import weakref

from mindspore.dataset.engine import iterators

from ..clock import GAP
from ..wrappers import Wrappers
from .guard import guarded


class Data(Wrappers):
    """Wraps the iteration of datasets. told: Model runs, and reports by itself where it is."""

    def __init__(self, agent):
        super().__init__()
        self.agent = agent
        self.told = False
        self._counts = weakref.WeakKeyDictionary()   # dataset -> [epoch, batch]
        self._active = weakref.WeakKeyDictionary()   # iterator -> whether an epoch of it is under way
        self._trains = weakref.WeakSet()             # datasets that have fed a training step
        self._last = None       # weak reference to the dataset of the last batch
        self._running = None    # and to that whose epoch has begun
        self._thread = threading.get_ident()

    def install(self):
        """Installs the wrapper."""
        following, data = iterators.Iterator.__next__, self

        @functools.wraps(following)
        def __next__(iterator):
            if data.agent.dead or threading.get_ident() != data._thread:
                return following(iterator)
            if not data.told:
                data._asked(iterator)
            try:
                batch = data._timed(following, iterator)
            except StopIteration:
                if not data.told:
                    data._exhausted(iterator)
                raise
            if not data.told:
                data._got(iterator)
            return batch
        self._wrap(iterators.Iterator, "__next__", __next__)

    def _timed(self, following, iterator):
        """Waiting for a batch is a section of the step, unless the batch is for an evaluation."""
        steps, timing = self.agent.steps, self.agent.timing
        apart = not self.told and len(self._trains) > 0 and _dataset_of(iterator) not in self._trains
        if apart or steps.evaluating or not steps.begun():
            return following(iterator)
        section = timing.data_begins(iterator)
        try:
            return following(iterator)
        finally:
            timing.turn(section if section is not None else GAP)

    @guarded
    def _asked(self, iterator):
        dataset = _dataset_of(iterator)
        if dataset is None or self._active.get(iterator):
            return
        self._active[iterator] = True
        counts = self._counts.setdefault(dataset, [0, 0])
        counts[0] += 1
        counts[1] = 0
        if dataset in self._trains:
            self._epoch_begins(dataset)

    def _epoch_begins(self, dataset):
        self._running = weakref.ref(dataset)
        self.agent.happenings.epoch_begins(self._counts[dataset][0])

    @guarded
    def _exhausted(self, iterator):
        self._active[iterator] = False
        dataset = _dataset_of(iterator)
        if dataset is not None and self._running is not None and self._running() is dataset:
            self._running = None
            self.agent.happenings.epoch_ends()
        elif dataset is not None and self._last is not None and self._last() is dataset:
            self.agent.happenings.evaluation_ends()

    @guarded
    def _got(self, iterator):
        dataset = _dataset_of(iterator)
        if dataset is not None:
            self._last = weakref.ref(dataset)
            self._counts[dataset][1] += 1

    def feeds(self):
        """A training step uses the last batch. Returns (epoch, batch) of it, or None."""
        dataset = self._last() if self._last is not None else None
        if dataset is None or self.told:
            return None
        if dataset not in self._trains:
            self._trains.add(dataset)
            self._epoch_begins(dataset)
        return tuple(self._counts[dataset])


def _dataset_of(iterator):
    return getattr(iterator, "_Iterator__ori_dataset", None)
