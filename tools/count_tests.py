# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts the test cases of the last test run of each build directory: count_tests.py [--chosen] DIRECTORY...

Reads the JUnit files of meson. A program that tools/run_tests.py ran again counts as its second run; what failed in the
first is named. Prints the slowest programs, too. The last line is `N passed, N failed, N skipped`. The exit status is 1
if a case failed or none ran. A directory without tests counts as a failure, except with --chosen: not every build has
the tests that were asked for.
"""
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

GOOD_ENDS = ("OK", "SKIP", "EXPECTEDFAIL")
SLOWEST = 10
# Meson copies the output of a failed test into its JUnit file as it is, but XML excludes these characters.
NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_cases(path):
    """Program name -> list of (case name, "passed" | "failed" | "skipped")."""
    programs = {}
    text = NOT_IN_XML.sub("?", path.read_text(encoding="utf-8", errors="replace"))
    for suite in xml.fromstring(text).iter("testsuite"):
        cases = programs.setdefault(suite.get("name", "").partition(".")[2], [])
        for case in suite.iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                state = "failed"
            else:
                state = "passed" if case.find("skipped") is None else "skipped"
            cases.append((case.get("name", ""), state))
    return programs


def read_run(logs, base):
    """The cases of one run. A program that failed without a failed case (a signal, a timeout, a leak) adds one."""
    programs = read_cases(logs / f"{base}.junit.xml")
    for line in (logs / f"{base}.json").read_text(encoding="utf-8").splitlines():
        test = json.loads(line)
        cases = programs.setdefault(test["name"], [])
        if test["result"] not in GOOD_ENDS and not any(state == "failed" for _, state in cases):
            cases.append((f"ended with {test['result']}", "failed"))
    return programs


def failures(programs):
    return [f"{program}: {case}" for program, cases in programs.items() for case, state in cases if state == "failed"]


def count(directory, may_be_empty):
    """[passed, failed, skipped] of a build directory. Prints what failed."""
    logs = pathlib.Path(directory) / "meson-logs"
    if not (logs / "testlog.junit.xml").exists() or not (logs / "testlog.json").exists():
        print(f"{directory}: no test ran")
        return [0, 0 if may_be_empty else 1, 0]
    programs = read_run(logs, "testlog")
    if (logs / "again.junit.xml").exists() and (logs / "again.json").exists():
        again = read_run(logs, "again")
        for failure in failures({name: cases for name, cases in programs.items() if name in again}):
            print(f"{directory}: failed at first, run again: {failure}")
        programs.update(again)
    for failure in failures(programs):
        print(f"{directory}: FAILED {failure}")
    states = [state for cases in programs.values() for _, state in cases]
    numbers = [states.count(state) for state in ("passed", "failed", "skipped")]
    print(f"{directory}: {len(states)} tests ran: {numbers[0]} passed, {numbers[1]} failed, {numbers[2]} skipped")
    return numbers


def durations(directory):
    """(seconds, build directory, program) of the last run."""
    log = pathlib.Path(directory) / "meson-logs/testlog.json"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [(test["duration"], directory, test["name"]) for test in map(json.loads, lines)]


def main():
    chosen = "--chosen" in sys.argv
    total, slow = [0, 0, 0], []
    for directory in [argument for argument in sys.argv[1:] if argument != "--chosen"]:
        total = [a + b for a, b in zip(total, count(directory, chosen))]
        slow += durations(directory)
    if slow:
        print("The slowest tests:")
    for seconds, directory, name in sorted(slow, reverse=True)[:SLOWEST]:
        print(f"{seconds:8.1f} s  {directory}: {name.rpartition(' / ')[2]}")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
