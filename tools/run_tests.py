# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the tests of a build directory: run_tests.py DIRECTORY [ARGUMENT OF meson test]...

Programs that fail run once more, one at a time: whoever reads the log sees whether a failure needs the others' load.
tools/count_tests.py counts both runs and names what failed in the first. The exit status is that of the last run.
"""
import json
import os
import pathlib
import subprocess
import sys

from count_tests import GOOD_ENDS

FEW = 4  # more than this is no matter of load


def meson_test(directory, *arguments):
    return subprocess.run(["meson", "test", "-C", directory, "--no-rebuild", "--print-errorlogs", *arguments],
                          check=False).returncode


def failed_programs(log):
    """Names as `meson test` takes them."""
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
    # One more than there are processors: a test waits for its programs about as long as it computes.
    status = meson_test(directory, "--num-processes", str((os.cpu_count() or 1) + 1), *arguments)
    failed = failed_programs(logs / "testlog.json")
    if 0 < len(failed) <= FEW:
        print(f"run_tests: once more, by itself: {', '.join(failed)}", flush=True)
        status = meson_test(directory, "--num-processes", "1", "--logbase", "again", *failed)
    return status


if __name__ == "__main__":
    sys.exit(main())
