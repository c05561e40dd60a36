# SPDX-License-Identifier: GPL-3.0-or-later
"""Cost of gradb for a MindSpore training: a step of LeNet and of networks of dense layers of two widths
(mindspore_train.py), in both modes, measured as turns.py says.

    bench_mindspore.py GRADB

The interpreter is that of GRADB_MINDSPORE_PYTHON or build/mindspore-venv. BENCH_MODELS: sizes, separated by commas.
"""
import os
import pathlib
import statistics
import sys

import turns

HERE = pathlib.Path(__file__).resolve().parent
VENV = HERE.parent / "build" / "mindspore-venv" / "bin" / "python"

IDLE = turns.Block("idle", "plain", (), "step %d")
EVENTS = turns.Block("events_on", "plain", ("on step-end if loss > 1e9 print loss",), "step %d")
TIMING = turns.Block("timing_on", "plain", ("set timing on",), "step %d", "set timing off", 10)
METRICS = turns.Block("metrics_on", "plain", ("metric accuracy", "metric precision average=macro"), "step %d",
                      "metric delete")
WATCH = ("set stop-on-hit off", "watch TO on all")
# In graph mode a metric of a loss that is compiled looks into each step, as "rehearsed" does.
BLOCKS = {"pynative": (IDLE, EVENTS, METRICS, TIMING, turns.Block("watched", "plain", WATCH, "step %d")),
          "graph": (IDLE, EVENTS, TIMING),
          "rehearsed": (turns.Block("rehearsed", "plain", WATCH, "step %d"),)}
TARGETS = {"idle": 1.02, "events_on": 1.02, "metrics_on": 1.02, "timing_on": 1.05, "watched": 1.5}

# mode, network, what is measured, pairs, rounds of each, steps of a block that count
SIZES = (
    ("pynative", "lenet", "pynative", 9, 3, 10),
    ("pynative", "64", "pynative", 15, 4, 20),
    ("pynative", "512", "pynative", 9, 3, 10),
    ("graph", "lenet", "graph", 9, 6, 30),
    ("graph", "64", "graph", 15, 8, 60),
    ("graph", "512", "graph", 9, 6, 30),
    ("graph", "lenet", "rehearsed", 2, 1, 5),
    ("graph", "64", "rehearsed", 2, 1, 5),
    ("graph", "512", "rehearsed", 2, 1, 5),
)


def interpreter():
    """The Python with MindSpore, or ""."""
    return os.environ.get("GRADB_MINDSPORE_PYTHON") or (str(VENV) if VENV.exists() else "")


def main():
    if not interpreter():
        print("# mindspore: no build/mindspore-venv")
        return
    for mode, network, what, pairs, rounds, counts in SIZES:
        name = "%s_%s" % (mode, network)
        if not turns.asked("BENCH_MODELS", name):
            continue
        program = [interpreter(), str(HERE / "mindspore_train.py"), "SOCKET", mode, network]
        bench = turns.Bench(sys.argv[1], program, BLOCKS[what], counts)
        bench.run(pairs, rounds)
        if bench.about is None:
            continue  # BENCH_FIGURES asks for others
        print("# mindspore %s, %s: %.2f M parameters, a bare step takes %.2f ms" % (
            bench.about.version, name, bench.about.parameters / 1e6, 1e3 * statistics.median(bench.plain)))
        bench.report("mindspore.%%s_%s" % name, TARGETS)


if __name__ == "__main__":
    main()
