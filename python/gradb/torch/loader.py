# SPDX-License-Identifier: MIT
"""Counts the epochs and batches of DataLoaders, and measures the time spent waiting for batches."""
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
            section = loader._fetch()
            try:
                batch = following(iterator)
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

    @guarded
    def _fetch(self):
        self.agent.watch_if_asked()
        self.loads = True
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
        if self._last is not None:
            self._used = tuple(self._last)

    def numbers(self):
        """{"epoch": ..., "batch": ...}, or nothing when no DataLoader is used."""
        return {} if self._used is None else {"epoch": self._used[0], "batch": self._used[1]}
