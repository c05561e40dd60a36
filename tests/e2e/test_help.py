# SPDX-License-Identifier: GPL-3.0-or-later
"""The help texts are true: every example in them is typed in, against charlm as the demo runs it. `help` shows the names
of its graph there; those of the manual are typed in against a PyTorch script (tests/torch/test_examples.py)."""
import json
import re
import unittest

import harness

DATA = harness.SOURCE / "LICENSES" / "MIT.txt"
TRAINER = ["run", "--", str(harness.CHARLM), "--data", str(DATA), "--seed", "1", "--threads", "1", "--steps", "100000"]

# Examples that leave this host, this process or this run; and those that cannot succeed here, with why.
ELSEWHERE = ("run -- python train.py --epochs 3", "run -- torchrun --nproc-per-node 2 train.py", "diagnose -- python train.py",
             "diagnose --fail-on fault --html report.html -- python train.py", "listen", "listen 0.0.0.0:50051", "!nvidia-smi",
             "| info settings | less", "lockstep @1 @2",
             "lockstep @1 @2 on weights|gradients --by step --steps 100 rtol=1e-3",
             "lockstep @2 @1 --shift 1")  # there is one training
FAIL_HERE = {
    "disconnect": "state",  # no terminal
    "rank 2": "not_found",  # there is one process
    "rank check": "state",
    "rank check *.weight": "state",
    "open ~/.local/state/gradb/history-train.py-4711-20260102-030405.gdhist": "not_found",
    "convert dump/rank_0/net/1/0 npy": "not_found",
    "convert dump/20260102030405/0 npy --format NCHW": "not_found",
    **dict.fromkeys(("compare torch.pth mindspore.ckpt", "compare gpu_dump/ npu_dump/ --as msprobe --csv result.csv",
                     "compare @1 reference.safetensors --on fc1 --profile strict",
                     "compare loss gpu.log npu.log rtol=1e-2", "first-divergence torch_dump/ mindspore_dump/",
                     "first-divergence @1 @2 --profile strict", "first-nonfinite dump/ --step 12",
                     "check params start.ckpt", "check params torch.pth mindspore.ckpt"), "not_found"),
    "open dump/rank_0": "not_found",
    "check-config data_dump.json": "not_found",
    **dict.fromkeys(("info steps", "reverse-step 2", "goto 100"), "unsupported"),  # no dump
    "set lr[1] = 1e-4": "not_found",  # it has one group of parameters
    "checkpoint best-{loss:.4f} keep=3": "unsupported",  # charlm chooses the place itself
    "agent memory": "unsupported",
    **dict.fromkeys(("info optimizer", "aten on", "scale", "training", "training audit"), "unsupported"),
    **dict.fromkeys(("info locals", "info args", "call x.shape", "call model.eval()",
                     "call opt.param_groups[0]['weight_decay'] = 0", "skip-update", "zero-grad"),
                    "unsupported"),  # it is not in Python
    **dict.fromkeys(("set decoder/bias[0] = 0.5", "set requires_grad decoder/bias off"), "not_found"),
    **dict.fromkeys(("catch overflow", "catch overflow 3", "tcatch overflow", "overflow", "overflow record 3",
                     "catch exception", "catch exception off",
                     "overflow record 10 /data/overflows", "overflow stop", "overflow stop 2", "overflow off",
                     "info overflows", "info overflows -a", "rerun", "rerun 2", "scan", "scan steps 100..200 ranks 0",
                     "scan --shard 3/8 --out parts/3.gdscan", "merge parts/",
                     "merge part1.gdscan part2.gdscan"), "unsupported"),
    "tensor -to 3,17": "state",  # moves in the panes
    "tensor -find abs>0.1": "state",
    "refresh graph": "no_data",  # none was interrupted
    "info timing shapes": "no_data",  # it reports no times
    "info timing advice": "no_data",
}
BODIES = ("define", "commands", "document")


def commands():
    done = harness.run_gradb("--generate", "json-commands")
    return json.loads(done.stdout)


def examples(command, parent=""):
    """Indented lines that begin with one of the command's names, each with its body if it has one. A
    subcommand without them is its own example."""
    names = [parent + name for name in (command["name"], *command["aliases"].split())]
    found = []
    body = False
    for line in command["help"].splitlines():
        text = line[2:] if line.startswith("  ") else ""
        if body:
            found[-1].append(text.strip())
            body = text != "end"
        elif any(re.match(re.escape(name) + (r"(?![\w-])" if name[-1].isalnum() else ""), text) for name in names):
            found.append([text])
            body = command["name"] in BODIES
    if parent and not found:
        found.append([names[0]])
    for sub in command.get("sub") or []:
        found += examples(sub, command["name"] + " ")
    return found


def outcome(gradb, lines):
    """Types an example in; the error's code and text, or two empty ones."""
    for line in lines:
        gradb.send(line)
    gradb.send("apropos end-of-example")
    error = ("", "")
    while True:
        record = json.loads(gradb.expect(r"^\{").string)
        if record["type"] == "error":
            error = (record["code"], record["message"])
        if record.get("command") == "apropos" and not record["commands"]:
            return error


def shown(gradb, command, parent=""):
    """The command with the help texts that `help` shows in this session."""
    gradb.send(f"help {parent}{command['name']}")
    text = json.loads(gradb.expect(r'^\{"v":1,"type":"help",').string)["text"]
    return dict(command, help=text, sub=[shown(gradb, sub, command["name"] + " ") for sub in command.get("sub") or []])


