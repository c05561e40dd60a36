# SPDX-License-Identifier: MIT
"""Opens a memory snapshot of 1 GiB, against Python's pickle.load of the same file.

    bench_snapshot.py GRADB

Both are whole processes that alternate, with the file in the page cache; Python's collector is off, as that is faster.
`open.snapshot RATIO target T pass|short` is how many times faster gradb is, and `open.snapshot.seconds S target T ...`
what it takes. BENCH_REPEAT: rounds (3). BENCH_SNAPSHOT_BYTES: the size of the file. Python needs 6 GiB of memory.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "dump" / "memory"))
import big_snapshot  # noqa: E402

RATIO = 2
SECONDS = 10
LOAD = "import gc, os, pickle, sys\ngc.disable()\npickle.load(open(sys.argv[1], 'rb'))\nos._exit(0)"


def seconds(command):
    """The time that a process takes, and its peak memory in MiB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"bench: {command[0]} ended with status {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def line(name, value, target, passed):
    """A result."""
    print(f"{name} {value:.2f} target {target} {'pass' if passed else 'short'}", flush=True)


def main():
    size = int(os.environ.get("BENCH_SNAPSHOT_BYTES") or 1 << 30)
    with tempfile.TemporaryDirectory(prefix="gradb-bench-") as folder:
        path = pathlib.Path(folder, "snapshot.pickle")
        events = big_snapshot.write(path, size)
        ours, theirs = [], []
        for _ in range(int(os.environ.get("BENCH_REPEAT") or 3)):
            ours.append(seconds([sys.argv[1], "--batch", "-nx", "-ex", "info memory", "open", str(path)]))
            theirs.append(seconds([sys.executable, "-c", LOAD, str(path)]))
    took, peak = statistics.median(s for s, _ in ours), max(m for _, m in ours)
    print(f"# open.snapshot: {size >> 20} MiB, {events} events in {took:.2f} s and {peak:.0f} MiB, Python's pickle.load "
          f"{statistics.median(s for s, _ in theirs):.2f} s and {max(m for _, m in theirs):.0f} MiB")
    ratio = statistics.median(t / o for (o, _), (t, _) in zip(ours, theirs))
    line("open.snapshot", ratio, RATIO, ratio >= RATIO)
    line("open.snapshot.seconds", took, SECONDS, took <= SECONDS)


if __name__ == "__main__":
    main()
