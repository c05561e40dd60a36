# SPDX-License-Identifier: GPL-3.0-or-later
"""Cost of gradb for a MindSpore training: a step of a network of dense layers (mindspore_train.py), in both modes and
two widths. The bare script and the script under `gradb run` run alternately, BENCH_REPEAT pairs (3); a result is the
median of the ratios of their median steps.

    bench_mindspore.py GRADB

The interpreter is that of GRADB_MINDSPORE_PYTHON or build/mindspore-venv."""
import os
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VENV = HERE.parent / "build" / "mindspore-venv" / "bin" / "python"
DEADLINE = 300  # seconds
WIDTHS = (64, 512)
STEPS = {"pynative": 60, "graph": 200, "rehearsed": 20}
# Name, mode, commands, target; None: only reported.
FIGURES = (
    ("idle_pynative", "pynative", (), 1.02),
    ("idle_graph", "graph", (), 1.02),
    ("watched_pynative", "pynative", ("set stop-on-hit off", "watch TO on all"), 1.5),
    ("rehearsed_graph", "graph", ("set stop-on-hit off", "watch TO on all"), None),
)


def interpreter():
    return os.environ.get("GRADB_MINDSPORE_PYTHON") or (str(VENV) if VENV.exists() else "")


def seconds(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    found = re.search(r"^median ([0-9.]+)$", done.stdout, re.M)
    if found is None:
        sys.exit(f"bench_mindspore: {command[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    return float(found.group(1))


def ratio(gradb, mode, commands, width, steps):
    bare = [interpreter(), str(HERE / "mindspore_train.py"), mode, str(width), str(steps)]
    words = [word for command in (*commands, "continue", "info log 5") for word in ("-ex", command)]
    return seconds([gradb, "-nx", "--batch", *words, "run", "--", *bare]) / seconds(bare)


def main():
    if not interpreter():
        print("# mindspore: no build/mindspore-venv")
        return
    pairs = int(os.environ.get("BENCH_REPEAT", "3"))
    for name, mode, commands, target in FIGURES:
        for width in WIDTHS:
            steps = STEPS["rehearsed" if name.startswith("rehearsed") else mode]
            ratios = [ratio(sys.argv[1], mode, commands, width, steps) for _ in range(pairs)]
            figure = statistics.median(ratios)
            print(f"# mindspore.{name}_{width}: {pairs} pairs, from {min(ratios):.3f} to {max(ratios):.3f}")
            goal = "- reported" if target is None else f"{target:.2f} {'pass' if figure <= target else 'short'}"
            print(f"mindspore.{name}_{width} {figure:.3f} target {goal}", flush=True)


main()
