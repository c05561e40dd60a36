# SPDX-License-Identifier: GPL-3.0-or-later
"""metric_tool.c for tests in Python."""
import subprocess

CLASSES, LOGITS, PROBABILITIES, VALUES = 1, 2, 3, 4  # enum gd_metric_form


class MetricError(Exception):
    """What the metric refused."""


class Metric:
    """One metric; arrays are NumPy's."""

    def __init__(self, tool, spec):
        self._process = subprocess.Popen([str(tool)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.spec = self._ask("metric " + spec)[0]
        except MetricError:
            self.close()
            raise

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _ask(self, line, *bodies):
        self._process.stdin.write(line.encode() + b"\n" + b"".join(bodies))
        self._process.stdin.flush()
        lines = []
        while True:
            answer = self._process.stdout.readline().decode().rstrip("\n")
            if answer == ".":
                return lines
            if answer.startswith("error: "):
                raise MetricError(answer[7:])
            lines.append(answer)

    def update(self, outputs, labels, form=0, ignore=None):
        words = " ".join("%s %s" % (array.dtype, ",".join(map(str, array.shape)) or "-")
                         for array in (outputs, labels))
        self._ask("batch %d %s %s" % (form, "-" if ignore is None else ignore, words), outputs.tobytes(),
                  labels.tobytes())
        return self

    def add(self, number):
        self._ask("number %r" % number)

    def clear(self):
        self._ask("clear")

    def numbers(self):
        return {name: float(value) for name, value in (line.split() for line in self._ask("numbers"))}

    def value(self):
        """The only number."""
        (value,) = self.numbers().values()
        return value

    def counts(self):
        names = ("samples", "batches", "nan", "ignored", "out_of_range", "not_kept")
        return dict(zip(names, map(int, self._ask("counts")[0].split())))

    def matrix(self):
        return [[int(cell) for cell in line.split()] for line in self._ask("matrix")]

    def save(self):
        return self._ask("save")[0]

    def merge(self, text):
        self._ask("merge " + text)
