# SPDX-License-Identifier: GPL-3.0-or-later
"""Trainings as people write them, driven by command files: what gradb prints, line by line.

NAME.gdb holds the commands and NAME.expected the output. One file serves both versions of PyTorch; a line
that only one prints has its version's first number in front ("1| ", "2| "); the versions up to 2.3 print some lines
as the one does, and some as the other. Text and whole numbers must be the same, other numbers to three digits. What no
two runs share (process numbers, times, paths) is left out.

    GRADB_WRITE_EXPECTED=1 python3 tests/torch/test_scripts.py    rewrites the expected files

The second half runs each training with gradb (watched, stopped, looked at) and without: not one bit of the
weights may differ.
"""
import difflib
import os
import re
import subprocess

import harness
import torches

HERE = harness.SOURCE / "tests" / "torch"
WRITE = bool(os.environ.get("GRADB_WRITE_EXPECTED"))
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
WHOLE = re.compile(r"[-+]?\d+")
CLOSE = 2e-3  # of two numbers with a decimal point: they agree in three digits

# In this order: what differs between two runs of the same version, or only in the interpreter's own files.
LEFT_OUT = [
    (re.compile(r"^(Starting program|Connected): .*"), r"\1"),
    (re.compile(r"^#\d+ +"), "# "),
    (re.compile(r"^\[Training process \d+, "), "[Training process #, "),
    (re.compile(r"^Waiting for rank .*"), ""),
    (re.compile(r"^\(\d+ frames? hidden.*"), "(frames hidden)"),
    (re.compile(r"\S*/tests/torch/scripts/"), ""),
    (re.compile(r"/\S*/torch/(\S+\.py):\d+"), r"torch/\1"),
    (re.compile(r" \|[█▁▂▃▄▅▆▇ ]*\|$"), ""),
    (re.compile(r"^(\d+ +(?:watch|trace|break|catch).*?\S+) +[\d.]+ [mun]?s +[\d.]+% +\S+ \S+$"), r"\1"),
    (re.compile(r"^([* ] +\d+ +\d+(?: of \d+)?) +\d+ +\S+ +cpu "), r"\1 cpu "),
    (re.compile(r"^total  .*"), "total"),
    (re.compile(r" clip_grad_norm_/.*"), " clip_grad_norm_"),  # its inside is PyTorch's own
    (re.compile(r"^Watching takes.*"), "Watching takes"),
]


def source_line(match):
    """A script's line instead of its number: lines above it may change."""
    lines = (torches.SCRIPTS / match.group(1)).read_text(encoding="utf-8").splitlines()
    return f"{match.group(1)}: {lines[int(match.group(2)) - 1].strip()}"


def plain(line):
    """A line of gradb's without what differs in each run, with single spaces."""
    for pattern, instead in LEFT_OUT:
        line = pattern.sub(instead, line)
    line = re.sub(r"(?<![/\w])(\w+\.py):(\d+)", source_line, line)
    indent = len(line) - len(line.lstrip())
    return " " * indent + " ".join(line.split())


def same(line, expected, rough=0.0):
    """Whether two plain lines agree. A column is as wide as its longest number. rough: the part of the line's largest
    number by which its numbers may differ."""
    line, expected = line.replace(" ]", "]"), expected.replace(" ]", "]")
    if NUMBER.sub("0", line) != NUMBER.sub("0", expected):
        return False
    largest = max((abs(float(b)) for b in NUMBER.findall(expected) if not WHOLE.fullmatch(b)), default=0.0)
    for a, b in zip(NUMBER.findall(line), NUMBER.findall(expected)):
        whole = WHOLE.fullmatch(a) and WHOLE.fullmatch(b)
        x, y = float(a), float(b)
        if a != b and (whole or abs(x - y) > max(CLOSE * max(abs(x), abs(y), 1e-6), rough * largest)):
            return False
    return True


def read_expected(path, release, lines):
    """What a release must print. lines: what it has printed, which decides where it may be either."""
    expected, passage = [], {"1": [], "2": []}

    def comes(part):
        there = lines[len(expected):][:len(part)]
        return len(there) == len(part) and all(map(same, there, part))

    def choose():
        old, new = passage["1"], passage["2"]
        either = (2, 0) <= release < (2, 4)
        is_old = (comes(old) if old else not comes(new)) if either else release < (2, 0)
        expected.extend(old if is_old else new)
        passage.update({"1": [], "2": []})
    for line in path.read_text(encoding="utf-8").splitlines():
        mark = re.match(r"([12])\| ?", line)
        if mark:
            passage[mark.group(1)].append(line[mark.end():])
        else:
            choose()
            expected.append(line)
    choose()
    return expected


def merged(old, new):
    """The lines of one file, made of those of version 1 and version 2."""
    text, ones, twos = [], [], []

    def differ():
        text.extend(["1| " + line for line in ones] + ["2| " + line for line in twos])
        ones.clear()
        twos.clear()
    keys = [[NUMBER.sub("0", line) for line in lines] for lines in (old, new)]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if tag != "equal":
            ones.extend(old[a:b])
            twos.extend(new[c:d])
            continue
        for x, y in zip(old[a:b], new[c:d]):
            if same(x, y):
                differ()
                text.append(x)
            else:
                ones.append(x)
                twos.append(y)
    differ()
    return "\n".join(text) + "\n"


