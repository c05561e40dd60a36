# SPDX-License-Identifier: MIT
"""Which steps have their operators measured: as many as a small share of the training's time allows.

The first step that can be measured is, so that a few steps are enough to see operators. A measured step takes
longer. By how much is known from the steps between, and the next one is due when the sum stays below that share."""
BUDGET = 0.02     # of the training's time, for measuring
_FIRST = 2        # step: the first one compiles and allocates
_BETWEEN = 4      # steps at least between two measured ones
_EARLY = 2        # measured steps that are not limited, so that a short run has some


class Sampling:
    """wanted: operators are to be measured; measured: steps that were."""

    def __init__(self):
        self.wanted = False
        self._forget()

    def _forget(self):
        self.measured = 0
        self._plain = 0           # steps that were not measured, and their seconds
        self._plain_seconds = 0.0
        self._extra = 0.0         # seconds that the measured ones took longer
        self._last = 0.0          # of the last one
        self._since = None        # (step, seconds): when this step, or the first of these steps, began
        self._measures = False
        self._gap = 0             # steps since the last measured one

    def want(self, on):
        """Measures operators from the next steps on, or no longer."""
        if on != self.wanted:
            self.wanted = on
            self._forget()

    def begins(self, step, now):
        """A step begins at that time, by a clock that does not run while stopped. Returns whether to measure it. Steps
        may be left out, if none of them is measured."""
        if not self.wanted:
            return False
        if self._since is not None:
            self._count(step - self._since[0], now - self._since[1])
        self._since = (step, now) if step >= _FIRST else None
        self._measures = self._since is not None and self._gap >= self._wait() and self._is_due()
        return self._measures

    def _count(self, steps, seconds):
        if self._measures:
            self.measured += 1
            self._gap = 0
            self._last = max(0.0, seconds - self._mean()) if self._plain else 0.0
            self._extra += self._last
        elif steps > 0:
            self._plain += steps
            self._gap += steps
            self._plain_seconds += seconds

    def _wait(self):
        """Steps between the last measured one and the next, at least."""
        return _BETWEEN if self.measured else 0

    def _mean(self):
        return self._plain_seconds / self._plain if self._plain else 0.0

    def _is_due(self):
        return self.measured < _EARLY or self._extra + self._last <= BUDGET * self._plain_seconds

    def most_idle(self, most):
        """How many steps, at most that many, pass until one may be measured."""
        if not self.wanted:
            return most
        wait = self._wait() - self._gap
        mean = self._mean()
        if self.measured >= _EARLY and mean > 0:
            wait = max(wait, int(((self._extra + self._last) / BUDGET - self._plain_seconds) / mean))
        return max(1, min(most, wait))


class Waits:
    """Places at which the program waits for a value, and how often. steps: that were measured."""
    MOST = 64

    def __init__(self):
        self._found = {}  # (function, place) -> [calls, seconds]

    def add(self, function, place, seconds):
        """The program has waited there."""
        entry = self._found.get((function, place))
        if entry is None:
            if len(self._found) >= self.MOST:
                return
            entry = self._found[function, place] = [0, 0.0]
        entry[0] += 1
        entry[1] += seconds

    def facts(self, steps):
        """For the debugger."""
        return [{"function": function, "place": place, "calls": calls, "seconds": seconds, "steps": steps}
                for (function, place), (calls, seconds) in self._found.items()]
