# SPDX-License-Identifier: MIT
"""Statistics of a tensor, computed on its device, and copies of its elements to the host.

Only a record of some dozen numbers crosses the bus, or all of a small tensor; those of many tensors at once, through
pinned memory and on a stream of its own. It waits for the training's stream up to the values, and for nothing else.
The statistics have the meaning that they have in libgradb; all sums are accumulated in float64. On the CPU the code
does the same."""
import math

import torch

from . import devices, record_kernel

CHUNK = 1 << 23      # elements that are processed together: a temporary of float64 takes 64 MiB
_SMALLEST_CHUNK = 1 << 16
_STAGING = 16 << 20  # bytes of pinned memory for copies to the host

_TINY = {torch.float16: 2.0 ** -14, torch.bfloat16: 2.0 ** -126, torch.float32: 2.0 ** -126,
         torch.complex64: 2.0 ** -126, torch.float64: 2.0 ** -1022, torch.complex128: 2.0 ** -1022}
_HUGE = 2.0 ** -64   # scale at which sums of doubles that overflow are computed
_computes = {}       # name of an Accelerator -> whether it computes statistics as the CPU does
_COUNTS = ("nan", "pos_inf", "neg_inf", "zero", "neg_zero", "negative", "denormal")


class Wanted:
    """What is wanted in addition to the statistics that are always computed.

    ranges: (lo, hi) pairs, both ends included; bins: (lo, hi, count) of a histogram;
    rtol, atol: with `previous`, elements match when |a - b| <= atol + rtol * |b|."""
    __slots__ = ("ranges", "rtol", "atol", "equal_nan", "bins")

    def __init__(self, ranges=(), rtol=0.0, atol=0.0, equal_nan=False, bins=None):
        self.ranges = ranges
        self.rtol = rtol
        self.atol = atol
        self.equal_nan = equal_nan
        self.bins = bins


NOTHING_MORE = Wanted()


class Record(dict):
    """The statistics, by their names in struct gradb_stats; histogram: a list, or None."""


