# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds that numpy needs for the statistics that gradb computes in one pass. Argument: a file of float32."""
import sys
import time

import numpy as np

TINY = np.float32(2.0**-126)


def statistics(x):
    finite = np.isfinite(x)
    f = x if finite.all() else x[finite]
    size = np.abs(f)
    zero = f == 0
    return {
        "nan": np.count_nonzero(np.isnan(x)), "pos_inf": np.count_nonzero(x == np.inf),
        "neg_inf": np.count_nonzero(x == -np.inf), "zero": np.count_nonzero(zero),
        "neg_zero": np.count_nonzero(zero & np.signbit(f)), "positive": np.count_nonzero(f > 0),
        "negative": np.count_nonzero(f < 0), "denormal": np.count_nonzero((size < TINY) & ~zero),
        "min": f.min(), "max": f.max(), "mean": f.mean(dtype=np.float64), "abs_mean": size.mean(dtype=np.float64),
        "sum_sq": np.square(f, dtype=np.float64).sum(), "std": f.std(dtype=np.float64),
    }


def main():
    x = np.fromfile(sys.argv[1], np.float32)
    times = []
    for _ in range(2):
        start = time.perf_counter()
        statistics(x)
        times.append(time.perf_counter() - start)
    print(min(times))


if __name__ == "__main__":
    main()
