# SPDX-License-Identifier: MIT
"""Counts the epochs and batches of DataLoaders, and measures the time spent waiting for batches.

The epochs of the training are those of the loader whose batches its steps use. Which one that is becomes known with
its first batch; from then on its epochs begin where the script begins to iterate over it."""
import weakref

from torch.utils.data import DataLoader
from torch.utils.data import dataloader as _dataloader

from .. import native
from ..wrappers import Wrappers
from . import timing
from .guard import guarded


class _Counts(list):
    """[epoch, batch] of a DataLoader. trains: it has fed a training step. It does not refer to the loader, which may
    hold iterators with their processes."""
    __slots__ = ("trains",)

    def __init__(self):
        super().__init__((0, 0))
        self.trains = False


class Loader(native.base("Loader"), Wrappers):
    """Wraps the iteration of DataLoaders. loads: the training thread is inside one."""

    def __init__(self, agent):
        Wrappers.__init__(self)
        self.agent = agent
        self.loads = False
        self._loaders = weakref.WeakKeyDictionary()    # iterator -> _Counts of its loader
        self._counts = weakref.WeakKeyDictionary()     # loader -> _Counts
        self._feeds = False   # some loader has fed a training step
        self._last = None     # _Counts of the loader that returned a batch last
        self._running = None  # and of the one whose epoch has begun
        self._used = None     # (epoch, batch) of the step's last pass

    def install(self):
        """Wraps the iteration of DataLoader."""
        iterate, following = DataLoader.__iter__, _dataloader._BaseDataLoaderIter.__next__
        loader = self

        def __iter__(data_loader):
            if not loader.agent.is_training_thread():
                return iterate(data_loader)
            before, loader.loads = loader.loads, True
            try:
                iterator = iterate(data_loader)  # draws a seed
            finally:
                loader.loads = before
            loader._began(data_loader, iterator)
            return iterator

        def __next__(iterator):
            if loader.agent.dead or not loader.agent.is_training_thread():
                return following(iterator)
            section = loader._fetch(iterator)
            try:
                batch = following(iterator)
            except StopIteration:
                loader._exhausted(iterator)
                raise
            finally:
                loader._fetched(section)
            loader._got(iterator)
            return batch

        self._wrap(DataLoader, "__iter__", __iter__)
        self._wrap(_dataloader._BaseDataLoaderIter, "__next__", __next__)

    @guarded
    def _began(self, data_loader, iterator):
        counts = self._counts.setdefault(data_loader, _Counts())
        counts[:] = counts[0] + 1, 0
        self._loaders[iterator] = counts
        if counts[0] == 1:
            self.agent.heed_next_pass()  # which shows whether it feeds the training
        if counts.trains and self.agent.evaluation.may_train():
            self._epoch_begins(counts)

    def _epoch_begins(self, counts):
        self._running = counts
        self.agent.happenings.epoch_begins(counts[0])

    @guarded
    def _exhausted(self, iterator):
        counts = self._loaders.get(iterator)
        if counts is None:
            return
        if counts is self._running:
            self._running = None
            self.agent.happenings.epoch_ends()
        elif counts is self._last:
            self.agent.happenings.evaluation_ends()

    def feeds(self):
        """A training step uses the last batch: its loader feeds the training."""
        counts = self._last
        if counts is not None and not counts.trains:
            counts.trains = self._feeds = True
            self._epoch_begins(counts)

    def is_apart(self):
        """Whether the last batch is of a loader that has never fed a training step, while another one has."""
        return self._feeds and self._last is not None and not self._last.trains

    @guarded
    def _fetch(self, iterator):
        self.agent.watch_if_asked()
        self.loads = True
        if self.agent.timing.sampling.wanted:
            self.agent.timing.batch_asked(iterator)
        return self.agent.timing.data_begins()

    @guarded
    def _fetched(self, section):
        """A forward pass that fetches a batch begins again: what ran before it was an evaluation."""
        self.loads = section == timing.DATA  # one loader that another one reads from
        self.agent.timing.turn(section if section != timing.FORWARD else timing.GAP)
        if section == timing.FORWARD:
            self.agent.steps.forward = False

    @guarded
    def _got(self, iterator):
        self._last = self._loaders.get(iterator)
        if self._last is not None:
            self._last[1] += 1

    def used(self):
        """A backward pass begins: it is of the batch that was fetched last."""
        self.feeds()
        if self._last is not None:
            self._used = tuple(self._last)

    def place(self):
        """(epoch, batch) of the running step, 0 where they are unknown."""
        return self._used or (0, 0)

    def numbers(self):
        """{"epoch": ..., "batch": ...}, or nothing when no DataLoader is used."""
        return {} if self._used is None else {"epoch": self._used[0], "batch": self._used[1]}
