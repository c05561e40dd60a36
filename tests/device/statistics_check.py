#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Statistics and copies of tensors on a device, against the CPU: python/gradb/torch/device_stats.py.

    python statistics_check.py [--device cuda] [--library stats_of.so] [--time]

Prints "NAME ok" or "NAME FAILED: why" for each check; the exit status is the number of failures, at most 100. With
--library (tests/torch/stats_of.c on libgdbase) the statistics are compared with libgradb's, otherwise with those of the
thorough path on the CPU. Needs only PyTorch: neither gradb nor a network. --time also measures, in milliseconds, with
torch.isfinite for comparison."""
import argparse
import ctypes
import math
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from gradb import _lib  # noqa: E402
from gradb.torch import device_stats, record_kernel, source, values  # noqa: E402

DTYPES = [getattr(torch, name) for name in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64", "complex64", "complex128") if hasattr(torch, name)]
WANTED = {
    "plain": device_stats.NOTHING_MORE,
    "ranges": device_stats.Wanted(ranges=[(-1, 1), (0, 0), (0.1, 0.2), (-math.inf, math.inf), (math.inf, math.inf)],
                          bins=(-1.0, 1.0, 7)),
    "tolerance": device_stats.Wanted(rtol=0.1, atol=0.5, equal_nan=True, bins=(0.0, 0.0, 3)),
    "wide": device_stats.Wanted(bins=(-1.7e308, 1.7e308, 5)),
    "narrow": device_stats.Wanted(bins=(0.0, 2.0 ** -1000, 4)),
    "many bins": device_stats.Wanted(bins=(-3.0, 3.0, 600)),
}
# Sums in another order may differ by this part of the sum of the magnitudes.
_SUMS_OF = {"mean": "abs_mean", "mean_delta": "mean_abs_delta"}


def ordinary(dtype, count):
    """Random elements, on the CPU."""
    x = torch.randn(count, dtype=torch.float64) * 10
    if dtype == torch.bool:
        return x > 0
    if dtype.is_complex:
        return torch.complex(x, torch.randn(count, dtype=torch.float64)).to(dtype)
    if "uint" in str(dtype):
        return x.abs().to(torch.int64).to(dtype)
    return x.to(dtype)


def special(dtype):
    """The unusual values of a type."""
    if dtype.is_complex:
        part = special(torch.float32 if dtype == torch.complex64 else torch.float64)
        return torch.complex(part, part.flip(0))
    if dtype == torch.bool:
        return torch.tensor([True, False, True])
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return torch.tensor([0, 1, 2, 3] if limits.min == 0 else [limits.min, limits.max, 0, 1]).to(dtype)
    limits = torch.finfo(dtype)
    return torch.tensor([0.0, -0.0, 1, -1, limits.max, -limits.max, limits.tiny, -limits.tiny, limits.tiny / 4,
                         math.nan, math.inf, -math.inf, 0.5, -0.25], dtype=torch.float64).to(dtype).repeat(3)


def tensors(dtype):
    """name -> tensor on the CPU, of all shapes and contents."""
    found = {"plain": ordinary(dtype, 300), "empty": ordinary(dtype, 0), "scalar": ordinary(dtype, 1).reshape(()),
             "transposed": ordinary(dtype, 300).reshape(20, 15).t(), "strided": ordinary(dtype, 300)[::3],
             "expanded": ordinary(dtype, 5).reshape(1, 5).expand(9, 5), "special": special(dtype),
             "no columns": ordinary(dtype, 0).reshape(4, 0)}
    if dtype.is_floating_point:
        limits = torch.finfo(dtype)
        found.update({
            "denormal": (torch.arange(-5, 6, dtype=torch.float64) * limits.tiny / 4).to(dtype),
            "huge": torch.full((100,), limits.max, dtype=dtype),
            "offset": (torch.randn(200, dtype=torch.float64) * 1e-3 + 1000).to(dtype),
            "all nan": torch.full((10,), math.nan, dtype=dtype), "all inf": torch.full((10,), math.inf, dtype=dtype),
            "negative zero": torch.full((10,), -0.0, dtype=dtype), "equal": torch.full((100,), 3.0, dtype=dtype),
            "cancelling": torch.tensor([limits.max, limits.max, -limits.max, -limits.max, 1], dtype=dtype)})
    return found


def before(tensor):
    """Another tensor of that type and shape."""
    if tensor.dtype in DTYPES and "uint" in str(tensor.dtype) and tensor.dtype != torch.uint8:
        return tensor.clone()
    return tensor.reshape(-1).roll(1).reshape(tensor.shape)


def on(device, tensor):
    """The tensor on the device, with the same strides."""
    if tensor.device.type == device or tensor.numel() == 0:
        return tensor.to(device)
    if 0 in tensor.stride() and tensor.dim():
        return tensor[:1].to(device).expand(tensor.shape)
    if tensor.dim() == 2:
        return tensor.t().contiguous().to(device).t()
    return tensor.to(device)


def of_libgradb(library, tensor, wanted, previous):
    """The statistics that libgradb computes, as a Record."""
    given = _lib.StatsWanted(range_count=len(wanted.ranges), rtol=wanted.rtol, atol=wanted.atol,
                             equal_nan=wanted.equal_nan)
    for i, (lo, hi) in enumerate(wanted.ranges):
        given.range_lo[i], given.range_hi[i] = lo, hi
    bins = (ctypes.c_uint64 * (wanted.bins[2] if wanted.bins else 1))()
    if wanted.bins:
        given.bins_lo, given.bins_hi, given.bins = wanted.bins
    stats = _lib.Stats(histogram=bins)
    structs = [ctypes.byref(values.describe(t)) if t is not None else None for t in (tensor, previous)]
    if library.stats_of(*structs, ctypes.byref(given), ctypes.byref(stats)) != 0:
        raise RuntimeError("libgradb cannot compute this")
    found = {name: getattr(stats, name) for name, _ in _lib.Stats._fields_}
    found.update(in_range=list(stats.in_range)[:len(wanted.ranges)], histogram=list(bins) if wanted.bins else None)
    return found


def of_cpu(tensor, wanted, previous):
    """The same by the thorough path, on the CPU."""
    quick, device_stats._Total.add_quick = device_stats._Total.add_quick, lambda total, part, row: False
    try:
        return device_stats.compute(tensor, wanted, previous)
    finally:
        device_stats._Total.add_quick = quick


def differences(found, expected):
    """The differences: counts exactly, sums up to their order."""
    wrong = []
    for name, value in found.items():
        right = expected[name]
        same = value == right or (value != value and right != right)
        if not same and isinstance(value, float) and math.isfinite(value) and math.isfinite(right):
            size = max(abs(value), abs(right))
            if name in _SUMS_OF:
                size = expected[_SUMS_OF[name]]
            elif name == "dot":
                size = math.sqrt(expected["sum_sq"]) * math.sqrt(expected["sum_sq_previous"])
            same = abs(value - right) <= 1e-9 * size
        if not same and name in ("mean_delta", "dot") and not math.isfinite(expected["sum_sq_delta"]):
            continue  # infinite either way, depending on the order
        if not same:
            wrong.append("%s is %r, not %r" % (name, value, right))
    return wrong


class Checks:
    """Prints one line per check."""

    def __init__(self):
        self.failed = 0
        self.count = 0

    def tell(self, name, wrong):
        """`wrong`: one text per failure."""
        self.count += 1
        self.failed += bool(wrong)
        print("%s %s" % (name, "FAILED: " + "; ".join(wrong[:3]) if wrong else "ok"), flush=True)

    def run(self, name, function, *args):
        """A function that returns what is wrong."""
        try:
            self.tell(name, function(*args))
        except Exception as error:  # the next check may say more
            self.tell(name, ["%s: %s" % (type(error).__name__, error)])


def check_statistics(device, library, dtype, chunk, asked):
    """All statistics of all tensors of a type, for the names in WANTED that are asked for."""
    wrong = []
    whole, device_stats.CHUNK = device_stats.CHUNK, chunk
    try:
        for name, tensor in tensors(dtype).items():
            for which in asked:
                wanted = WANTED[which]
                for previous in (None, before(tensor) if tensor.numel() else tensor):
                    expected = (of_libgradb(library, tensor, wanted, previous) if library
                                else of_cpu(tensor, wanted, previous))
                    found = device_stats.compute(on(device, tensor), wanted,
                                              None if previous is None else on(device, previous))
                    wrong += ["%s, %s: %s" % (name, which, text) for text in differences(found, expected)]
    finally:
        device_stats.CHUNK = whole
    return wrong


def check_scale(device, dtype):
    """The statistics of a scaled gradient are those of the gradient."""
    wrong = []
    wanted = device_stats.Wanted(ranges=[(0.25, 1.0)], bins=(-2.0, 2.0, 8))
    gradient, earlier = ordinary(dtype, 500) / 64, ordinary(dtype, 500) / 64
    expected = device_stats.compute(gradient, wanted, earlier)
    found = device_stats.compute(on(device, gradient * 256), wanted, on(device, earlier * 64), 256.0, 64.0)
    wrong += differences({name: value for name, value in found.items() if name != "denormal"}, expected)
    gradient[7], gradient[9] = math.nan, math.inf
    found = device_stats.compute(on(device, gradient * 256), scale=256.0)
    if (found["nan"], found["pos_inf"]) != (1, 1):
        wrong.append("%d NaN and %d Inf" % (found["nan"], found["pos_inf"]))
    return wrong


def check_copies(device):
    """Copies to the host are equal bit for bit."""
    wrong = []
    staging, device_stats._STAGING = device_stats._STAGING, 1024
    try:
        for dtype in DTYPES:
            for name, tensor in tensors(dtype).items():
                copy = device_stats.to_host(on(device, tensor))
                if copy.numpy().tobytes() != tensor.contiguous().numpy().tobytes() if dtype != torch.bfloat16 else \
                        not torch.equal(copy.view(torch.int16), tensor.contiguous().view(torch.int16)):
                    wrong.append("%s of %s" % (name, dtype))
                if not copy.is_contiguous() or copy.device.type != "cpu":
                    wrong.append("%s of %s lies wrong" % (name, dtype))
    finally:
        device_stats._STAGING = staging
    return wrong


def check_gathering(device):
    """Tensors of all types, and rows, copied at once are equal bit for bit."""
    given = [tensor for dtype in DTYPES for tensor in tensors(dtype).values() if tensor.numel()]
    rows = [torch.arange(float(count), dtype=torch.float64) for count in (1, 9, 17)]
    lists, copies = device_stats.gather([on(device, row) for row in rows], [on(device, tensor) for tensor in given])
    wrong = ["a row"] if lists != [row.tolist() for row in rows] else []
    for tensor, copy in zip(given, copies):
        same = copy.view(-1).view(torch.uint8).tolist() == tensor.contiguous().view(-1).view(torch.uint8).tolist()
        if not same or copy.shape != tensor.shape or copy.dtype != tensor.dtype or copy.device.type != "cpu":
            wrong.append("%s of %s" % (tuple(tensor.shape), tensor.dtype))
    return wrong


def slice_items(index):
    """The index between Python's brackets, as structs gradb_slice_item."""
    found = []
    for item in index:
        if isinstance(item, slice):
            found.append(_lib.SliceItem(_lib.SLICE_RANGE, item.start is not None, item.stop is not None,
                                        item.start or 0, item.stop or 0, 1 if item.step is None else item.step))
        elif item is None or item is Ellipsis:
            found.append(_lib.SliceItem(_lib.SLICE_NEWAXIS if item is None else _lib.SLICE_ELLIPSIS, step=1))
        else:
            found.append(_lib.SliceItem(_lib.SLICE_INDEX, start=item, step=1))
    return found


