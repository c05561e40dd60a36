# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs unit tests while you work: run_unit.py DIRECTORY [NAME]...

Builds what the chosen tests need and runs them. NAME is a part of a test's name, `slice` or `engine/watch`; it chooses
among the unit tests, or among all tests if no unit test matches. Without NAME, the suite "unit" runs.
The exit status is that of `meson test`, or 2 if no test has that name.
"""
import json
import pathlib
import re
import subprocess
import sys
import time

SLOWEST = 3


def simplify(name):
    return re.sub(r"[\W_]+", " ", name).lower()


def choose(tests, names):
    """The names of the tests to run; none if one of `names` matches nothing."""
    chosen = []
    for name in names:
        found = [test for test in tests if simplify(name) in simplify(test["name"])]
        unit = [test for test in found if any(suite.endswith("unit") for suite in test["suite"])]
        if not found:
            print(f"run_unit: no test is named {name}; `meson test -C build/release --list` lists them", file=sys.stderr)
            return []
        chosen += [test["name"] for test in unit or found]
    return chosen


def main():
    directory, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    arguments = ["--suite", "unit"]
    if names:
        # The list of tests is as new as the build files.
        subprocess.run(["ninja", "-C", directory, "build.ninja"], check=True, stdout=subprocess.DEVNULL)
        arguments = choose(json.loads((directory / "meson-info/intro-tests.json").read_text(encoding="utf-8")), names)
        if not arguments:
            return 2
    log = directory / "meson-logs/testlog.json"
    log.unlink(missing_ok=True)
    begin = time.monotonic()
    status = subprocess.run(["meson", "test", "-C", directory, "--print-errorlogs", "-q", *arguments],
                            check=False).returncode
    done = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    done.sort(key=lambda test: -test["duration"])
    if not done:
        return status
    slowest = ", ".join(f"{test['name'].rpartition(' / ')[2]} {test['duration']:.1f} s" for test in done[:SLOWEST])
    print(f"{len(done)} tests in {time.monotonic() - begin:.0f} s with the build; the slowest: {slowest}")
    return status


if __name__ == "__main__":
    sys.exit(main())
