# SPDX-License-Identifier: GPL-3.0-or-later
"""Cost of gradb for a PyTorch training: a step of a residual network and of a GPT (torch_train.py), in two sizes each,
measured as turns.py says.

    bench_torch.py GRADB SCRIPTS [PYTHON]

PYTHON: the interpreter; else GRADB_TORCH_PYTHON, build/torch-venv, or python3. BENCH_THREADS: of PyTorch (default: the
processors, at most 4); BENCH_MODELS: sizes, separated by commas.
"""
import os
import pathlib
import statistics
import subprocess
import sys

import turns

HERE = pathlib.Path(__file__).resolve().parent
VENV = HERE.parent / "build" / "torch-venv" / "bin" / "python"

EXACT = "watch -exact TO on activations, gradients except type:masked_fill"
GRADB_BLOCKS = (
    turns.Block("idle", "plain", (), "step %d"),
    turns.Block("events_on", "plain", ("on step-end if loss > 1e9 print loss",), "step %d"),
    turns.Block("metrics_on", "plain", ("metric accuracy", "metric precision average=macro"), "step %d", "metric delete"),
    turns.Block("timing_on", "plain", ("set timing on",), "step %d", "set timing off", 10),
    turns.Block("line_breakpoint", "plain", ("break torch_train.py:Hooks._look",), "step %d", "delete"),
    # Of its first 64 steps, gradb observes 8 and three more, or 4 and four more where they take 0.1 s; the first three do
    # not count here: 7 or 4 of 60, about as many as of a whole run of 100 steps (11 or 8).
    turns.Block("diagnose", "plain", ("agent observe on",), "step %d", "agent observe off", steps=60),
    turns.Block("watched", "plain", ("watch -step TO on weights, /[.]grad$/",), "step %d"),
    turns.Block("exact", "plain", ("set history-bytes 64M", EXACT), "step %d"),
    turns.Block("watched_all", "plain", ("set history-bytes 64M", EXACT.replace("-exact", "-step")), "step %d"),
    turns.Block("recommended", "plain", ("set history-bytes 64M", "recommend yes"), "step %d"),
    turns.Block("finite", "plain", ("set history-bytes 0", EXACT), "step %d"),
    turns.Block("stepping", "told", ("watch -step last_of_block > 0",), "next 100000000"),
)
BARE_BLOCKS = ("hooks", "anomaly")

# name, arguments of torch_train.py, pairs, rounds of each, steps of a block that count, targets
SMALL = {"idle": 1.01, "events_on": 1.01, "metrics_on": 1.02, "timing_on": 1.05}
LARGE = {**SMALL, "diagnose": 1.05, "line_breakpoint": 1.02, "watched": 1.05, "exact": 1.25, "stepping": 1.15}
SIZES = (
    ("cnn_small", ("cnn", "8", "1", "16", "16"), 30, 4, 20, SMALL),
    ("cnn_large", ("cnn", "32", "2", "32", "32"), 7, 1, 3, LARGE),
    ("gpt_small", ("gpt", "64", "2", "2", "24", "8"), 30, 4, 20, SMALL),
    ("gpt_large", ("gpt", "320", "5", "8", "64", "4"), 7, 1, 3, LARGE),
)


def interpreter():
    """The Python with PyTorch."""
    given = sys.argv[3:4] or [os.environ.get("GRADB_TORCH_PYTHON")]
    return given[0] or (str(VENV) if VENV.exists() else "python3")


def measure(name, arguments, pairs, rounds, counts, targets):
    """Prints the results of one size."""
    threads = turns.setting("BENCH_THREADS", min(os.cpu_count() or 1, 4))
    program = [interpreter(), str(HERE / "torch_train.py"), "SOCKET", str(pathlib.Path(sys.argv[2]).resolve()),
               arguments[0], str(threads), *arguments[1:]]
    bench = turns.Bench(sys.argv[1], program, GRADB_BLOCKS, counts, BARE_BLOCKS)
    bench.run(pairs, rounds)
    print("# torch %s, %s: %.1f M parameters, %d threads, a bare step takes %.2f ms" % (
        bench.about.version, name, bench.about.parameters / 1e6, threads, 1e3 * statistics.median(bench.plain)))
    bench.report("torch.%%s_%s" % name, targets)


def main():
    if subprocess.run([interpreter(), "-c", "import torch"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("# torch: %s has no PyTorch" % interpreter())
        return
    for name, *rest in SIZES:
        if turns.asked("BENCH_MODELS", name):
            measure(name, *rest)


if __name__ == "__main__":
    main()
