# SPDX-License-Identifier: GPL-3.0-or-later
"""Command files against their expected output, in text and in JSON.

NAME.cmd is run in batch mode against charlm with a fixed seed and text; what it prints must be NAME.out,
and with --json NAME.json.out. Names that begin with err- must end with status 1, others with 0; a first
line `# status: N` says otherwise, `# trainer: none` runs without one and `# trainer: ARGUMENTS` gives it
more arguments. UPDATE=1 in the environment writes the expected files anew.

Numbers with a fraction may differ a little (compilers and processors round differently); everything
else must match to the letter, after ports, process numbers, times and paths have been replaced.
"""
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import harness

HERE = pathlib.Path(__file__).resolve().parent
DATA = harness.SOURCE / "LICENSES" / "MIT.txt"
CHARLM = [str(harness.CHARLM), "--data", str(DATA), "--seed", "7", "--threads", "1", *harness.SMALL, "--batch", "4",
          "--steps", "60"]
FRACTION = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")


def normalise(text):
    """What differs from run to run and from machine to machine, replaced by words."""
    for path, word in ((harness.CHARLM, "CHARLM"), (harness.BUILD, "BUILD"), (harness.SOURCE, "SOURCE")):
        text = text.replace(str(path), word).replace(str(pathlib.Path(path).resolve()), word)
    rules = (
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"\b((?:lib)?gradb|charlm) \d+\.\d+\.\d+\b", r"\1 N.N.N"),
        (r'("(?:type":"version|framework":"charlm)","version":")[\d.]+', r"\1N.N.N"),
        (r'"pid":\d+', '"pid":0'),
        (r"(?<=[\s\"])/[^\s\"]*/(charlm-\d+\.bin)", r"FOLDER/\1"),
        (r"\bpid( +)\d+", r"pid\1PID"),
        (r"(examples/charlm/\w+\.[ch]):\d+(\t.*)?", r"\1:LINE"),
        (r'("file":"[^"]*/charlm/\w+\.[ch]","line":)\d+', r"\g<1>0"),
        (r'("function":"[^"]*","code":)"(?:[^"\\]|\\.)*"', r'\1"CODE"'),
        (r"(?m)^      \S.*;$", "      CODE"),
        (r"\|[\u2581-\u2588 ]+\|", "|HISTOGRAM|"),
        (r'("inf":\d+,"counts":)\[[\d,]+\]', r"\1[0]"),
        (r"(?m)^( *-?[\d.]*[┤│]).*[░▒▓].*$", r"\1HEAT"),
        (r"[\u2581-\u2588]{2,}", "BARS"),
        (r"(?m)^( *[\d.]*[┤│]).*[\u2801-\u28ff].*$", r"\1CURVE"),
        (r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "since TIME"),
        (r"(?m)^(  recorded since +).*$", r"\1TIME"),
        (r'"recorded since":"[^"]*"', '"recorded since":"TIME"'),
        (r'"started":[\d.e+]+', '"started":0'),
        (r'"histogram":\[[^]]*\]', '"histogram":[]'),
        (r'("type":"scan".*"seconds":)[\d.e-]+', r"\g<1>0"),
        (r'"host":"[^"]*"', '"host":"HOST"'),
        (r"(?m)^(  host +).*$", r"\1HOST"),
        (r"(?m)^\{\"v\":1,\"type\":\"(?:log|start)\".*\n", ""),
        (r"(?m)^\{\"v\":1,\"type\":\"setting\",\"name\":\"on-error\",\"value\":\"kill\".*\n", ""),
        (r"(?m)^(\d+ +(?:watch|trace|twatch) +[yn] +\w+ +\S+ +\S+ +\S+) .*$", r"\1 COST"),
        (r"(?m)^((?:total|others) .*?\d) +[\d.]+ (?:us|ms|s) .*$", r"\1 COST"),
        (r"(?m)^Watching takes .*\n", ""),
        (r"(?m)^(Output of \S+: ).*$", r"\1PATH"),
        # A dump's graph has stacks, and so the place of the sources.
        (r"(?m)^(Dumped .*?), [\d.]+ (?:bytes|[KM]iB)", r"\1, SIZE"),
        (r'("earlier":\d+,"bytes":)\d+', r"\g<1>0"),
        (r'"total_bytes":\d+', '"total_bytes":0'),
        (r"(?m)^Process: RSS .*\nRAM: .*$", "PROCESS"),
        (r'"(rss|rss_peak|machine|machine_free)":\d+', r'"\1":0'),
        (r"(model\.c):\d+", r"\1:LINE"),
        (r'"(cost_ns|cost_bytes|compute_ns|wait_ns|report_bytes)":\d+', r'"\1":0'),
    )
    for pattern, word in rules:
        text = re.sub(pattern, word, text)
    return text


