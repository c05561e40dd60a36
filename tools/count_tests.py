# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts the cases of the last test run of each build directory from meson's JUnit files.

The last line is `N passed, N failed, N skipped`; the exit status is 1 when a case failed or none ran.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml


def count(path):
    """(passed, failed, skipped) of one JUnit file; a program that died without a case counts as one."""
    passed = failed = skipped = 0
    for suite in xml.parse(path).getroot().iter("testsuite"):
        cases = list(suite.iter("testcase"))
        bad = sum(1 for case in cases if case.find("failure") is not None or case.find("error") is not None)
        left = sum(1 for case in cases if case.find("skipped") is not None)
        died = int(suite.get("errors", "0")) + int(suite.get("failures", "0"))
        if died and not bad:
            bad = 1
            cases.append(None)
        failed += bad
        skipped += left
        passed += len(cases) - bad - left
    return passed, failed, skipped


def main():
    total = [0, 0, 0]
    for directory in sys.argv[1:]:
        path = pathlib.Path(directory) / "meson-logs" / "testlog.junit.xml"
        if not path.exists():
            print(f"{directory}: no test ran")
            total[1] += 1
            continue
        numbers = count(path)
        print(f"{directory}: {sum(numbers)} tests ran: {numbers[0]} passed, {numbers[1]} failed, {numbers[2]} skipped")
        total = [a + b for a, b in zip(total, numbers)]
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
