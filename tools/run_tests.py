# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the tests of a build directory: run_tests.py DIRECTORY [ARGUMENT OF meson test]...

If a few programs fail, they run again one at a time: the log then shows whether a failure needs the load of the others.
tools/count_tests.py counts both runs and names what failed in the first. The exit status is that of the last run. What
a fuzzer has found counts: its inputs are random, so that another run proves nothing.
"""
import json
import os
import pathlib
import subprocess
import sys

from count_tests import GOOD_ENDS

MAX_RERUN = 4  # more failures than this are not due to load


def meson_test(directory, *arguments):
    return subprocess.run(["meson", "test", "-C", directory, "--no-rebuild", "--print-errorlogs", *arguments],
                          check=False).returncode


def failed_programs(log):
    """Their names, as `meson test` takes them."""
    if not log.exists():
        return []
    tests = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return [test["name"].rpartition(" / ")[2] for test in tests if test["result"] not in GOOD_ENDS]


def main():
    directory, arguments = sys.argv[1], sys.argv[2:]
    logs = pathlib.Path(directory) / "meson-logs"
    for base in ("testlog", "again"):
        for old in logs.glob(f"{base}.*"):
            old.unlink()
    # A test waits for its programs about as long as it computes, so one more than there are processors.
    status = meson_test(directory, "--num-processes", str((os.cpu_count() or 1) + 1), *arguments)
    failed = failed_programs(logs / "testlog.json")
    if 0 < len(failed) <= MAX_RERUN and not any(name.startswith("fuzz ") for name in failed):
        print(f"run_tests: run again, one at a time: {', '.join(failed)}", flush=True)
        status = meson_test(directory, "--num-processes", "1", "--logbase", "again", *failed)
    return status


if __name__ == "__main__":
    sys.exit(main())
