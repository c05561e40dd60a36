# SPDX-License-Identifier: MIT
"""Counts the epochs and batches of DataLoaders, and measures the time spent waiting for batches.

The epochs of the training are those of the loader whose batches its steps use. Which one that is becomes known with
its first batch; from then on its epochs begin where the script begins to iterate over it."""
import weakref

import torch
from torch.utils.data import DataLoader, RandomSampler, WeightedRandomSampler
from torch.utils.data import dataloader as _dataloader

from .. import native, summary
from ..epochs import Epochs, Place, Source
from ..wrappers import Wrappers
from . import timing
from .guard import guarded


class Loader(Wrappers, native.base("Loader")):
    """Wraps the iteration of DataLoaders. loads: the training thread is inside one."""

    def __init__(self, agent):
        Wrappers.__init__(self)
        self.agent = agent
        self.loads = False
        self._sources = weakref.WeakKeyDictionary()    # loader -> its Source
        self._places = weakref.WeakKeyDictionary()     # iterator -> its Place
        self._epochs = None
        self._last = None     # Place of the iterator that returned a batch last
        self._used = None     # (epoch, batch) of the step's last pass
        self._order = (0, False)  # of the last batch: id of the dataset, whether it is shuffled
        self.weights = None   # of the last batch's sampler: (number of weights, of examples), if it draws by weights
        self._parts = ()      # (name, shape, dtype, device, bytes of an element) of the last batch's tensors

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
            loader._got(iterator, batch)
            return batch

        self._wrap(DataLoader, "__iter__", __iter__)
        self._wrap(_dataloader._BaseDataLoaderIter, "__next__", __next__)

    @guarded
    def _began(self, data_loader, iterator):
        if self._epochs is None:
            self._epochs = Epochs(self.agent.happenings)
        source = self._sources.setdefault(data_loader, Source())
        place = self._places[iterator] = Place(source)
        if source.last and self.agent.evaluation.may_train():
            self._epochs.begins(place)
        else:
            self.agent.heed_next_pass()  # which shows whether it feeds the training

    @guarded
    def _exhausted(self, iterator):
        place = self._places.get(iterator)
        if place is not None and not self._epochs.ends(place) and place is self._last:
            self.agent.happenings.evaluation_ends()

    def feeds(self):
        """A training step uses the last batch: its loader feeds the training."""
        if self._last is not None and not self._last[0]:
            self._epochs.begins(self._last)

    def is_apart(self):
        """Whether the last batch is of a loader that has never fed a training step, while another one has."""
        return self._last is not None and self._epochs.known and not self._last.source.last

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
    def _got(self, iterator, batch):
        self._last = self._places.get(iterator)
        if self._last is not None:
            self._last[1] += 1
            self._parts = _described(batch)
        if self.agent.observation.on:
            sampler = getattr(getattr(iterator, "_index_sampler", None), "sampler", None)
            self.weights = _weights_of(sampler, getattr(iterator, "_dataset", None))
            self._order = id(getattr(iterator, "_dataset", None)), type(sampler) is RandomSampler
            self.agent.observation.tell("batch", batch)

    def latest(self):
        """(the loader that returned a batch last, rows of that batch's tensors); (None, ()) when none has."""
        source = self._last.source if self._last is not None else None
        data = next((data for data, known in self._sources.items() if known is source), None)
        return data, [{"name": name, "dtype": str(dtype).rpartition(".")[2], "shape": list(shape),
                       "device": str(device), "bytes": shape.numel() * size}
                      for name, shape, dtype, device, size in self._parts]

    def is_first(self):
        """Whether the batch that was returned last is the first of its iteration."""
        return self._last is not None and self._last[1] == 1

    def position(self):
        """(which batch of its iteration was returned last, from 1; id of the dataset; whether it is shuffled)."""
        return (self._last[1] if self._last is not None else 0, *self._order)

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
        return {} if self._used is None or not self._used[0] else {"epoch": self._used[0], "batch": self._used[1]}


def _weights_of(sampler, dataset):
    """(number of weights, of examples) of a sampler that draws by weights; None: it does not, or has no length."""
    if not isinstance(sampler, WeightedRandomSampler) or not hasattr(dataset, "__len__"):
        return None
    return len(sampler.weights), len(dataset)


def _described(batch):
    """See Loader._parts. Keeps no tensor alive."""
    try:
        return [(name, tensor.shape, tensor.dtype, tensor.device, tensor.element_size())
                for name, tensor in summary.parts_of(batch, _is_tensor)]
    except Exception:  # tensors of strange kinds: the batch is not described
        return ()


def _is_tensor(value):
    return isinstance(value, torch.Tensor)
