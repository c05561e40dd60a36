# SPDX-License-Identifier: GPL-3.0-or-later
"""What gradb costs a PyTorch training: a step of a residual network and of a GPT, at two sizes each.

The training (torch_train.py) runs twice, bare and under `gradb run` with a command file; the two take turns by blocks
of steps. Each block of the one under gradb, or of the bare one with something else on, is compared with a block of
the bare one, which comes right before it and right behind it in turn; in a block the first steps, which turn something
on, and the last, in which gradb takes over, do not count. Two processes of the same program differ by some percent for
as long as they live, by where their memory lies: so there are several pairs of them, one after the other, and more of
them where a step is so short that this is more than what is looked for. A figure is the median of the ratios of all
rounds of all pairs; the comment before it gives its standard error, by how far pairs differ.

    bench_torch.py GRADB SCRIPTS [PYTHON]

PYTHON: the interpreter; else GRADB_TORCH_PYTHON, build/torch-venv, or python3. BENCH_REPEAT: pairs of processes,
BENCH_ROUNDS: rounds of each (both as SIZES has it); BENCH_THREADS: of PyTorch (as many as there are processors, at
most 4); BENCH_MODELS: names of sizes, BENCH_FIGURES: of figures, with commas between.
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
WARM = 3        # steps of a block that do not count, in front; one does not behind
FIRST = 6       # steps before all blocks: gradb shows the graph in them

EXACT = "watch -exact TO on activations, gradients except type:masked_fill"
# Blocks under gradb: name of the figure, mode of torch_train.py, commands before, what makes the steps run.
GRADB_BLOCKS = (
    ("idle", "plain", (), "step %d"),
    ("watched", "plain", ("watch -step TO on weights, /[.]grad$/",), "step %d"),
    ("exact", "plain", ("set history-bytes 64M", EXACT), "step %d"),
    ("finite", "plain", ("set history-bytes 0", EXACT), "step %d"),
    ("stepping", "told", ("watch -step last_of_block > 0",), "next 100000000"),
)
BARE_BLOCKS = ("hooks", "anomaly")
HIT = ": last_of_block > 0, step "  # in gradb's words: how a block of `next` ends

# name, arguments of torch_train.py, pairs, rounds of each, steps that count in a block, targets of GRADB_BLOCKS (None:
# no target)
SIZES = (
    ("cnn_small", ("cnn", "8", "1", "16", "16"), 30, 4, 20, (1.01, None, None, None, None)),
    ("cnn_large", ("cnn", "32", "2", "32", "32"), 7, 1, 3, (1.01, 1.05, 1.25, None, 1.15)),
    ("gpt_small", ("gpt", "64", "2", "2", "24", "8"), 30, 4, 20, (1.01, None, None, None, None)),
    ("gpt_large", ("gpt", "320", "5", "8", "64", "4"), 7, 1, 3, (1.01, 1.05, 1.25, None, 1.15)),
)


def interpreter():
    """The Python whose PyTorch is measured."""
    given = sys.argv[3:4] or [os.environ.get("GRADB_TORCH_PYTHON")]
    return given[0] or (str(VENV) if VENV.exists() else "python3")


def setting(name, otherwise):
    """A number from the environment."""
    return int(os.environ.get(name) or otherwise)


def asked(name, word):
    """Whether the list of words in the environment has that one; one that is not there has all."""
    words = os.environ.get(name)
    return not words or word in words.split(",")


def fail(text):
    """Something that must work did not."""
    print("bench: " + text, file=sys.stderr)
    sys.exit(1)


class Training:
    """A process that trains when it is asked: it has connected."""

    def __init__(self, listener):
        self._lines = listener.accept()[0].makefile("rw")
        self.version, parameters = self._lines.readline().split()
        self.parameters = int(parameters)

    def run(self, mode, steps):
        """The seconds of each of the steps."""
        print(mode, steps, file=self._lines, flush=True)
        line = self._lines.readline()
        if not line:
            fail("the training ended")
        return [float(word) for word in line.split()]

    def end(self):
        """No block any more."""
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
    """A block that ended otherwise than it should, or a watchpoint that fired, makes the figures worthless."""
    stepped = sum(go.startswith("step") for _, _, _, go in chosen(GRADB_BLOCKS))
    nexts = len(chosen(GRADB_BLOCKS)) - stepped
    if log.count("Stopped at the end of step") != 1 + stepped * rounds or log.count(HIT) != nexts * rounds:
        fail("gradb did not do what it should:\n" + log)


def counted(seconds):
    """The median of a block's steps."""
    return statistics.median(seconds[WARM:-1])


def chosen(blocks):
    """Those of the blocks whose figures are asked for."""
    return [block for block in blocks if asked("BENCH_FIGURES", block if isinstance(block, str) else block[0])]


def compare(bare, training, mode, steps, bare_first):
    """(seconds of a step of the bare one's block, the ratio of the other's to that)."""
    before = counted(bare.run("plain", steps)) if bare_first else None
    found = counted(training.run(mode, steps))
    if before is None:
        before = counted(bare.run("plain", steps))
    return before, found / before


def run_pair(arguments, rounds, steps, gradb, folder, ratios, plain):
    """One pair of processes: adds a list of ratios to that of each block, and the seconds of the bare one's steps. What
    the bare one has said of itself."""
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
    """Prints the figures of one size."""
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
    """Of the median of all ratios, as for the median of normally distributed ones: pairs differ by more than the
    rounds of one do."""
    medians = [statistics.median(ratios) for ratios in pairs]
    return math.sqrt(math.pi / 2 / len(medians)) * statistics.stdev(medians)


def report(name, pairs, target):
    """One line a figure; those without a target are there to compare with."""
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
