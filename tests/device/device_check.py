#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does gradb work on this machine's accelerator, and what does it cost there? `./dev device-check` runs it.

    python device_check.py [--gradb PROGRAM] [--device NAME] [--seconds S]

With the Python and PyTorch that this interpreter has. It checks gradb's statistics of tensors on the device against the
CPU's, trains small networks with and without gradb, compares what they compute and what gradb says of them, and ends with
a table. The exit status is 1 if a check failed. It takes about five minutes; --seconds is for each timed training."""
import argparse
import contextlib
import datetime
import io
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import torch

import check_training
import statistics_check

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 300   # seconds of a training
FEW = 1e-8    # relative difference of sums in another order, and of numbers that are shown with 9 digits
MODELS = ("network", "transformer")
LARGE = ("large transformer",)  # only on a real accelerator
# name -> gradb's commands after `run`
WAYS = {"idle": (), "watch -step on weights": ("watch -step TO on weights",), "watch on all": ("watch TO on all",),
        "diagnose": ("agent observe on",)}


def device_of(asked):
    """(type of the device, what it is, in words)."""
    accelerator = getattr(torch, "accelerator", None)
    kind = asked or (accelerator.current_accelerator().type if accelerator and accelerator.is_available() else
                     "cuda" if torch.cuda.is_available() else "cpu")
    if kind == "cpu":
        return kind, "%s, %d threads" % (platform.processor() or platform.machine(), torch.get_num_threads())
    module = getattr(torch, kind)
    name = module.get_device_name() if hasattr(module, "get_device_name") else kind
    return kind, "%s (%d)" % (name, module.device_count() if hasattr(module, "device_count") else 1)


class Check:
    """What was found. failed: lines, one per check that failed."""

    def __init__(self, gradb, kind, folder):
        self.gradb, self.kind, self.folder = gradb, kind, pathlib.Path(folder)
        self.passed = 0
        self.failed = []
        self.notes = []   # lines, what could not be checked
        self.times = {}   # model -> way ("" for none) -> seconds of a step, one per round
        self.counts = {}  # way -> counts of a step

    def expect(self, holds, text, *args):
        """One check."""
        if holds:
            self.passed += 1
        else:
            self.failed.append(text % args)
            print("FAILED: " + text % args, flush=True)

    # ---- trainings ----

    def environment(self, **more):
        """Without a debugger's address; gradb's own files go into the folder."""
        env = dict(os.environ, HOME=str(self.folder), XDG_CONFIG_HOME=str(self.folder), TERM="dumb",
                   XDG_STATE_HOME=str(self.folder), CUBLAS_WORKSPACE_CONFIG=":4096:8", **more)
        for name in ("GRADB_ADDRESS", "RANK", "WORLD_SIZE", "LOCAL_RANK"):
            env.pop(name, None)
        return env

    def words(self, model, steps):
        """The command line of a training, and the file of its result."""
        result = self.folder / "result.json"
        result.unlink(missing_ok=True)
        return [sys.executable, str(HERE / "check_training.py"), self.kind, model, str(steps), str(result)], result

    def train(self, model, steps, commands=None):
        """(the result of a training, the records that gradb printed). commands: gradb's; None: without gradb."""
        words, result = self.words(model, steps)
        env = self.environment(GRADB_DISABLE="1") if commands is None else self.environment()
        if commands is not None:
            program = " ".join('"%s"' % word for word in words)
            lines = ("set start-timeout 0", "run -- " + program, *commands)
            words = [self.gradb, "-nx", "-q", "--batch", "--json", "--listen", "127.0.0.1:0",
                     *(word for line in lines for word in ("-ex", line))]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=LIMIT)
        records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if not result.exists():
            self.expect(False, "%s did not end: %s", model, (done.stderr or done.stdout)[-300:].strip())
            return None, records
        return json.loads(result.read_text()), records

    def compare(self, model, steps, rounds):
        """Times a model with and without gradb. Its weights must be the same in the end, if they always are without."""
        times, digests = self.times.setdefault(model, {}), {}
        for _ in range(rounds):
            for way, commands in {"": None, **WAYS}.items():
                print("%s: %s" % (model, way or "without gradb"), flush=True)
                done, _ = self.train(model, steps, None if commands is None else (*commands, "continue"))
                if done is not None:
                    times.setdefault(way, []).append(done["seconds"])
                    digests.setdefault(way, set()).add(done["digest"])
                    self.counts.setdefault(way, done["counts"])
        bare = digests.pop("", set())
        if len(bare) > 1:
            self.notes.append("the weights of %s differ from run to run without gradb: not compared" % model)
            return
        for way, found in digests.items():
            self.expect(found == bare, "%s, %s: the weights differ from those without gradb", model, way)

    def steps_for(self, model, seconds):
        """How many steps take that long."""
        done, _ = self.train(model, 5)
        return max(8, min(2000, int(seconds / done["seconds"]))) if done else 0

    # ---- what gradb says ----

    def check_values(self):
        """At the ends of the first steps, gradb says what the training itself has read."""
        name = "net/0/weight"
        commands = [line for _ in range(check_training.TOLD) for line in ("step", "stats " + name, "info scalars")]
        done, records = self.train("network", 8, (*commands, "delete", "continue"))
        found = [record for record in records if record.get("command") == "stats"]
        scalars = [record for record in records if record.get("command") == "info scalars"]
        self.expect(len(found) == len(scalars) == check_training.TOLD, "no statistics at a stop: %s",
                    [record.get("message") for record in records if record["type"] == "error"])
        for number, (stats, numbers) in enumerate(zip(found, scalars), 1):
            told = done["told"][str(number)] if done else {}
            loss = next((one["value"] for one in numbers["scalars"] if one["name"] == "loss"), None)
            for what, said in {"loss": loss, **{what: stats["stats"][what] for what in ("min", "max", "mean")}}.items():
                right = told.get(what, 0.0)
                self.expect(said is not None and abs(said - right) <= FEW * max(1.0, abs(right)),
                            "the %s of step %d is %r, not %r", what if what == "loss" else "%s of %s" % (what, name), number,
                            said, right)

    def check_infinity(self):
        """A watchpoint stops at the operator whose result becomes infinite."""
        _, records = self.train("nan", 8, ("watch TO on all", "continue", "delete", "continue"))
        hits = [(record["step"], record.get("node", "")) for record in records
                if record["type"] == "stopped" and record.get("reason") == "hit"]
        self.expect(len(hits) == 1 and hits[0][0] == 5 and "mul" in hits[0][1],
                    "the infinite result of mul in step 5 was found at %s", hits)

    def check_statistics(self):
        """The statistics and copies of tensors on the device."""
        checks = statistics_check.Checks()
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            statistics_check.run(checks, self.kind, None)
        self.passed += checks.count - checks.failed
        self.failed += [line for line in said.getvalue().splitlines() if "FAILED" in line]
        if self.kind == "cuda":
            self.notes.append("gradb's kernel for statistics: " + statistics_check.record_kernel.state())


