# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs unit tests while you work: run_unit.py DIRECTORY [NAME]...

Builds what the chosen tests need and runs them. NAME is a part of a test's name, `slice` or `engine/watch`; it chooses
among the unit tests, or among all tests if no unit test matches. Without NAME, the suite "unit" runs.
The exit status is that of `meson test`, 1 if the build fails, or 2 if no test has that name.
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


def is_unit(test):
    return any(suite.endswith("unit") for suite in test["suite"])


def choose(tests, names):
    """The tests to run; none if one of `names` matches nothing."""
    chosen = {}
    for name in names:
        found = [test for test in tests if simplify(name) in simplify(test["name"])]
        if not found:
            print(f"run_unit: no test is named {name}; `meson test -C build/release --list` lists them", file=sys.stderr)
            return []
        units = [test for test in found if is_unit(test)] or found
        chosen.update((test["name"], test) for test in units)
        if len(units) < len(found):
            others = ", ".join(test["name"] for test in found if test not in units)
            print(f"run_unit: not chosen, as no unit test: {others}", flush=True)
    return list(chosen.values())


def targets(directory, tests):
    """What ninja must build. A test without dependencies may run any program, unless it is a unit test."""
    if any(not test["depends"] and not is_unit(test) for test in tests):
        return ["all"]
    wanted = {target for test in tests for target in test["depends"]}
    root = directory.resolve()
    return [str(pathlib.Path(file).relative_to(root)) for target in read(directory, "targets")
            if target["id"] in wanted for file in target["filename"]]


def read(directory, what):
    return json.loads((directory / f"meson-info/intro-{what}.json").read_text(encoding="utf-8"))


def summary(log, seconds):
    done = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    done.sort(key=lambda test: -test["duration"])
    slowest = ", ".join(f"{test['name'].rpartition(' / ')[2]} {test['duration']:.1f} s" for test in done[:SLOWEST])
    return f"{len(done)} tests in {seconds:.0f} s with the build; the slowest: {slowest}"


def main():
    directory, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    log = directory / "meson-logs/testlog.json"
    log.unlink(missing_ok=True)
    begin = time.monotonic()
    ninja = ["ninja", "--quiet", "-C", directory]
    # The list of tests is made together with build.ninja.
    if subprocess.run([*ninja, "build.ninja"], check=False).returncode:
        return 1
    tests = read(directory, "tests")
    tests = choose(tests, names) if names else [test for test in tests if is_unit(test)]
    if not tests:
        return 2
    wanted = targets(directory, tests)
    if wanted and subprocess.run([*ninja, *wanted], check=False).returncode:
        return 1
    status = subprocess.run(["meson", "test", "-C", directory, "--no-rebuild", "--print-errorlogs", "-q",
                             *[test["name"] for test in tests]], check=False).returncode
    print(summary(log, time.monotonic() - begin))
    return status


if __name__ == "__main__":
    sys.exit(main())
