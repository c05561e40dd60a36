# SPDX-License-Identifier: MIT
"""Scan of a dump against reading the same files, both from the page cache: many files with cat, few large ones with dd.

    bench_scan.py GRADB [MIB]

Prints `dump.scan_many RATIO target 0.7 pass|short` and the same for dump.scan_large: the speed of a scan for NaN and
Inf relative to reading, best of three. A comment shows the same for a watchpoint on a statistic.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

TARGET = 0.7
TIMES = 3


def write(folder, files, mib):
    """Writes `files` float32 files of `mib` MiB in total, in four steps."""
    each = mib * 2**18 // files
    values = np.random.default_rng(1).standard_normal(each, dtype=np.float32)
    for step in range(4):
        (folder / f"step_{step}").mkdir(parents=True)
        for number in range(files // 4):
            np.save(folder / f"step_{step}" / f"layer{number}.npy", values)


def scan_seconds(gradb, folder, watch):
    """Seconds of a scan by gradb's own clock, without opening the dump."""
    done = subprocess.run([gradb, "-nx", "-q", "--batch", "--json", "-ex", f"open {folder}", "-ex", f"watch {watch}",
                           "-ex", "scan"], stdout=subprocess.PIPE, text=True, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    scan = [one for one in told if one["type"] == "scan"][-1]
    assert scan["bytes"] > 0 and scan["hits"] == 0, scan
    return scan["seconds"]


def read_seconds(folder, large):
    """Seconds of cat for all files, or of dd for each large file."""
    files = sorted(map(str, folder.rglob("*.npy")))
    commands = ([["dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none"] for file in files] if large else
                [["cat", *files[i:i + 1000]] for i in range(0, len(files), 1000)])
    start = time.perf_counter()
    for command in commands:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def measure(gradb, name, files, mib):
    """One result. Reading and scanning alternate, so that other load affects both."""
    with tempfile.TemporaryDirectory(prefix="gradb-bench-", dir=os.environ.get("TMPDIR")) as home:
        folder = pathlib.Path(home, "dump")
        write(folder, files, mib)
        large = files < 100
        os.environ["XDG_STATE_HOME"] = home
        best = {"read": [], "TO": [], "max > 1e6": []}
        for _ in range(TIMES):
            best["read"].append(read_seconds(folder, large))
            for watch in ("TO", "max > 1e6"):
                best[watch].append(scan_seconds(gradb, folder, watch))
        read, scan, statistic = (min(best[key]) for key in best)
    print(f"# {files} files, {mib} MiB: {'dd' if large else 'cat'} {read:.2f} s, scan for NaN and Inf {scan:.2f} s, "
          f"with max {statistic:.2f} s ({read / statistic:.2f})")
    print(f"{name} {read / scan:.2f} target {TARGET} {'pass' if read / scan >= TARGET else 'short'}", flush=True)


def main():
    """Both results."""
    gradb, mib = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4096
    measure(gradb, "dump.scan_many", 4096, mib)
    measure(gradb, "dump.scan_large", 8, mib)


if __name__ == "__main__":
    main()
