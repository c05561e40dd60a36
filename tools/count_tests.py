# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts the cases of the last test run of each build directory from meson's JUnit files.

A program that failed and was run once more by itself (tools/run_tests.py) counts as that second run; what had failed
before is named. The last line is `N passed, N failed, N skipped`; the exit status is 1 when a case failed or none ran.
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as xml

GOOD_ENDS = ("OK", "SKIP", "EXPECTEDFAIL")


def read_cases(path):
    """Program name -> list of (case name, "passed" | "failed" | "skipped")."""
    programs = {}
    for suite in xml.parse(path).getroot().iter("testsuite"):
        cases = programs.setdefault(suite.get("name", "").partition(".")[2], [])
        for case in suite.iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                state = "failed"
            else:
                state = "passed" if case.find("skipped") is None else "skipped"
            cases.append((case.get("name", ""), state))
    return programs


def read_run(logs, base):
    """The cases of one run, an unhappy end without a failed case (a signal, the time limit, a leak) as one of them."""
    programs = read_cases(logs / f"{base}.junit.xml")
    for line in (logs / f"{base}.json").read_text(encoding="utf-8").splitlines():
        test = json.loads(line)
        cases = programs.setdefault(test["name"], [])
        if test["result"] not in GOOD_ENDS and not any(state == "failed" for _, state in cases):
            cases.append((f"ended with {test['result']}", "failed"))
    return programs


def failures(programs):
    return [f"{program}: {case}" for program, cases in programs.items() for case, state in cases if state == "failed"]


def count(directory):
    """[passed, failed, skipped] of a build directory; what failed is printed."""
    logs = pathlib.Path(directory) / "meson-logs"
    if not (logs / "testlog.junit.xml").exists() or not (logs / "testlog.json").exists():
        print(f"{directory}: no test ran")
        return [0, 1, 0]
    programs = read_run(logs, "testlog")
    if (logs / "again.junit.xml").exists() and (logs / "again.json").exists():
        again = read_run(logs, "again")
        for failure in failures({name: cases for name, cases in programs.items() if name in again}):
            print(f"{directory}: failed among the others, run once more: {failure}")
        programs.update(again)
    for failure in failures(programs):
        print(f"{directory}: FAILED {failure}")
    states = [state for cases in programs.values() for _, state in cases]
    numbers = [states.count(state) for state in ("passed", "failed", "skipped")]
    print(f"{directory}: {len(states)} tests ran: {numbers[0]} passed, {numbers[1]} failed, {numbers[2]} skipped")
    return numbers


def main():
    total = [0, 0, 0]
    for directory in sys.argv[1:]:
        total = [a + b for a, b in zip(total, count(directory))]
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