def compute(tensor, wanted=NOTHING_MORE, previous=None, scale=1.0, previous_scale=1.0):
    """The Record of a strided tensor on any device, read in place.

    previous: a tensor of the same type, shape and device to compare with.
    scale: the elements are `scale` times what they stand for (gradients under a GradScaler): the statistics are those
    of tensor / scale; only `denormal` is about the elements as they are.
    RuntimeError: out of memory even for small parts."""
    chunk = CHUNK
    while True:
        try:
            work = Work(tensor, wanted, previous, (scale, previous_scale), chunk)
            return work.finish(gather(work.rows)[0])
        except RuntimeError as error:
            if "out of memory" not in str(error) or chunk <= _SMALLEST_CHUNK:
                raise
            chunk = max(chunk // 16, _SMALLEST_CHUNK)


class Work:
    """The statistics of a tensor while its device computes them; arguments as of compute, but scales: (scale,
    previous_scale). thorough: the quick ones would not be precise enough.

    rows: tensors of float64 on the device; gather() and finish() make the Record of them."""

    def __init__(self, tensor, wanted=NOTHING_MORE, previous=None, scales=(1.0, 1.0), chunk=CHUNK, thorough=False):
        self.tensor = tensor
        self.thorough = thorough
        self._wanted = wanted
        self._scales = scales
        self._parts = [part for part, _ in _parts(tensor, previous, chunk)]
        device = devices.of(tensor)
        fused = device.record_rows(tensor, _thorough) if device is not None else None
        self._fused = 0 if fused is None else len(fused)
        self.rows = [fused.view(-1)] if self._fused else [(_thorough if thorough else _quick)(part)
                                                          for part in self._parts]
        if wanted.ranges:
            self.rows += [_ranges(part, wanted, scales[0]) for part in self._parts]
        if wanted.bins and self._parts:
            self.rows.append(sum(_histogram(_unscaled(part, scales[0]), *wanted.bins) for part in self._parts)
                             .to(torch.float64))
        self._has_previous = previous is not None
        if previous is not None:
            self.rows += [_difference(part, before, wanted, scales) for part, before in _parts(tensor, previous, chunk)]

    def finish(self, rows):
        """The Record; rows: as lists of floats. Sets `thorough` where the quick statistics were not precise enough:
        then it waits for the device."""
        rows = iter(rows)
        total, slow = _Total(self.tensor.numel()), []
        if self._fused:
            fused = next(rows)
            size = len(fused) // self._fused
            for begin in range(0, len(fused), size):
                total.add_thorough(fused[begin:begin + size])
        for part in () if self._fused else self._parts:
            row = next(rows)
            if self.thorough:
                total.add_thorough(row)
            elif not total.add_quick(part, row):
                slow.append(part)
        for row in gather([_thorough(part) for part in slow])[0]:
            total.add_thorough(row)
        self.thorough = self.thorough or bool(slow)
        record, wanted = total.record(self._scales[0]), self._wanted
        if wanted.ranges:
            counts = [next(rows) for _ in self._parts]
            record["in_range"] = [int(sum(column)) for column in zip(*counts)] or [0] * len(wanted.ranges)
        if wanted.bins:
            record["histogram"] = list(map(int, next(rows))) if self._parts else [0] * wanted.bins[2]
        if self._has_previous:
            _add_difference(record, list(rows))
        return record


def _is_alike(record, other):
    """Whether all is equal, except that sums may be in another order."""
    return all(math.isclose(value, other[name], rel_tol=1e-12) if isinstance(value, float) else value == other[name]
               for name, value in record.items())


def computes(device):
    """Whether an Accelerator computes statistics as the CPU does: it may lack float64, or an operator."""
    if device.name not in _computes:
        sample = torch.tensor([[1.5, -0.0, 2.0 ** -130], [-3.25, 1000.0, 0.25]])
        wanted = Wanted([(-1.0, 2.0)], bins=(-4.0, 4.0, 8))
        try:
            there = sample.to(device.name)
            _computes[device.name] = (_is_alike(compute(there, wanted, there), compute(sample, wanted, sample))
                                      and _is_alike(compute(there * math.inf), compute(sample * math.inf)))
        except (RuntimeError, TypeError, NotImplementedError) as error:
            if "out of memory" in str(error):
                return False
            _computes[device.name] = False
    return _computes[device.name]


# ---- parts of a tensor ----

def _parts(tensor, previous, chunk):
    """Views of the tensor (and of the other one) of at most `chunk` elements, none of them empty."""
    count = tensor.numel()
    if count == 0:
        return
    if count <= chunk:
        yield tensor, previous
        return
    axis = max(range(tensor.dim()), key=lambda i: tensor.shape[i])
    each = max(1, tensor.shape[axis] * chunk // count)
    for first in range(0, tensor.shape[axis], each):
        size = min(each, tensor.shape[axis] - first)
        yield from _parts(tensor.narrow(axis, first, size),
                          None if previous is None else previous.narrow(axis, first, size), chunk)


def _magnitude(real, imaginary):
    """The magnitude of complex numbers; NaN, not infinity, where either part is NaN."""
    nan = torch.isnan(real) | torch.isnan(imaginary)
    return torch.hypot(real, imaginary).masked_fill_(nan, math.nan)


def _double(part):
    """The elements as float64; the magnitudes of complex ones."""
    if part.is_complex():
        pair = torch.view_as_real(part).to(torch.float64)
        return _magnitude(pair[..., 0], pair[..., 1])
    return part.to(torch.float64)


# ---- statistics that are always computed ----

def _quick(part):
    """A row of float64: min, max, sum, sum of |x|, root of the sum of squares, nonzero count, sign bits, count below 0,
    count of |x| below the smallest normal number. Valid only when all elements are finite."""
    values = part if part.is_floating_point() else _double(part)
    if values.device.type == "cpu" and values.element_size() == 2:
        values = values.to(torch.float32)  # the CPU lacks some of these for halves
    tiny = _TINY.get(part.dtype)
    least, greatest = torch.aminmax(values)
    row = [least, greatest, torch.sum(values, dtype=torch.float64),
           torch.linalg.vector_norm(values, 1, dtype=torch.float64),
           torch.linalg.vector_norm(values, 2, dtype=torch.float64),
           torch.count_nonzero(values), torch.signbit(values).sum(), (values < 0).sum()]
    if tiny is not None:
        row.append((values.abs() < tiny).sum())
    return torch.stack([number.to(torch.float64) for number in row])


def _thorough(part):
    """A row of float64, valid for all elements: counts as in _COUNTS, count of finite ones, min, max, sum, sum of |x|,
    both sums again at a scale at which they do not overflow, sum of squares, mean, sum of (x - mean)^2."""
    values = _double(part)
    tiny = _TINY.get(part.dtype, 0.0)
    finite = torch.isfinite(values)
    zero = values == 0
    clean = values.masked_fill(~finite, 0.0)
    size = clean.abs()
    count = finite.sum()
    total = clean.sum()
    # for a sum that overflows though its mean does not
    small = (clean * _HUGE).sum()
    mean = torch.where(torch.isfinite(total), total, small / _HUGE) / count
    spread = (clean - mean).masked_fill_(~finite, 0.0)
    row = [torch.isnan(values).sum(), (values == math.inf).sum(), (values == -math.inf).sum(), zero.sum(),
           (zero & torch.signbit(values)).sum(), (clean < 0).sum(), ((size < tiny) & ~zero & finite).sum(),
           count, values.masked_fill(~finite, math.inf).min(), values.masked_fill(~finite, -math.inf).max(),
           total, size.sum(), small, (size * _HUGE).sum(), (clean * clean).sum(), mean, (spread * spread).sum()]
    return torch.stack([number.to(torch.float64) for number in row])


class _Total:
    """Combines the rows of the parts, in order."""

    def __init__(self, count):
        self.count = count
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.finite = 0
        self.least, self.greatest = math.inf, -math.inf
        self.sums, self.sizes, self.squares = [], [], []
        self.mean, self.spread = 0.0, 0.0

    def add_quick(self, part, row):
        """Adds a row of _quick. False: it is not precise enough."""
        least, greatest, total, size, norm, nonzero, signs, negative = row[:8]
        squares = norm * norm
        count = part.numel()
        mean = total / count
        spread = squares - total * mean
        # inf, nan and overflows fail the first test; where the mean is large, the difference has no significant digits
        if not (math.isfinite(squares) and math.isfinite(size) and math.isfinite(least + greatest)
                and (spread >= squares / 64 or squares == 0)):
            return False
        if squares == 0 and nonzero:
            return False  # the squares of such small elements are all 0
        counts = self.counts
        zero = count - int(nonzero)
        counts["zero"] += zero
        counts["negative"] += int(negative)
        counts["neg_zero"] += int(signs) - int(negative)
        if len(row) > 8:
            counts["denormal"] += int(row[8]) - zero
        self._join(count, least, greatest, (total, size, squares), mean, max(spread, 0.0))
        return True

    def add_thorough(self, row):
        """Adds a row of _thorough."""
        for name, value in zip(_COUNTS, row):
            self.counts[name] += int(value)
        count, least, greatest, total, size, small, small_size, squares, mean, spread = row[len(_COUNTS):]
        if count == 0:
            return
        total = total if math.isfinite(total) else _grown(small)
        size = size if math.isfinite(size) else _grown(small_size)
        self._join(int(count), least, greatest, (total, size, squares), mean, spread)

    def _join(self, count, least, greatest, sums, mean, spread):
        self.least = min(self.least, least)
        self.greatest = max(self.greatest, greatest)
        for into, value in zip((self.sums, self.sizes, self.squares), sums):
            into.append(value)
        if not math.isfinite(mean):
            self.spread = math.inf
        else:
            both = self.finite + count
            apart = mean - self.mean
            self.spread += spread + apart * (apart * (self.finite * count / both))
            self.mean += apart * (count / both)
        self.finite += count

    def record(self, scale):
        """The Record of the elements divided by `scale`."""
        finite = self.finite
        record = Record(count=self.count, positive=finite - self.counts["negative"] - self.counts["zero"],
                        min=self.least / scale, max=self.greatest / scale, mean=0.0, abs_mean=0.0, std=0.0,
                        sum_sq=_sum(self.squares) / scale / scale, in_range=[], histogram=None,
                        has_previous=False)
        record.update(self.counts)
        if finite:
            record.update(mean=_sum(self.sums) / finite / scale, abs_mean=_sum(self.sizes) / finite / scale,
                          std=_root(self.spread / finite) / scale)
        return record


def _grown(value):
    return value / _HUGE if abs(value) <= 2.0 ** 960 else math.copysign(math.inf, value)


def _root(value):
    return math.sqrt(value) if value >= 0 else 0.0


def _sum(values):
    """Sums without intermediate rounding; infinite when beyond the largest double."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # beyond the largest double; inf and -inf
        return sum(values)


# ---- ranges and histogram ----

def _unscaled(part, scale):
    values = _double(part)
    return values if scale == 1.0 else values / scale


def _ranges(part, wanted, scale):
    """A row of float64: the number of elements in each of the ranges."""
    values = _unscaled(part, scale)
    return torch.stack([((values >= lo) & (values <= hi)).sum() for lo, hi in wanted.ranges]).to(torch.float64)


def _histogram(values, lo, hi, count):
    """The number of elements in each of `count` equal bins of [lo, hi], the last one closed; edges as in
    numpy.histogram. A tensor of int64."""
    if lo == hi:
        bins = torch.zeros(count, dtype=torch.int64, device=values.device)
        bins[count - 1] = (values == lo).sum()
        return bins
    # the width of the whole range of doubles overflows; so does the number of bins per unit among denormals
    factor = 0.5 if not math.isfinite(hi - lo) else 2.0 ** 600 if hi - lo < 2.0 ** -900 else 1.0
    lo, hi, values = lo * factor, hi * factor, values * factor if factor != 1.0 else values
    step = (hi - lo) / count
    values = values[(values >= lo) & (values <= hi)]
    place = ((values - lo) * (count / (hi - lo))).to(torch.int64).clamp_(max=count - 1)
    edge = place.to(torch.float64) * step
    lower = (values < edge + lo) & (place > 0)
    edge = (place + 1).to(torch.float64) * step
    upper = (values >= edge + lo) & (place + 1 < count) & ~lower
    return torch.bincount(place - lower.to(torch.int64) + upper.to(torch.int64), minlength=count)


# ---- against another tensor ----

def _add_difference(record, rows):
    columns = list(zip(*rows)) or [()] * 9
    pairs = int(sum(columns[0]))
    delta, size, squares, before, before_squares, dot = (_sum(column) for column in columns[1:7])
    record.update(has_previous=True, unpaired=record["count"] - pairs, sum_sq_delta=squares,
                  sum_sq_previous=before_squares, dot=dot, max_abs_delta=max(columns[7], default=0.0),
                  mismatch=record["count"] - int(sum(columns[8])), mean_delta=0.0, mean_abs_delta=0.0,
                  mean_abs_previous=0.0)
    if pairs:
        record.update(mean_delta=delta / pairs, mean_abs_delta=size / pairs, mean_abs_previous=before / pairs)


def _difference(part, before, wanted, scales):
    """A row of float64: number of pairs of finite elements; over these pairs the sums of the difference, its magnitude,
    its square, |before|, before^2 and the product; the largest difference; number of matches among all elements."""
    now, then = _double(part), _double(before)
    if scales != (1.0, 1.0):
        now, then = now / scales[0], then / scales[1]
    both = torch.isfinite(now) & torch.isfinite(then)
    if part.is_complex():
        distance, product = _complex_pair(part, before, scales)
    else:
        distance, product = (now - then).abs(), now * then
    near = torch.where(both, distance <= wanted.atol + wanted.rtol * then.abs(),
                       (now == then) & ~(distance > 0))
    if wanted.equal_nan:
        near = near | (torch.isnan(now) & torch.isnan(then))
    apart = ~both
    delta = (now - then).masked_fill_(apart, 0.0)
    distance = distance.masked_fill(apart, 0.0)
    size = then.abs().masked_fill_(apart, 0.0)
    row = [both.sum(), delta.sum(), distance.sum(), (distance * distance).sum(), size.sum(), (size * size).sum(),
           product.masked_fill(apart, 0.0).sum(), distance.max(), near.sum()]
    return torch.stack([number.to(torch.float64) for number in row])


def _complex_pair(part, before, scales):
    """(|a - b|, Re(a conj b)) of complex numbers; the distance of equal infinities is 0, of others infinite."""
    a = torch.view_as_real(part).to(torch.float64) / scales[0]
    b = torch.view_as_real(before).to(torch.float64) / scales[1]
    apart = a - b
    distance = _magnitude(apart[..., 0], apart[..., 1])
    equal = (a == b).all(dim=-1)
    unknown = torch.isnan(distance)
    distance = distance.masked_fill(unknown & equal, 0.0).masked_fill(unknown & ~equal, math.inf)
    return distance, a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1]


# ---- to the host ----

def gather(rows, tensors=()):
    """(rows of float64 as lists of floats, contiguous copies of strided tensors in host memory), with one copy and one
    wait. All are on one device."""
    pieces = [piece.contiguous() for piece in (*rows, *tensors)]
    device = devices.of(pieces[0]) if pieces else None
    if device is None or not device.copies_aside():
        copies = [piece.cpu() for piece in pieces]
    else:
        copies = _copied_at_once(device, pieces)
    return [row.tolist() for row in copies[:len(rows)]], copies[len(rows):]


def _copied_at_once(device, pieces):
    # the largest elements first: then each piece begins at a multiple of its elements' size
    order = sorted(range(len(pieces)), key=lambda i: -pieces[i].element_size())
    flat = [pieces[i].view(-1).view(torch.uint8) for i in order]
    pinned = torch.empty(sum(map(len, flat)), dtype=torch.uint8, device="cpu", pin_memory=True)
    device.copy(torch.cat(flat) if len(flat) > 1 else flat[0], pinned)
    copies, begin = [None] * len(pieces), 0
    for i, piece in zip(order, flat):
        copies[i] = pinned[begin:begin + len(piece)].view(pieces[i].dtype).view(pieces[i].shape)
        begin += len(piece)
    return copies


def to_host(tensor):
    """A contiguous copy of a strided tensor in host memory; from a device through pinned memory, in pieces."""
    device = devices.of(tensor)
    if device is None or not device.copies_aside():
        return tensor.to("cpu").contiguous()
    result = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")  # even where the default device is another
    pieces = list(_parts(tensor, result, max(1, _STAGING // tensor.element_size())))
    staging = torch.empty(max((piece.numel() for piece, _ in pieces), default=0), dtype=tensor.dtype,
                          device="cpu", pin_memory=True)
    for piece, place in pieces:
        pinned = staging[:piece.numel()].view(piece.shape)
        device.copy(piece.contiguous(), pinned)
        place.copy_(pinned)
    return result

