# SPDX-License-Identifier: MIT
"""Counts the epochs and batches of DataLoaders, and measures the time spent waiting for batches.

The epochs of the training are those of the loader whose batches its steps use. Which one that is becomes known with
its first batch; from then on its epochs begin where the script begins to iterate over it."""
import weakref

from torch.utils.data import DataLoader
from torch.utils.data import dataloader as _dataloader

from .. import native
from . import timing
from .guard import guarded


class Loader(native.base("Loader")):
    """Wraps the iteration of DataLoaders. loads: the training thread is inside one."""

    def __init__(self, agent):
        self.agent = agent
        self.loads = False
        self._wrapped = []   # (class, name, original, wrapper)
        self._loaders = weakref.WeakKeyDictionary()    # iterator -> [epoch, batch] of its loader
        self._counts = weakref.WeakKeyDictionary()     # loader -> [epoch, batch]
        self._trains = weakref.WeakSet()   # loaders that have fed a training step
        self._owner = weakref.WeakKeyDictionary()      # iterator -> function that returns its loader, or None
        self._seen = weakref.WeakSet()     # all loaders
        self._current = None  # the iterator that returned a batch last; its loader, where an epoch has begun:
        self._running = None
        self._last = None    # [epoch, batch] of the loader that returned a batch last
        self._used = None    # (epoch, batch) of the step's last pass

    def install(self):
        """Wraps the iteration of DataLoader."""
        iterate, following = DataLoader.__iter__, _dataloader._BaseDataLoaderIter.__next__
        loader = self

        def __iter__(data_loader):
            before = loader.loads
            loader.loads = before or loader.agent.is_training_thread()
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

        for kind, name, original, wrapper in ((DataLoader, "__iter__", iterate, __iter__),
                                              (_dataloader._BaseDataLoaderIter, "__next__", following, __next__)):
            setattr(kind, name, wrapper)
            self._wrapped.append((kind, name, original, wrapper))

    def remove(self):
        """Removes the wrappers, unless they were wrapped themselves."""
        for kind, name, original, wrapper in self._wrapped:
            if vars(kind).get(name) is wrapper:
                setattr(kind, name, original)
        self._wrapped = []

    @guarded
    def _began(self, data_loader, iterator):
        counts = self._counts.setdefault(data_loader, [0, 0])
        counts[0] += 1
        counts[1] = 0
        self._loaders[iterator] = counts
        # `for batch in DataLoader(...)` holds the iterator only. With persistent workers the loader holds the iterator.
        keeps = getattr(data_loader, "_iterator", None) is iterator
        self._owner[iterator] = weakref.ref(data_loader) if keeps else lambda: data_loader
        if data_loader not in self._seen:
            self._seen.add(data_loader)
            self.agent.heed_next_pass()  # which shows whether it feeds the training
        if data_loader in self._trains and self.agent.is_training_thread() and self.agent.evaluation.may_train():
            self._epoch_begins(data_loader, counts[0])

    def _epoch_begins(self, data_loader, epoch):
        self._running = weakref.ref(data_loader)
        self.agent.happenings.epoch_begins(epoch)

    @guarded
    def _exhausted(self, iterator):
        owner = self._owner.get(iterator)
        if owner is not None and self._running is not None and owner() is self._running():
            self._running = None
            self.agent.happenings.epoch_ends()
        elif self.is_current(iterator):
            self.agent.happenings.evaluation_ends()

    def is_current(self, iterator):
        """Whether it has returned the last batch."""
        return self._current is not None and self._current() is iterator

    def _owner_now(self):
        """The function that returns the loader of the last batch, or None."""
        iterator = self._current() if self._current is not None else None
        return self._owner.get(iterator) if iterator is not None else None

    def feeds(self):
        """A training step uses the last batch: its loader feeds the training."""
        owner = self._owner_now()
        data_loader = owner() if owner is not None else None
        if data_loader is not None and data_loader not in self._trains:
            self._trains.add(data_loader)
            self._epoch_begins(data_loader, self._counts[data_loader][0])

    def is_apart(self):
        """Whether the last batch is of a loader that has never fed a training step, while another one has."""
        owner = self._owner_now()
        return owner is not None and len(self._trains) > 0 and owner() not in self._trains

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
        self._current = weakref.ref(iterator)
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