class _Between:
    def __getitem__(self, index):
        return index if isinstance(index, tuple) else (index,)


def check_slices(device):
    """Parts of a tensor, against numpy's."""
    wrong = []
    tensor = torch.arange(2 * 5 * 7.0).reshape(2, 5, 7)
    x = _Between()
    for index in (x[1], x[-1, 2], x[:, 1:4], x[..., ::2], x[0, ..., 3], x[:, ::-1], x[None, 1, 4:0:-2, ::-3],
                  x[..., None, -2:], x[:, 3:3], x[:, 4:1], x[:, 1:4:-1], x[1, 4, 6], x[..., ::-1], x[-5:9]):
        part = device_stats.to_host(source.cut(on(device, tensor), slice_items(index)))
        right = tensor.numpy()[index]
        if tuple(part.shape) != right.shape or not (part.numpy() == right).all():
            wrong.append("%r" % (index,))
    for index in (x[2], x[0, 0, 0, 0], x[0, -6]):
        try:
            source.cut(on(device, tensor), slice_items(index))
            wrong.append("%r raised no error" % (index,))
        except IndexError:
            pass
    return wrong


def check_memory(device):
    """A tensor of many chunks needs temporaries for only a few chunks."""
    tensor = torch.randn(1 << 27, device=device)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    standing = torch.cuda.memory_allocated()
    tensor[5] = math.inf
    device_stats.compute(tensor, WANTED["ranges"], tensor)
    more = torch.cuda.max_memory_allocated() - standing
    return ["%d MiB on top" % (more >> 20)] if more > 12 * 8 * device_stats.CHUNK else []


