# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts the cases of the last test run of each build directory from meson's JUnit files.

The last line is `N passed, N failed, N skipped`; the exit status is 1 when a case failed or none ran.
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as xml


def count_cases(path):
    """(passed, failed, skipped, names of programs with a failed case) of a JUnit file."""
    passed = failed = skipped = 0
    programs = set()
    for suite in xml.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
                programs.add(suite.get("name", "").partition(".")[2])
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
    return passed, failed, skipped, programs


def count_deaths(path, known):
    """Programs that ended badly (a signal, the time limit, a leak) without a failed case of their own."""
    deaths = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        test = json.loads(line)
        name = test["name"]
        if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL") and name not in known:
            print(f"{path.parent.parent}: {name} ended with {test['result']} without a failed case")
            deaths += 1
    return deaths


def count(logs):
    passed, failed, skipped, known = count_cases(logs / "testlog.junit.xml")
    return passed, failed + count_deaths(logs / "testlog.json", known), skipped


def main():
    total = [0, 0, 0]
    for directory in sys.argv[1:]:
        logs = pathlib.Path(directory) / "meson-logs"
        if not (logs / "testlog.junit.xml").exists() or not (logs / "testlog.json").exists():
            print(f"{directory}: no test ran")
            total[1] += 1
            continue
        numbers = count(logs)
        print(f"{directory}: {sum(numbers)} tests ran: {numbers[0]} passed, {numbers[1]} failed, {numbers[2]} skipped")
        total = [a + b for a, b in zip(total, numbers)]
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
