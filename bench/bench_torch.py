# SPDX-License-Identifier: GPL-3.0-or-later
"""Cost of gradb for a PyTorch training: a step of a residual network and of a GPT, in two sizes each.

The training (torch_train.py) runs twice, bare and under `gradb run` with a command file; the two alternate by blocks of
steps. Each block under gradb, or of the bare process with another tool enabled, is compared with a bare block that
comes directly before or after it, in turn. The first steps of a block, which enable something, and the last one, in
which gradb takes over, do not count. Two processes of the same program differ by a few percent as long as they live,
depending on where their memory is. So there are several pairs of processes, and more of them where steps are so short
that this exceeds the effect to be measured. A result is the median of the ratios of all rounds of all pairs; the
comment before it has its standard error, from the differences between pairs.

    bench_torch.py GRADB SCRIPTS [PYTHON]

PYTHON: the interpreter; else GRADB_TORCH_PYTHON, build/torch-venv, or python3. BENCH_REPEAT: pairs of processes,
BENCH_ROUNDS: rounds of each pair (defaults in SIZES); BENCH_THREADS: of PyTorch (default: the processors, at most 4);
BENCH_MODELS: sizes, BENCH_FIGURES: results, both separated by commas.
"""
import math
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
VENV = HERE.parent / "build" / "torch-venv" / "bin" / "python"
DEADLINE = 300  # seconds
WARM = 3        # steps at the start of a block that do not count; at the end it is one
FIRST = 6       # steps before the first block, in which gradb shows the graph

EXACT = "watch -exact TO on activations, gradients except type:masked_fill"
# Blocks under gradb: name of the result, mode of torch_train.py, commands to set up, command that runs the steps.
GRADB_BLOCKS = (
    ("idle", "plain", (), "step %d"),
    ("watched", "plain", ("watch -step TO on weights, /[.]grad$/",), "step %d"),
    ("exact", "plain", ("set history-bytes 64M", EXACT), "step %d"),
    ("finite", "plain", ("set history-bytes 0", EXACT), "step %d"),
    ("stepping", "told", ("watch -step last_of_block > 0",), "next 100000000"),
)
BARE_BLOCKS = ("hooks", "anomaly")
HIT = ": last_of_block > 0, step "  # gradb's message at the end of a block of `next`

# name, arguments of torch_train.py, pairs, rounds of each, steps of a block that count, targets of GRADB_BLOCKS (None:
# no target)
SIZES = (
    ("cnn_small", ("cnn", "8", "1", "16", "16"), 30, 4, 20, (1.01, None, None, None, None)),
    ("cnn_large", ("cnn", "32", "2", "32", "32"), 7, 1, 3, (1.01, 1.05, 1.25, None, 1.15)),
    ("gpt_small", ("gpt", "64", "2", "2", "24", "8"), 30, 4, 20, (1.01, None, None, None, None)),
    ("gpt_large", ("gpt", "320", "5", "8", "64", "4"), 7, 1, 3, (1.01, 1.05, 1.25, None, 1.15)),
)


def interpreter():
    """The Python with PyTorch."""
    given = sys.argv[3:4] or [os.environ.get("GRADB_TORCH_PYTHON")]
    return given[0] or (str(VENV) if VENV.exists() else "python3")


def setting(name, otherwise):
    """A number from the environment."""
    return int(os.environ.get(name) or otherwise)


def asked(name, word):
    """Whether the list in the environment contains the word; an unset list contains all."""
    words = os.environ.get(name)
    return not words or word in words.split(",")


def fail(text):
    """Prints the error and exits."""
    print("bench: " + text, file=sys.stderr)
    sys.exit(1)


class Training:
    """A process that trains on request, already connected."""

    def __init__(self, listener):
        self._lines = listener.accept()[0].makefile("rw")
        self.version, parameters = self._lines.readline().split()
        self.parameters = int(parameters)

    def run(self, mode, steps):
        """Returns the seconds of each step."""
        print(mode, steps, file=self._lines, flush=True)
        line = self._lines.readline()
        if not line:
            fail("the training ended")
        return [float(word) for word in line.split()]

    def end(self):
        """There are no more blocks."""
        self._lines.close()


def commands(rounds, steps):
    """The lines of gradb's command file."""
    yield "step %d" % FIRST
    for _ in range(rounds):
        for _, _, before, go in chosen(GRADB_BLOCKS):
            yield from before
            yield go % steps if "%" in go else go
            if before:
                yield "delete"
    yield "continue"