def check_stream(device):
    """A value is waited for while another stream computes it."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        tensor = torch.ones(1 << 20, device=device)
        torch.cuda._sleep(100000000)
        tensor.mul_(2)
        record = device_stats.compute(tensor)
        copy = device_stats.to_host(tensor)
    return [] if record["min"] == 2.0 and bool((copy == 2).all()) else ["read too early"]


def measure(device):
    """Milliseconds per look, by size."""
    def timed(function):
        function()
        if device == "cuda":
            torch.cuda.synchronize()
        times = []
        for _ in range(20):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
        return 1e3 * sorted(times)[len(times) // 2]
    for count in (1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 27):
        x = torch.randn(count, device=device)
        print("time of %9d float32: statistics %.3f ms, with the previous step %.3f ms, isfinite().all() %.3f ms" % (
            count, timed(lambda: device_stats.compute(x)), timed(lambda: device_stats.compute(x, previous=x)),
            timed(lambda: bool(torch.isfinite(x).all()))), flush=True)


def run(checks, device, library):
    """All of them; library: libgradb's, to compare with, or None."""
    if hasattr(torch, "set_default_device"):
        torch.set_default_device("cpu")  # not what a backend may have made it
    for dtype in DTYPES:
        checks.run("statistics of %s" % dtype, check_statistics, device, library, dtype, device_stats.CHUNK, list(WANTED))
        checks.run("statistics of %s in parts" % dtype, check_statistics, device, library, dtype, 60, ["ranges"])
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        checks.run("scaled %s" % dtype, check_scale, device, dtype)
    checks.run("copies", check_copies, device)
    checks.run("copies of many at once", check_gathering, device)
    checks.run("slices", check_slices, device)
    if device == "cuda" and "emulated" not in torch.cuda.get_device_name():
        checks.run("memory", check_memory, device)
        checks.run("streams", check_stream, device)


def main():
    """Runs all checks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--library")
    parser.add_argument("--time", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(1)
    library = ctypes.CDLL(args.library) if args.library else None
    checks = Checks()
    run(checks, args.device, library)
    if args.time:
        measure(args.device)
    print("%d checks on %s (PyTorch %s), %d failed" % (checks.count, args.device, torch.__version__, checks.failed))
    sys.exit(min(checks.failed, 100))


if __name__ == "__main__":
    main()
