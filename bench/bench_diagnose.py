# SPDX-License-Identifier: GPL-3.0-or-later
"""How many mistakes `gradb diagnose` finds, on the scripts of bench/diagnose: rules are developed on one half (dev), the
other half (held) shows how they do on scripts that they were not written for.

    bench_diagnose.py GRADB

For each half it prints what share of the faulty scripts was
    detected    a fault or a suspect is reported
    localised   one of the first three findings names a line of the mistake
    explained   the cause and the advice of one of the first three findings name the cause: all patterns of the script's
                .json match
    wrong       the first finding neither names the cause nor a line of it
and of the healthy ones, how many got a fault, and a fault or a suspect. The same by PyTorch's anomaly mode, which speaks by an
exception. output_changed: how many scripts printed something else under gradb, though they print the same twice without
it. processor_time: processor time under gradb, over that without it, of all scripts together.

BENCH_HALVES: "dev", "held" or both (the default); BENCH_SCRIPTS: names, separated by commas; BENCH_NAMES=1: print each script's
result, too (of dev always); BENCH_ANOMALY=0: leave anomaly mode out; BENCH_JOBS: scripts at a time (2)."""
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
LIMIT = 240  # seconds for one script
FIRST = 3    # findings that a person reads
TIMES = re.compile(r"runtime|per_second")  # lines that differ from run to run
ANOMALY = """import runpy, sys, torch
torch.autograd.set_detect_anomaly(True)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
TARGETS = {"detected": 0.95, "localised": 0.85, "explained": 0.80, "wrong": 0.02, "healthy_fault": 0.02}


def interpreter(needs):
    """The Python that a script needs; None: it is not installed."""
    python = BUILD / ("libs-venv" if "libs" in needs else "torch-venv") / "bin" / "python"
    if "libs" not in needs and os.environ.get("GRADB_TORCH_PYTHON"):
        return os.environ["GRADB_TORCH_PYTHON"]
    return str(python) if python.exists() else None


def run(command):
    """(exit status, output, errors, processor seconds) of a command, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="gradb-bench-") as folder:
        env = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", HOME=folder, PYTHONDONTWRITEBYTECODE="1",
                   HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            return None, "", "took longer than %d s" % LIMIT, 0.0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return done.returncode, done.stdout, done.stderr, (
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def is_missing(printed, lines):
    """Whether a line that a script has printed is not among these, except lines that contain times."""
    return any(line not in lines for line in printed.split("\n") if line.strip() and not TIMES.search(line))


class Script:
    """One script, what is known of it, and what was found."""

    def __init__(self, path):
        self.path = path
        self.about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        self.faulty = path.name.startswith("f_")
        text = path.read_text(encoding="utf-8").split("\n")
        wanted = [line.strip() for line in self.about.get("where", [])]
        self.lines = {number for number, line in enumerate(text, 1) if line.strip() in wanted}
        if self.faulty and not self.lines:
            raise ValueError("%s: none of the lines in \"where\" is in the script" % path.name)
        self.python = interpreter(self.about.get("needs", []))
        self.findings = []
        self.problem = ""
        self.seconds = {}
        self.anomaly = ""
        self.changed = False  # it printed something else under gradb

    def command(self, python):
        """The command line that runs it."""
        if "ranks" in self.about.get("needs", []):
            return [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(self.path)]
        return [python, str(self.path)]

    def measure(self, gradb):
        """Runs it plain, in anomaly mode, and under gradb."""
        status, printed, errors, self.seconds["plain"] = run(self.command(self.python))
        if os.environ.get("BENCH_ANOMALY") != "0" and "ranks" not in self.about.get("needs", []):
            other, _, self.anomaly, _ = run([self.python, "-c", ANOMALY, str(self.path)])
            self.anomaly = self.anomaly if other != 0 and (status == 0 or "anomaly" in self.anomaly.lower()) else ""
        code, output, errors, self.seconds["diagnose"] = run(
            [gradb, "-nx", "--json", "--listen", "127.0.0.1:0", "diagnose", "--", *self.command(self.python)])
        records = [json.loads(line) for line in output.split("\n") if line.startswith('{"v":1,"type":"diagnosis"')]
        logged = [json.loads(line)["text"] for line in output.split("\n") if line.startswith('{"v":1,"type":"log"')]
        if status == 0 and "ranks" not in self.about.get("needs", []) and is_missing(printed, logged):
            again = run(self.command(self.python))[1]  # which differs too where the script draws without a seed
            self.changed = not is_missing(printed, again.split("\n"))
        if not records:
            self.problem = "no diagnosis (status %s): %s" % (code, (errors.strip() or output.strip())[-300:])
            return
        self.findings = records[-1]["findings"]
        failed = records[-1]["looked_at"]["failed"]
        if failed:
            self.problem = "a watcher failed: %s" % failed[0]["error"]

    # ---- what counts ----

    def stated(self):
        """Faults and suspects."""
        return [one for one in self.findings if one["verdict"] != "note"]

    def is_at(self, finding):
        """Whether it names a line of the mistake."""
        return any(place.get("line") in self.lines and pathlib.Path(place.get("file", "")).name == self.path.name
                   for place in finding["where"])

    def names_cause(self, finding):
        """Whether its words name the cause."""
        text = finding["cause"] + ". " + finding.get("advice", "")
        return all(re.search(pattern, text) for pattern in self.about["words"])

    def result(self):
        """{figure: whether it counts}"""
        first = self.stated()[:FIRST]
        if not self.faulty:
            return {"healthy_fault": any(one["verdict"] == "fault" for one in first), "healthy_stated": bool(first)}
        return {"detected": bool(first), "localised": any(map(self.is_at, first)),
                "explained": any(map(self.names_cause, first)),
                "wrong": bool(first) and not self.names_cause(first[0]) and not self.is_at(first[0])}

    def anomaly_result(self):
        """The same for anomaly mode."""
        said = bool(self.anomaly)
        if not self.faulty:
            return {"healthy_fault": said, "healthy_stated": said}
        lines = {int(number) for name, number in re.findall(r'File "([^"]+)", line (\d+)', self.anomaly)
                 if name == str(self.path)}
        message = self.anomaly.strip().split("\n")[-1]
        return {"detected": said, "localised": said and bool(lines & self.lines),
                "explained": said and all(re.search(pattern, message) for pattern in self.about["words"]),
                "wrong": False}


def show(script):
    """One line on a script."""
    result = " ".join(name for name, counts in script.result().items() if counts) or "silent"
    first = script.stated()[0] if script.stated() else None
    said = "%s %s: %s" % (first["verdict"], first["rule"], first["cause"][:110]) if first else ""
    said += " PROBLEM: " + script.problem if script.problem else " OUTPUT CHANGED" if script.changed else ""
    print("#   %-28s group %2s  %-30s %s" % (script.path.stem, script.about["rule_group"], result, said), flush=True)


def report(half, scripts):
    """The figures of a half."""
    faulty, healthy = [one for one in scripts if one.faulty], [one for one in scripts if not one.faulty]
    print("# %s: %d faulty and %d healthy scripts, %d without an answer" % (
        half, len(faulty), len(healthy), sum(bool(one.problem) for one in scripts)))
    for group in sorted({one.about["rule_group"] for one in faulty}):
        own = [one.result() for one in faulty if one.about["rule_group"] == group]
        print("#   group %2d: %2d scripts, %s" % (group, len(own), ", ".join(
            "%s %d" % (name, sum(result[name] for result in own)) for name in own[0])))
    figures = []
    for name in ("detected", "localised", "explained", "wrong", "healthy_fault", "healthy_stated"):
        own = healthy if name.startswith("healthy") else faulty
        if own:
            share = sum(one.result()[name] for one in own) / len(own)
            if os.environ.get("BENCH_ANOMALY") != "0":
                print("#   anomaly mode, %s: %.3f" % (name, sum(one.anomaly_result()[name] for one in own) / len(own)))
            figures.append((name, share))
    for name, share in figures:
        target = TARGETS.get(name)
        good = target is not None and (share >= target if target > 0.5 else share <= target)
        print("diagnose.%s_%s %.3f target %s %s" % (
            half, name, share, "-" if target is None else target, "-" if target is None else "pass" if good else "short"))
    print("diagnose.%s_output_changed %d target 0 %s" % (half, sum(one.changed for one in scripts),
                                                       "short" if any(one.changed for one in scripts) else "pass"))
    cost = sum(one.seconds["diagnose"] for one in scripts) / max(1e-9, sum(one.seconds["plain"] for one in scripts))
    print("diagnose.%s_processor_time %.3f target - -" % (half, cost), flush=True)


def main():
    """Prints the figures of the halves."""
    only = [name for name in os.environ.get("BENCH_SCRIPTS", "").split(",") if name]
    for half in os.environ.get("BENCH_HALVES", "dev,held").split(","):
        scripts = [Script(path) for path in sorted((HERE / "diagnose" / half).glob("*.py")) if not only or path.stem in only]
        missing = [one for one in scripts if one.python is None]
        scripts = [one for one in scripts if one.python is not None]
        if missing:
            print("# %s: %d scripts left out: their Python is not installed (./dev test makes it)" % (half, len(missing)))
        if not scripts:
            continue
        names = half == "dev" or os.environ.get("BENCH_NAMES") == "1"
        # Threads would share one count of children's time: processes.
        with concurrent.futures.ProcessPoolExecutor(int(os.environ.get("BENCH_JOBS", "2"))) as pool:
            measured = []
            for script in pool.map(measured_by, [sys.argv[1]] * len(scripts), scripts):
                measured.append(script)
                if names:
                    show(script)
        report(half, measured)


def measured_by(gradb, script):
    """The script, measured; runs in a process of its own."""
    script.measure(os.path.abspath(gradb))
    return script


if __name__ == "__main__":
    main()