def start(arguments, folder, gradb, rounds, steps):
    """(processes, bare training, training under gradb)."""
    path = os.path.join(folder, "socket")
    script = os.path.join(folder, "commands")
    pathlib.Path(script).write_text("".join(line + "\n" for line in commands(rounds, steps)), encoding="utf-8")
    env = dict(os.environ, HOME=folder, XDG_STATE_HOME=folder, TERM="dumb")
    for name in ("GRADB_ADDRESS", "GRADB_DISABLE", "PYTHONPATH"):
        env.pop(name, None)
    program = [interpreter(), str(HERE / "torch_train.py"), path, sys.argv[2], *arguments]
    log = open(os.path.join(folder, "log"), "w", encoding="utf-8")
    with socket.socket(socket.AF_UNIX) as listener, log:
        listener.bind(path)
        listener.listen()
        listener.settimeout(DEADLINE)
        bare = subprocess.Popen(program, env=env, stdout=log, stderr=log)
        processes = [bare]
        first = Training(listener)
        under = subprocess.Popen([gradb, "-nx", "--batch", "--listen", "127.0.0.1:0", "-ex", "set start-timeout 0",
                                  "-ex", "run -- " + " ".join('"%s"' % word for word in program), "-x", script],
                                 env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        processes.append(under)
        return processes, first, Training(listener)


def check(log, rounds):
    """Fails if a block ended unexpectedly or a watchpoint fired: the results would be meaningless."""
    stepped = sum(go.startswith("step") for _, _, _, go in chosen(GRADB_BLOCKS))
    nexts = len(chosen(GRADB_BLOCKS)) - stepped
    if log.count("Stopped at the end of step") != 1 + stepped * rounds or log.count(HIT) != nexts * rounds:
        fail("unexpected output of gradb:\n" + log)


def counted(seconds):
    """The median of a block's counted steps."""
    return statistics.median(seconds[WARM:-1])


def chosen(blocks):
    """The blocks whose results were requested."""
    return [block for block in blocks if asked("BENCH_FIGURES", block if isinstance(block, str) else block[0])]


def compare(bare, training, mode, steps, bare_first):
    """Returns (seconds per step of the bare block, ratio of the other block to it)."""
    before = counted(bare.run("plain", steps)) if bare_first else None
    found = counted(training.run(mode, steps))
    if before is None:
        before = counted(bare.run("plain", steps))
    return before, found / before


def run_pair(arguments, rounds, steps, gradb, folder, ratios, plain):
    """Runs one pair of processes: appends to each block its list of ratios, and to `plain` the seconds of the bare
    steps. Returns the bare process's description of itself."""
    processes, bare, under = start(arguments, folder, gradb, rounds, steps)
    try:
        bare.run("plain", FIRST)
        under.run("plain", FIRST)
        blocks = [(block, under, mode) for block, mode, _, _ in chosen(GRADB_BLOCKS)]
        blocks += [(block, bare, block) for block in chosen(BARE_BLOCKS)]
        for block, _, _ in blocks:
            ratios.setdefault(block, []).append([])
        for number in range(rounds):
            for block, training, mode in blocks:
                pairs = ratios[block]
                seconds, ratio = compare(bare, training, mode, steps, (len(pairs) + number) % 2 == 0)
                pairs[-1].append(ratio)
                plain.append(seconds)
        under.end()
        processes[1].wait(DEADLINE)
        check(pathlib.Path(folder, "log").read_text(encoding="utf-8"), rounds)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return bare.version, bare.parameters


def measure(name, arguments, pairs, rounds, counts, targets, gradb):
    """Prints the results of one size."""
    threads = setting("BENCH_THREADS", min(os.cpu_count() or 1, 4))
    arguments = (arguments[0], str(threads)) + arguments[1:]
    rounds = setting("BENCH_ROUNDS", rounds)
    ratios, plain = {}, []
    for _ in range(setting("BENCH_REPEAT", pairs)):
        with tempfile.TemporaryDirectory(prefix="gradb-bench-") as folder:
            version, parameters = run_pair(arguments, rounds, counts + WARM + 1, gradb, folder, ratios, plain)
    print("# torch %s, %s: %.1f M parameters, %d threads, a bare step takes %.2f ms" % (
        version, name, parameters / 1e6, threads, 1e3 * statistics.median(plain)))
    aims = dict(zip((block[0] for block in GRADB_BLOCKS), targets))
    for block, found in ratios.items():
        report("torch.%s_%s" % (block, name), found, aims.get(block))


def standard_error(pairs):
    """Standard error of the median of all ratios, assuming normal distribution; from the pairs, which differ more than
    the rounds of one pair do."""
    medians = [statistics.median(ratios) for ratios in pairs]
    return math.sqrt(math.pi / 2 / len(medians)) * statistics.stdev(medians)


def report(name, pairs, target):
    """Prints one result; those without a target are for comparison."""
    ratio = statistics.median(ratio for ratios in pairs for ratio in ratios)
    if len(pairs) > 1:
        print("# %s: %d pairs, +- %.3f" % (name, len(pairs), standard_error(pairs)))
    if target is None:
        print("%s %.3f target - reported" % (name, ratio), flush=True)
    else:
        print("%s %.3f target %.2f %s" % (name, ratio, target, "pass" if ratio <= target else "short"), flush=True)


def main():
    if subprocess.run([interpreter(), "-c", "import torch"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("# torch: %s has no PyTorch" % interpreter())
        return
    for name, *rest in SIZES:
        if asked("BENCH_MODELS", name):
            measure(name, *rest, sys.argv[1])


if __name__ == "__main__":
    main()
