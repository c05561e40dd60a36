# SPDX-License-Identifier: MIT
"""Where the training is in its data, in scripts that iterate over a dataset themselves: epochs and batches, like
../torch/loader.py. Model.train reports its own, see hooks."""
import functools
import threading
import weakref

from mindspore import Tensor
from mindspore.dataset.engine import iterators

from .. import summary
from ..clock import GAP
from ..epochs import Epochs, Place, Source
from ..wrappers import Wrappers
from .guard import guarded


class Data(Wrappers):
    """Wraps the iteration of datasets. told: Model runs, and reports by itself where it is; parts: (name, shape, dtype,
    bytes) of the last batch's tensors, kind: the class of its dataset."""

    def __init__(self, agent):
        super().__init__()
        self.agent = agent
        self.told = False
        self.parts = ()
        self.kind = ""
        self._sources = weakref.WeakKeyDictionary()  # dataset -> its Source
        self._places = weakref.WeakKeyDictionary()   # iterator -> its Place, while an epoch of it is under way
        self._epochs = None
        self._last = None    # Place of the iterator that returned a batch last
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
            data._note(iterator, batch)
            return batch
        self._wrap(iterators.Iterator, "__next__", __next__)

    def _timed(self, following, iterator):
        """Waiting for a batch is a section of the step, unless the batch is for an evaluation."""
        steps, timing = self.agent.steps, self.agent.timing
        place = self._places.get(iterator)
        apart = not self.told and place is not None and self._epochs.known and not place.source.last
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
        if dataset is None or iterator in self._places:
            return
        if self._epochs is None:
            self._epochs = Epochs(self.agent.happenings)
        source = self._sources.setdefault(dataset, Source())
        place = self._places[iterator] = Place(source)
        if source.last:
            self._epochs.begins(place)

    @guarded
    def _exhausted(self, iterator):
        place = self._places.pop(iterator, None)
        if place is not None and not self._epochs.ends(place) and place is self._last:
            self.agent.happenings.evaluation_ends()

    @guarded
    def _got(self, iterator):
        place = self._places.get(iterator)
        if place is not None:
            self._last = place
            place[1] += 1

    def _note(self, iterator, batch):
        """Keeps no tensor alive."""
        try:
            self.parts = [(name, tensor.shape, tensor.dtype, tensor.nbytes)
                          for name, tensor in summary.parts_of(batch, _is_tensor)]
            self.kind = type(_dataset_of(iterator)).__name__
        except Exception:  # the batch is not described
            self.parts = ()

    def feeds(self):
        """A training step uses the last batch. Returns (epoch, batch) of it, or None."""
        place = self._last
        if place is None or self.told:
            return None
        if not place[0]:
            self._epochs.begins(place)
        return tuple(place)


def _is_tensor(value):
    return isinstance(value, Tensor)


def _dataset_of(iterator):
    return getattr(iterator, "_Iterator__ori_dataset", None)