def table(check, what):
    """The lines to send."""
    version = subprocess.run([check.gradb, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    yield "gradb device-check, %s" % datetime.date.today()
    yield "%s; PyTorch %s; Python %s; %s" % (version, torch.__version__, platform.python_version(), platform.platform())
    yield "device: %s: %s" % (check.kind, what)
    yield "checks: %d passed, %d failed" % (check.passed, len(check.failed))
    yield from ("  " + line[:160] for line in (*check.failed[:20], *check.notes))
    yield ""
    yield "%-26s" % "a step asks the device for" + "".join("%10s" % name for name in check_training.NAMES)
    for way, counts in check.counts.items():
        yield "%-26s" % (way or "without gradb") + "".join(
            "%10s" % ("%g" % counts[name] if name in counts else "unknown") for name in check_training.NAMES)
    yield ""
    yield "%-26s" % "a step takes" + "".join("%20s" % model for model in check.times)
    for way in ("", *WAYS):
        cells = []
        for times in check.times.values():
            took, bare = min(times.get(way, [0.0])), min(times.get("", [0.0]))
            cells.append("%20s" % ("unknown" if not took or not bare else "%.3f ms" % (1e3 * took) if not way
                                   else "%.3f" % (took / bare)))
        yield "%-26s" % (way or "without gradb") + "".join(cells)


def main():
    """Runs all checks."""
    parser = argparse.ArgumentParser(description="Checks gradb on this machine's accelerator.")
    parser.add_argument("--gradb", default="gradb", help="the program")
    parser.add_argument("--device", help="type of the device; the default is the accelerator, or the CPU")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each timed training")
    args = parser.parse_args()
    kind, what = device_of(args.device)
    print("checking gradb on %s: %s" % (kind, what), flush=True)
    with tempfile.TemporaryDirectory(prefix="gradb-check-") as folder:
        check = Check(args.gradb, kind, folder)
        check.check_statistics()
        check.check_values()
        check.check_infinity()
        is_emulated = "emulated" in what
        for model in MODELS + (LARGE if kind != "cpu" and not is_emulated else ()):
            check.compare(model, check.steps_for(model, args.seconds), 1 if is_emulated else 2)
        print("\n" + "\n".join(table(check, what)))
        if is_emulated:
            print("An emulated device says nothing about time.")
    sys.exit(1 if check.failed else 0)


if __name__ == "__main__":
    main()