class Typed:
    """Types every example in while a training runs, and compares how each ends. A part of a TestCase."""

    def setUp(self):
        super().setUp()
        self.folder = harness.folder_of(self)

    def type_in(self, program, softmax, bias, later, fails, **more):
        tried = set()
        (self.folder / "check.gdb").write_text(f"# a comment\nprint {bias}[0]\n", encoding="utf-8")
        with harness.Gradb("-nx", "--json", command=program, cwd=self.folder, **more) as gradb:
            gradb.expect('"type":"run"')
            for lines in (["set keep-previous all"], ["step 2"], [f"break {softmax}"], ["continue"], ["delete 1"],
                          ["trace -step TL abs_mean_gt=1e-9 on weights"],
                          ["trace histogram on weights"], ["step 2"], *[[f"print {bias}[:2]"]] * 3):
                self.assertEqual(outcome(gradb, lines), ("", ""), lines)
            gradb.send(f"break {later}")
            for command in commands():
                for lines in examples(shown(gradb, command)):
                    if lines[0] in ELSEWHERE:
                        continue
                    tried.add(command["name"])
                    code, text = outcome(gradb, lines)
                    with self.subTest(example=lines[0]):
                        self.assertEqual(code, fails.get(lines[0], ""), text)
        self.assertGreater(len(tried), 35)


class Examples(Typed, unittest.TestCase):
    def test_every_example_does_what_it_says(self):
        self.type_in(TRAINER, "Softmax-op10", "head.bias", "Softmax-op47", FAIL_HERE)

    def test_every_exception_is_still_an_example(self):
        known = {lines[0] for command in commands() for lines in examples(command)}
        self.assertEqual(known & set(FAIL_HERE), set(FAIL_HERE))
        self.assertEqual(known & set(ELSEWHERE), set(ELSEWHERE))

    def test_what_should_show_an_example_does(self):
        """A command that takes a name, a file or a condition is explained by an example, too."""
        for command in commands():
            argument = re.search(r"[ \[](NODE|SELECTOR|TEXT|REGEX|CONDITION|FILE|LINE|PROGRAM)\b", command["usage"])
            if argument and not examples(command):
                with self.subTest(command=command["name"]):
                    self.fail("no example")


class Topics(unittest.TestCase):
    """What help texts, messages, the manual page and the documents send their readers to is there."""

    # "help keys", `help set print width`; in C the quotes are escaped, in the manual page they are set in bold.
    NAMED = re.compile(r"""(?:\\?"|`|\\fB|')help ([a-z][a-z -]*[a-z])(?=\\?"|`|\\fR|\\fP|')""")

    def test_every_topic_that_is_named_exists(self):
        texts = [harness.run_gradb("--generate", "json-commands").stdout, harness.run_gradb("--generate", "man").stdout]
        for folder, pattern in (("src", "*.c"), ("docs", "*.md"), ("python", "*.py"), (".", "README.md")):
            texts += [path.read_text(encoding="utf-8") for path in (harness.SOURCE / folder).rglob(pattern)
                      if "build" not in path.relative_to(harness.SOURCE).parts]
        topics = sorted({" ".join(found.split()) for text in texts for found in self.NAMED.findall(text)})
        self.assertGreater(len(topics), 4, topics)
        for topic in topics:
            done = harness.run_gradb("-q", "-nx", "--batch", "-ex", f"help {topic}")
            self.assertEqual((done.returncode, done.stderr), (0, ""), topic)
            self.assertGreater(len(done.stdout.splitlines()), 1, topic)

    def test_no_line_is_wider_than_a_terminal(self):
        def names(command, parent=""):
            yield parent + command["name"]
            for sub in command.get("sub") or []:
                yield from names(sub, parent + command["name"] + " ")
        every = [name for command in commands() for name in names(command)]
        self.assertGreater(len(every), 150)
        done = harness.run_gradb("-q", "-nx", "--batch", *harness.typed(
            *(line for name in every for line in (f"echo @{name}\\n", f"help {name}"))))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        parts = dict(part.split("\n", 1) for part in done.stdout.split("\n@"))
        self.assertGreaterEqual(len(parts), len(every) - 1)
        self.assertEqual({name: line for name, text in parts.items() for line in text.splitlines() if len(line) > 80}, {})

    def test_a_command_line_of_another_debugger(self):
        for words, told in ((["train.py", "--lr", "1"], "unknown mode: train.py; to debug a program: gradb run -- "
                             "python3 train.py, to look into a file: gradb open PATH"),
                            (["torchrun", "train.py"], "unknown mode: torchrun; to debug a program: gradb run -- torchrun, "
                             "to look into a file: gradb open torchrun"),
                            (["--args", "python", "train.py"], 'unknown option, or missing argument: --args; see "gradb '
                             '--help"')):
            done = harness.run_gradb(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", "error: %s\n" % told))
        for words in ("mcp", "run", "dap", "demo"):
            self.assertRegex(harness.run_gradb(words, "--help").stdout, "^Usage: gradb ")

    def test_settings_have_a_help_of_their_own(self):
        text = harness.run_gradb("-q", "-nx", "--batch", "-ex", "help set rank-locking").stdout
        self.assertRegex(text, r"^set rank-locking VALUE\n(?s:.*)off \| step \| on")
        self.assertEqual(harness.run_gradb("-q", "-nx", "--batch", "-ex", "help set no-such-thing").returncode, 1)
        self.assertIn("set lr changes the learning rate",
                      harness.run_gradb("-q", "-nx", "--batch", "-ex", "help set lr").stdout)
        self.assertIn("help selectors", harness.run_gradb("-q", "-nx", "--batch", "-ex", "apropos regular").stdout)


if __name__ == "__main__":
    harness.main()