def same_line(expected, actual):
    """Equal but for fractions, which may differ by some thousandths."""
    if FRACTION.sub("#", expected) != FRACTION.sub("#", actual):
        return False
    for a, b in zip(FRACTION.findall(expected), FRACTION.findall(actual)):
        if abs(float(a) - float(b)) > 2e-4 + 3e-3 * abs(float(a)):
            return False
    return True


def words(path):
    """The lines of a command file, split at blanks, without comments."""
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()
            if line.strip() and not line.strip().startswith("#")]


class Coverage(unittest.TestCase):
    def test_every_command_is_in_some_file(self):
        """By its name or one of its short forms; subjects of `info` and events of `catch`, too."""
        lines = [line for path in HERE.glob("*.cmd") for line in words(path)]
        first = {re.match(r"/|!|\||[^/]*", line[0]).group() for line in lines}
        missing = []
        for command in json.loads(harness.run_gradb("--generate", "json-commands").stdout):
            names = {command["name"], *command["aliases"].split()}
            second = {line[1] for line in lines if len(line) > 1 and line[0] in names}
            if not first & names:
                missing.append(command["name"])
            missing += [f"{command['name']} {sub['name']}" for sub in command.get("sub") or []
                        if not second & {sub["name"], *sub["aliases"].split()}]
        self.assertEqual(missing, [])


class Golden(unittest.TestCase):
    maxDiff = None

    def options(self, path):
        """Status and trainer arguments from the comments at the top; None for no trainer."""
        status = 1 if path.name.startswith("err-") else 0
        extra = []
        for line in path.read_text(encoding="utf-8").splitlines():
            match = re.fullmatch(r"# (status|trainer): (.*)", line)
            if not match:
                break
            if match.group(1) == "status":
                status = int(match.group(2))
            else:
                extra = None if match.group(2) == "none" else match.group(2).split()
        return status, extra

    def check(self, path, as_json):
        status, extra = self.options(path)
        command = [] if extra is None else ["run", "--", *CHARLM, *extra]
        args = ["-q", "-nx", "--batch", *(["--json"] if as_json else []), "--listen", "127.0.0.1:0",
                "-ex", "set on-error kill", "-x", path.name, *command]
        with tempfile.TemporaryDirectory() as folder:  # what is written goes there
            for file in (path, *HERE.glob("*.txt")):
                shutil.copy(file, folder)
            done = harness.run_gradb(*args, cwd=folder, env={"COLUMNS": "100"})
        actual = normalise(done.stdout + done.stderr)
        expected_path = path.with_suffix(".json.out" if as_json else ".out")
        self.assertEqual(done.returncode, status, actual)
        if os.environ.get("UPDATE"):
            expected_path.write_text(actual, encoding="utf-8")
        expected = expected_path.read_text(encoding="utf-8")
        lines, wanted = actual.splitlines(), expected.splitlines()
        if len(lines) != len(wanted) or not all(map(same_line, wanted, lines)):
            self.assertMultiLineEqual(expected, actual)


def add_case(path, as_json):
    name = "test_" + path.stem.replace("-", "_") + ("_json" if as_json else "")
    setattr(Golden, name, lambda self: self.check(path, as_json))


for case in sorted(HERE.glob("*.cmd")):
    add_case(case, False)
    add_case(case, True)

if __name__ == "__main__":
    harness.main()
