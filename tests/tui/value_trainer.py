# SPDX-License-Identifier: GPL-3.0-or-later
"""A trainer whose tensors a test makes up: any type, shape and value, sent as far as they are asked for."""
import contextlib
import re
import sys
import threading

import numpy as np

import harness

sys.path.insert(0, str(harness.SOURCE / "tests" / "e2e"))
from test_protocol import Trainer, pb  # noqa: E402

DTYPES = {"bool": pb.BOOL, "int8": pb.INT8, "int16": pb.INT16, "int32": pb.INT32, "int64": pb.INT64,
          "uint8": pb.UINT8, "uint16": pb.UINT16, "uint32": pb.UINT32, "uint64": pb.UINT64,
          "float16": pb.FLOAT16, "float32": pb.FLOAT32, "float64": pb.FLOAT64, "bfloat16": pb.BFLOAT16,
          "complex64": pb.COMPLEX64, "complex128": pb.COMPLEX128}
PIECE = 1 << 19


class Value:
    """An array, and its type where numpy has none of that name (bfloat16: the array holds its bits).

    whole: what statistics are made of, when the array is too big to look at."""

    def __init__(self, array, dtype=None, whole=None):
        self.array = array
        self.dtype = dtype or array.dtype.name
        self.whole = array if whole is None else whole

    def numbers(self):
        if self.dtype == "bfloat16":
            return (self.whole.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        if self.dtype.startswith("complex"):
            return np.abs(self.whole.astype(np.complex128))
        return self.whole.astype(np.float64)


def statistics(value):
    with np.errstate(all="ignore"):
        numbers = value.numbers()
        finite = numbers[np.isfinite(numbers)]
        some = finite.size > 0
        return pb.Stats(count=value.array.size, nan=int(np.isnan(numbers).sum()),
                        pos_inf=int((numbers == np.inf).sum()), neg_inf=int((numbers == -np.inf).sum()),
                        zero=int((numbers == 0).sum()), positive=int((finite > 0).sum()),
                        negative=int((finite < 0).sum()), min=float(finite.min()) if some else np.inf,
                        max=float(finite.max()) if some else -np.inf,
                        mean=float((finite / finite.size).sum()) if some else 0,
                        abs_mean=float((np.abs(finite) / finite.size).sum()) if some else 0,
                        sum_sq=0, std=float(finite.std()) if some else 0)


def item_of(item):
    """A part of a slice as numpy has it."""
    if item.kind == pb.SliceItem.INDEX:
        return item.start
    if item.kind == pb.SliceItem.RANGE:
        return slice(item.start if item.has_start else None, item.stop if item.has_stop else None,
                     item.step if item.has_step else None)
    return Ellipsis if item.kind == pb.SliceItem.ELLIPSIS else None


class ValueTrainer(Trainer):
    """values: {name: Value, or None for one that is not kept}. nodes: more of the graph."""

    def __init__(self, port, values, nodes=()):
        super().__init__(port)
        self.values = dict(enumerate(values.values(), 1))
        self.sent = 0  # bytes of elements
        self.hello(capabilities=[pb.CAPABILITY_STATS, pb.CAPABILITY_SLICE])
        assert self.hear("welcome") is not None
        self.say(graph=pb.GraphChunk(graph="made up", commit=True, nodes=[
            *(pb.Node(id=number, name=name, type="Made", order=number, outputs=[pb.Output(
                dtype=DTYPES[value.dtype] if value else pb.FLOAT32, shape=value.array.shape if value else [2])])
              for (number, value), name in zip(self.values.items(), values)), *nodes]))
        self.stand(step=1)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            message = self.heard.get()
            if message is None:
                return
            kind = message.WhichOneof("msg")
            if kind == "fetch":
                self._fetch(message.fetch)
            elif kind == "stats":
                self._stats(message.stats)

    def _value(self, request):
        value = self.values.get(request.node)
        if value is None:
            self.say(error=pb.RequestError(request=request.request, code=pb.RequestError.NO_VALUE,
                                           text="the value was not kept"))
        return value

    def _fetch(self, fetch):
        value = self._value(fetch)
        if value is None:
            return
        part = value.array[tuple(item_of(item) for item in fetch.slice)]
        data = part.tobytes()
        self.sent += len(data)
        self.say(tensor_begin=pb.TensorBegin(request=fetch.request, dtype=DTYPES[value.dtype], shape=part.shape,
                                             bytes=len(data), step=1))
        for at in range(0, len(data), PIECE):
            self.say(tensor_data=pb.TensorData(request=fetch.request, offset=at, data=data[at:at + PIECE]))

    def _stats(self, request):
        value = self._value(request)
        if value is not None:
            self.say(stats=pb.StatsReply(request=request.request, value=pb.TensorStats(
                node=request.node, slot=request.slot, dtype=DTYPES[value.dtype], shape=value.array.shape, step=1,
                stats=statistics(value))))


@contextlib.contextmanager
def value_trainer(terminal, values, nodes=()):
    """It connects to the gradb of a terminal, which waits for one; the prompt has the focus."""
    terminal.expect(r"127\.0\.0\.1:\d+")
    port = int(re.search(r"127\.0\.0\.1:(\d+)", terminal.text())[1])
    trainer = ValueTrainer(port, values, nodes)
    try:
        terminal.expect(r"stopped")
        yield trainer
    finally:
        trainer.close()
