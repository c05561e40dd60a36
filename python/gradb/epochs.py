# SPDX-License-Identifier: MIT
"""Numbers the epochs of a training, whose data may come from a loader that is made for each epoch, or from several at
a time."""
import weakref


class Source:
    """A loader or dataset, to which it does not refer. last: the last epoch in which it fed the training, or 0."""
    __slots__ = ("last", "__weakref__")

    def __init__(self):
        self.last = 0


class Place(list):
    """[epoch, batch] of an iteration over a source; the epoch is 0 until the training uses it."""
    __slots__ = ("source",)

    def __init__(self, source):
        super().__init__((0, 0))
        self.source = source


class Epochs:
    """Of loops that iterate over their data themselves. known: some epoch has begun."""

    def __init__(self, happenings):
        self._happenings = happenings
        self._running = None  # weak reference to the source whose epoch has begun
        self.known = False

    def begins(self, place):
        """The training reads from there. The number is that of another source whose epoch has begun and not ended, as
        the steps use both, or the next one."""
        source, now = place.source, self._happenings.epoch
        other = self._running() if self._running is not None else None
        beside = other is not None and other is not source
        source.last = place[0] = max(source.last, now - beside) + 1
        self.known = True
        if not beside or source.last != now:
            self._running = weakref.ref(source)
            self._happenings.epoch_begins(source.last)

    def ends(self, place):
        """There are no more batches. Whether that ends the epoch."""
        if self._running is None or self._running() is not place.source:
            return False
        self._running = None
        self._happenings.epoch_ends()
        return True
