# SPDX-License-Identifier: GPL-3.0-or-later
"""What bench_torch.py and bench_mindspore.py share: how a training under gradb is compared with the bare one.

The training runs twice, bare and under `gradb run` with a command file; the two alternate by blocks of steps. Each
block under gradb, or of the bare process with another tool enabled, is compared with a bare block that comes directly
before or after it, in turn. The first steps of a block, which enable something, and the last one, in which gradb takes
over, do not count. Two processes of the same program differ by a few percent as long as they live, depending on where
their memory is. So there are several pairs of processes, and more of them where steps are so short that this exceeds
the effect to be measured. A result is the median of the ratios of all rounds of all pairs; the comment before it has
its standard error, from the differences between pairs.

BENCH_REPEAT: pairs of processes, BENCH_ROUNDS: rounds of each pair; BENCH_FIGURES: results, separated by commas.
"""
import collections
import math
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

DEADLINE = 300  # seconds
WARM = 3        # steps at the start of a block that do not count; at the end it is one
FIRST = 6       # steps before the first block, in which gradb shows the graph
HIT = ": last_of_block > 0, step "  # gradb's message at the end of a block of `next`

# A block under gradb: name of the result, mode of the training, commands to set up, command that runs the steps, command
# that undoes the set-up, and how many times as long the block is, or how many of its steps count; then their mean counts,
# because only a few of them cost something.
Block = collections.namedtuple("Block", "name mode before go after times steps", defaults=("delete", 1, 0))


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
    """A process that trains on request, already connected; see turns_served.py."""

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


class Bench:
    """One training and what is measured with it.

    gradb: the debugger; program: the words that start the training, SOCKET where the path of its socket is; blocks:
    Block of each result under gradb; bare_blocks: modes of the bare training that are compared, too; counts: steps of a
    block that count. ratios: name of a result -> a list per pair; plain: seconds of the bare steps; about: the bare
    training, for its version and its number of parameters."""

    def __init__(self, gradb, program, blocks, counts, bare_blocks=()):
        self.gradb = os.path.abspath(gradb)  # the processes have another folder
        self.program = program
        self.blocks = [block for block in blocks if asked("BENCH_FIGURES", block.name)]
        self.bare_blocks = [name for name in bare_blocks if asked("BENCH_FIGURES", name)]
        self.counts = counts
        self.ratios = {name: [] for name in [block.name for block in self.blocks] + self.bare_blocks}
        self.plain = []
        self.about = None

    def _steps(self, block):
        return (block.steps or self.counts * block.times) + WARM + 1

    def run(self, pairs, rounds):
        """Runs all pairs."""
        for _ in range(setting("BENCH_REPEAT", pairs) if self.ratios else 0):
            with tempfile.TemporaryDirectory(prefix="gradb-bench-") as folder:
                self._run_pair(folder, setting("BENCH_ROUNDS", rounds))

    def _commands(self, rounds):
        """The lines of gradb's command file."""
        yield "step %d" % FIRST
        for _ in range(rounds):
            for block in self.blocks:
                yield from block.before
                yield block.go % self._steps(block) if "%" in block.go else block.go
                if block.before:
                    yield block.after
        yield "continue"

    def _start(self, folder, rounds):
        """(processes, bare training, training under gradb)."""
        path = os.path.join(folder, "socket")
        script = os.path.join(folder, "commands")
        pathlib.Path(script).write_text("".join(line + "\n" for line in self._commands(rounds)), encoding="utf-8")
        env = dict(os.environ, HOME=folder, XDG_STATE_HOME=folder, TERM="dumb")
        for name in ("GRADB_ADDRESS", "GRADB_DISABLE", "PYTHONPATH"):
            env.pop(name, None)
        program = [path if word == "SOCKET" else word for word in self.program]
        log = open(os.path.join(folder, "log"), "w", encoding="utf-8")
        with socket.socket(socket.AF_UNIX) as listener, log:
            listener.bind(path)
            listener.listen()
            listener.settimeout(DEADLINE)
            bare = subprocess.Popen(program, env=env, cwd=folder, stdout=log, stderr=log)
            first = Training(listener)
            under = subprocess.Popen([self.gradb, "-nx", "--batch", "--listen", "127.0.0.1:0", "-ex",
                                      "set start-timeout 0", "-ex", "run -- " + " ".join('"%s"' % word for word in program),
                                      "-x", script],
                                     env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            return [bare, under], first, Training(listener)

    def _check(self, log, rounds):
        """Fails if a block ended unexpectedly or a watchpoint fired: the results would be meaningless."""
        stepped = sum(block.go.startswith("step") for block in self.blocks)
        nexts = len(self.blocks) - stepped
        if log.count("Stopped at the end of step") != 1 + stepped * rounds or log.count(HIT) != nexts * rounds:
            fail("unexpected output of gradb:\n" + log)

    def _run_pair(self, folder, rounds):
        processes, bare, under = self._start(folder, rounds)
        try:
            bare.run("plain", FIRST)
            under.run("plain", FIRST)
            runs = [(block, under) for block in self.blocks]
            runs += [(Block(name, name, (), ""), bare) for name in self.bare_blocks]
            for block, _ in runs:
                self.ratios[block.name].append([])
            for number in range(rounds):
                for block, training in runs:
                    pairs = self.ratios[block.name]
                    pairs[-1].append(self._compare(bare, training, block, (len(pairs) + number) % 2 == 0))
            under.end()
            processes[1].wait(DEADLINE)
            self._check(pathlib.Path(folder, "log").read_text(encoding="utf-8"), rounds)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        self.about = bare

    def _compare(self, bare, training, block, bare_first):
        """The ratio of a block to a bare one, which comes first or second."""
        steps, mean = self._steps(block), block.times > 1 or block.steps > 0
        before = counted(bare.run("plain", steps), mean) if bare_first else None
        found = counted(training.run(block.mode, steps), mean)
        if before is None:
            before = counted(bare.run("plain", steps), mean)
        self.plain.append(before)
        return found / before

    def report(self, name, targets):
        """Prints the results, as NAME with each block's name in it; one without a target is for comparison."""
        for block, pairs in self.ratios.items():
            ratio = statistics.median(ratio for ratios in pairs for ratio in ratios)
            full, target = name % block, targets.get(block)
            if len(pairs) > 1:
                print("# %s: %d pairs, +- %.3f" % (full, len(pairs), standard_error(pairs)))
            if target is None:
                print("%s %.3f target - reported" % (full, ratio), flush=True)
            else:
                print("%s %.3f target %.2f %s" % (full, ratio, target, "pass" if ratio <= target else "short"),
                      flush=True)


def counted(seconds, mean=False):
    """The median, or the mean, of a block's counted steps."""
    return (statistics.mean if mean else statistics.median)(seconds[WARM:-1])


def standard_error(pairs):
    """Standard error of the median of all ratios, assuming normal distribution; from the pairs, which differ more than
    the rounds of one pair do."""
    medians = [statistics.median(ratios) for ratios in pairs]
    return math.sqrt(math.pi / 2 / len(medians)) * statistics.stdev(medians)