# Run with two files of saved tensors.
SAME = """
import sys, torch
def flat(value, name=""):
    if isinstance(value, dict):
        return {key: tensor for part in value for key, tensor in flat(value[part], name + "/" + part).items()}
    return {name: (value.dtype, value.shape, value.detach().contiguous().numpy().tobytes())}
a, b = (flat(torch.load(path)) for path in sys.argv[1:])
print("%d tensors, differing: %s" % (len(a), sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))))
"""


@torches.both
class Session(torches.Case):
    """Command files on unmodified scripts."""
    written = {}

    def output(self, name, program):
        done = harness.run_gradb("-nx", "--batch", "--listen", "127.0.0.1:0", "-x", HERE / (name + ".gdb"), "run",
                                 "--", *program, env=torches.environment())
        self.assertIn(done.returncode, (0, 4), done.stdout + done.stderr)  # 4: something fired
        said = done.stdout + done.stderr
        if torches.on_device(self):
            said = said.replace(" cuda ", " cpu ")
        return [plain(line) for line in said.splitlines()]

    def check(self, name, *args, python=None, rough=0.0):
        release = torches.release_of(self.python)
        lines = self.output(name, [*(python or torches.warm(self.python)), torches.SCRIPTS / (name + ".py"), *args])
        path = HERE / (name + ".expected")
        if WRITE:
            self.written.setdefault(name, {})[release[0]] = lines
            if len(self.written[name]) == 2:
                path.write_text(merged(self.written[name][1], self.written[name][2]), encoding="utf-8")
            return
        expected = read_expected(path, release, lines)
        wrong = [f"line {i + 1}: {a!r}\nexpected {b!r}" for i, (a, b) in enumerate(zip(lines, expected))
                 if not same(a, b, rough)]
        self.assertFalse(wrong, "\n".join(wrong[:3] + ["the whole output:"] + lines))
        self.assertEqual(len(lines), len(expected), "\n".join(lines))

    def test_mlp(self):
        """In an interpreter of its own, as a user has it, the output is the same as in a fork of ours."""
        self.check("mlp", "--steps", "12", python=[self.python])

    def test_cnn(self):
        self.check("cnn", "--steps", "12")

    def test_gpt(self):
        self.check("gpt", "--steps", "5")

    def test_gan(self):
        self.check("gan", "--steps", "6")

    def test_accumulate(self):
        # with PyTorch 1.13, products of bfloat16 are rounded in another way on processors without AVX-512
        self.check("accumulate", "--steps", "4", rough=0.02 if torches.release_of(self.python) < (2, 0) else 0.0)

    def test_workers(self):
        self.check("workers")

    def test_ddp(self):
        """Two ranks over gloo."""
        self.check("ddp", python=torches.ranks(self.python, 2))


@torches.both
class Identical(torches.Folder):
    """gradb changes nothing of what is computed."""

    def check(self, name, node, *args, start=None):
        """start: the program that takes the script; an interpreter where nothing is said."""
        script = torches.SCRIPTS / (name + ".py")
        alone, seen = self.folder / "alone.pt", self.folder / "seen.pt"
        done = subprocess.run([*(start or torches.warm(self.python)), script, *args, "--save", alone],
                              capture_output=True, text=True, check=False, timeout=2 * harness.DEADLINE,
                              env=torches.environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.gradb([*(start or [self.python]), script, *args, "--save", seen],
                          "watch TO on all except type:masked_fill", "watch WCL on weights", "step 2",
                          f"tbreak {node}", "continue", f"print {node}", "next 3", "finish phase", "finish phase", "finish phase",
                          "step 5", "delete", "step 10", "watch update_ratio_band on weights",
                          "watch 'max > 1e30' on activations", "step 3", "delete", "continue")
        self.assertIn(done.returncode, (0, 4), done.stdout + done.stderr)  # 4: something fired
        self.assertRegex(done.stdout, rf"(?m)^(?:\[rank \d\] )?Temporary breakpoint 3, step \d+, \w+(?: \[\d+/\d+\])?, {node} ")
        self.assertIn("The training ended.", done.stdout)
        told = subprocess.run([*torches.warm(self.python), "-c", SAME, alone, seen], capture_output=True, text=True,
                              check=False, timeout=harness.DEADLINE, env=torches.environment())
        self.assertRegex(told.stdout, r"\A\d+ tensors, differing: \[\]\n\Z", told.stderr)
        self.assertGreater(int(told.stdout.split()[0]), 3)

    def test_mlp(self):
        self.check("mlp", "net/fc2/linear", "--steps", "50")

    def test_cnn(self):
        self.check("cnn", "model/stage2/0/conv1/conv2d", "--steps", "50", "--width", "4", "--size", "8")

    def test_gpt(self):
        self.check("gpt", "gpt/blocks/0/attn/softmax", "--steps", "50", "--width", "8", "--layers", "1",
                   "--context", "8")

    def test_gan(self):
        self.check("gan", "generator/2/linear", "--steps", "50")

    def test_accumulate(self):
        self.check("accumulate", "model/2/linear_1", "--steps", "50", "--micro", "2")

    def test_ddp(self):
        self.check("ddp", "model/2/linear", "--steps", "50", start=torches.ranks(self.python, 2))


if __name__ == "__main__":
    harness.main()
