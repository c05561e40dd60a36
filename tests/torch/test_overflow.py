# SPDX-License-Identifier: GPL-3.0-or-later
"""Overflows (scripts/overflow.py): each origin is found, distinguished from what is intended, kept, written and
repeated."""
import json
import os
import re
import shutil
import subprocess

import numpy

import harness
import torches

SCRIPT = torches.SCRIPTS / "overflow.py"


def line_of(text):
    """FILE:LINE of the script's only line with the text."""
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if text in line]
    assert len(numbers) == 1, text
    return f"overflow.py:{numbers[0]}"


FINE = """
import torch
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.ones(3, 4)).square().mean().backward()
    optimizer.step()
"""
LOG_OF_MASK = """
import torch
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    scores = net(torch.ones(4, 4)) + torch.log(torch.tril(torch.ones(4, 4)))
    (scores.softmax(-1) @ torch.ones(4, 1)).square().mean().backward()
    optimizer.step()
"""
CUSTOM = """
import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, by):
        ctx.by = by
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        return gradient / torch.tensor([ctx.by], device=gradient.device), None
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 4):
    optimizer.zero_grad()
    Scale.apply(net(torch.ones(5, 3)), 2.0 - step).sum().backward()
    optimizer.step()
"""


@torches.both
class Overflow(torches.Folder):
    def expect(self, output, *parts):
        """Each part is in the output, after the previous one."""
        at = 0
        for part in parts:
            found = output.find(part, at)
            self.assertGreaterEqual(found, 0, f"{part!r} is not after {output[:at][-200:]!r} in\n{output}")
            at = found + len(part)

    def digest(self, name):
        return (self.folder / name).read_text(encoding="utf-8")

    def test_each_is_found_and_made_again(self):
        subprocess.run(torches.warm(self.python) + [str(SCRIPT), "bare"], cwd=self.folder, check=True,
                       env=torches.environment(), timeout=4 * harness.DEADLINE)
        commands = ["catch overflow"] + ["continue", "rerun"] * 7
        done = self.gradb([self.python, str(SCRIPT), "seen"], *commands, "info overflows", "rerun logarithm/log",
                          "save overflow 2 kept", "overflow off", "info overflows", "info overflows -a",
                          "save overflow 2 kept")
        out = " ".join(done.stdout.split()) + " | " + " ".join(done.stderr.split())
        self.assertIn("every overflow.", out)
        # the mask of step 1 does not stop the run
        self.expect(
            out, "Overflow, step 2, forward, logarithm/log (log)",
            "overflow 2: logarithm/log made 4 -inf of 8 elements, " + line_of("return torch.log("),
            "float64 4 -inf of 8", "Inherent: not finite in float64 either: the cause is in the values (the logarithm of 0",
            "output 0 at [0, 0]: -inf, in float64 -inf; input.0 is 0 ",

            "step 3, forward, exponential/exp (exp)", line_of("return torch.exp("), "float32 8 inf of 8",
            "float64 2.68812e+43 ... 2.68812e+43", "Caused by the data type: float32-specific: the largest magnitude is "
            "2.688e+43, above the 3.40282e+38 of float32", "inf, in float64 2.68812e+43; input.0 is 100 ",

            "step 4, forward, in_place/mul_ (mul_)", "made 4 inf of 8 elements, " + line_of("big.mul_("),
            "bfloat16-specific: the largest magnitude is 1.202e+39", "in float64 1.20162e+39; input.0 is 3.00406e+38",

            "step 5, forward, head/linear (linear)", "made 16 inf of 16 elements", "as it was, on the CPU 16 inf of 16",
            "bfloat16-specific: the largest magnitude is 8.67e+38, above" if torches.release_of(self.python) < (2, 4) else
            "float16-specific: the largest magnitude is 2.7e+05, above the 65504 of float16",
            "step 6, backward, backward/root/sqrt (SqrtBackward0)", "made 8 inf of 8 elements, " + line_of("y.detach()).sqrt()"),
            "Inherent", "at [0, 0]: inf, in float64 inf; input.0 is 0, gradient.0 is 1",

            "step 7, forward, masked/softmax_1 (softmax)", "made 16 nan of 16 elements", "Inherent",

            "in step 8 relu was given NaN that no operator made: input/broken ",

            "step 9, optimizer, optimizer/SGD/net/0/weight (SGD)", "Unknown: it cannot be repeated: an optimizer's step",

            "The training stops at every overflow.",
            "mul_", "dtype", "linear", "dtype", "backward/root/sqrt", "inherent", "softmax_1", "inherent, from-inf",
            " hidden: intended, e.g. masks of -inf (info overflows -a)",
            "In step 8, relu received NaN that no operator produced: input/broken",
            "Overflow detection is off.", "hidden", "Overflow detection is off.",
            "masked_fill", "6 -inf of 16 intended (", " times)", "mul_")
        self.assertEqual(out.count("Overflow 2, step 2, logarithm/log: torch.log"), 2)
        self.assertRegex(out, r"Saved to \S*/kept; ")
        self.assertIn("Overflow detection is off.", out)
        self.assertRegex(out, r"error: \S*/kept already exists: name a new folder")
        self.assertEqual(self.digest("seen"), self.digest("bare"))

    def test_none_says_how_many_were_looked_at(self):
        done = self.gradb([self.python, self.write("fine.py", FINE)], "catch overflow", "step 2", "info overflows", "kill")
        self.assertRegex(done.stdout, r"No overflow found: [1-9]\d* operators checked\.")

    def test_the_logarithm_of_a_mask_is_intended(self):
        done = self.gradb([self.python, self.write("mask.py", LOG_OF_MASK)], "catch overflow", "step 3", "info overflows -a")
        self.assertNotIn("Overflow, step", done.stdout)
        self.assertIn("6 -inf of 16 intended", " ".join(done.stdout.split()))

    def test_an_operator_of_a_custom_backward(self):
        """It is a call like any other, in a custom function that itself cannot be repeated."""
        done = self.gradb([self.python, self.write("custom.py", CUSTOM)], "catch overflow", "continue", "rerun", "kill")
        self.expect(" ".join(done.stdout.split()), "step 2, backward, backward/Scale/div (div)", "float64 5 inf of 5",
                    "Inherent: not finite in float64 either: the cause is in the values (a division by 0)",
                    "output 0 at [0, 0]: inf, in float64 inf; input.0 is 1, input.1 is 0")

    def test_three_are_written_and_the_training_goes_on(self):
        truth = self.folder / "truth"
        truth.mkdir()
        done = self.gradb([self.python, str(SCRIPT), "digest", truth], "overflow record 5 'the calls'",
                          "info overflows", "continue")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("The next 5 overflows are recorded in ", done.stdout)
        self.assertIn("No operator has been checked yet.", done.stdout)
        self.assertIn("The training ended.", done.stdout)
        calls = self.folder / "the calls"
        self.assertRegex(done.stdout, r"overflow 5: head/linear made 16 inf of 16 elements, overflow.py:\d+, "
                         "written to %s/step5.5.head.linear\n" % re.escape(str(calls.resolve())))
        names = sorted(path.name for path in calls.iterdir())
        self.assertEqual(names, ["step2.2.logarithm.log", "step3.3.exponential.exp", "step4.4.in_place.mul_",
                                 "step5.5.head.linear",
                                 "step6.6.backward.root.sqrt"])
        self.check_in_place(calls / "step4.4.in_place.mul_", truth)
        self.check_backward(calls / "step6.6.backward.root.sqrt")
        self.check_opened(calls)
        self.check_again(calls)

    def check_opened(self, calls):
        """gradb opens its own folders: a node per call, in its step."""
        done = harness.run_gradb("--no-tui", "-q", "--batch", "--json", "-ex", f"open '{calls}'", "-ex", "info events",
                                 "-ex", "info nodes -a", "-ex", "goto 4", "-ex", "print mul_:in0", "-ex", "bt mul_")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = {record["type"]: record for record in harness.records(done)}
        self.assertEqual({node["node"] for node in told["nodes"]["nodes"]},
                         {"logarithm/log", "exponential/exp", "in_place/mul_", "head/linear", "backward/root/sqrt"})
        self.assertIn("3e+38", json.dumps(told))
        self.assertIn("in_place", json.dumps(told))
        self.assertIn("overflow 4, forward, overflow.py:", done.stdout)

    def read(self, folder, file):
        return json.loads((folder / file).read_text(encoding="utf-8"))

    def check_in_place(self, folder, truth):
        """Its input is the previous value; bfloat16 is stored as float32."""
        call = self.read(folder, "forward_info.json")["Tensor.mul_.0.forward"]
        self.assertEqual([value["type"] for value in call["args"]], ["torch.Tensor", "int"])
        self.assertEqual(call["args"][1]["value"], 4)
        given = call["args"][0]
        self.assertEqual((given["dtype"], given["stored"], given["shape"]), ("torch.bfloat16", "float32", [4, 2]))
        for file, name in ((given["datapath"], "before"), ("output.0.npy", "after")):
            array = numpy.load(folder / file)
            self.assertEqual((array.dtype, array.shape), (numpy.float32, (4, 2)))
            bits = (array.view(numpy.uint32) >> 16).astype("<u2")
            self.assertEqual(bits.tobytes(), (truth / name).read_bytes())
        self.assertAlmostEqual(given["Max"], 3e38, delta=1e36)
        stack = self.read(folder, "stack_info.json")["Tensor.mul_.0"]
        self.assertIn("line %s, in in_place, \n big.mul_(4)" % line_of("big.mul_(").split(":")[1], stack[0])

    def check_backward(self, folder):
        """The gradient that it received, and its forward call."""
        forward = self.read(folder, "forward_info.json")["Tensor.sqrt.0.forward"]
        received = self.read(folder, "backward_info.json")["Tensor.sqrt.0.backward"]
        self.assertTrue(forward["args"][0]["requires_grad"])
        self.assertEqual(numpy.load(folder / forward["args"][0]["datapath"]).tolist(), [[0, 0]] * 4)
        self.assertEqual(numpy.load(folder / received[0]["datapath"]).tolist(), [[1, 1]] * 4)
        self.assertTrue(numpy.isinf(numpy.load(folder / "output.0.npy")).all())
        self.assertEqual(self.read(folder, "overflow.json")["phase"], "backward")
        for file in ("forward_info.json", "backward_info.json"):  # each opens by itself, too
            opened = harness.run_gradb("-nx", "--batch", *harness.typed("open " + file, "info nodes"), cwd=folder)
            self.assertEqual((opened.returncode, opened.stderr), (0, ""))
            self.assertIn("Tensor.sqrt.0." + file.split("_")[0], opened.stdout)

    def check_again(self, calls):
        """By itself, without a debugger, with the folder moved."""
        moved = calls.rename(calls.with_name("moved"))
        code = ("import runpy, sys\nsys.path.insert(0, sys.argv.pop(1))\n"
                "runpy.run_module('gradb.rerun', run_name='__main__', alter_sys=True)")
        command = torches.warm(self.python) + ["-c", code, str(torches.PACKAGE), "--json"]
        done = self.run_alone(command + [str(moved)])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        replies = harness.records(done)
        self.assertEqual([(reply["node"], reply["verdict"]) for reply in replies], [
            ("logarithm/log", "inherent"), ("exponential/exp", "dtype"), ("in_place/mul_", "dtype"), ("head/linear", "dtype"),
            ("backward/root/sqrt", "inherent")])
        self.check_attacks(moved / "step2.2.logarithm.log", command)
        (moved / "step2.2.logarithm.log" / "input.0.npy").write_bytes(b"\x93NUMPY")
        about = moved / "step3.3.exponential.exp" / "overflow.json"
        about.write_text('{"format": "gradb.overflow", "version": 1}', encoding="utf-8")
        done = self.run_alone(command + [str(moved / "step2.2.logarithm.log"), str(about.parent), str(self.folder / "none")])
        self.assertEqual(done.returncode, 1)
        self.assertIn("input.0.npy is not a .npy file", done.stdout)
        self.assertIn('step3.3.exponential.exp/overflow.json: "number" is missing\n', done.stderr)
        self.assertIn("none/overflow.json cannot be read", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 2)

    def check_attacks(self, call, command):
        """Manipulated files: one line says what is wrong, and nothing outside the folder is read."""
        tensor = ("forward_info.json", "Torch.log.0.forward", "args", 0)
        attacks = [(tensor + ("datapath",), path, "not the name of a .npy file in the call's own folder")
                   for path in ("../secret.npy", "/etc/passwd", "..", "a\0.npy", 3, "")]
        attacks += [(tensor + ("shape",), shape, "not a list of sizes")
                    for shape in ([-1], [1 << 62], [True], ["4"], 7, [1] * 65)]
        attacks += [
            (tensor + ("shape",), [1 << 40], "not the one that its call names"),
            (tensor + ("dtype",), "torch.load", '"dtype" is not a type of PyTorch'),
            (tensor[:3], {"type": "int"}, '"args" or "kwargs" is missing'),
            (tensor, "x", "without a type"),
            (tensor, {"type": "tuple", "value": 5}, "declared as tuple but is not one"),
            (tensor[:3], [{"type": "torch.dtype", "value": "torch.load"}], "torch.load is not a torch.dtype"),
            (("overflow.json", "number"), "1", '"number" is not a whole number'),
            (("overflow.json", "step"), 10 ** 400, '"step" is not a whole number'),
            (("overflow.json", "outputs"), [4], "without a type"),
            (("overflow.json", "autocast"), {"dtype": "torch.jit"}, '"autocast" does not name a floating-point type'),
            (("overflow.json", "function"), "torch.save", "has no operator torch.save"),
            (("overflow.json",), [], "it is not a JSON object"),
            (("overflow.json",), "[" * 100000, "it is nested too deeply")]
        folders = [self.attack(call, number, place, value) for number, (place, value, _) in enumerate(attacks)]
        pipe = self.attack(call, "pipe", (), None)
        (pipe / "input.0.npy").unlink()
        os.mkfifo(pipe / "input.0.npy")  # nobody writes to it, so nothing may wait for it
        folders.append(pipe)
        folders.append(self.does_not_run(call))
        done = self.run_alone(command + [str(folder) for folder in folders])
        self.assertEqual(done.returncode, 1)
        said = {json.loads(line)["folder"]: json.loads(line) for line in done.stdout.splitlines()}
        errors = [line for line in done.stderr.splitlines() if line]
        self.assertEqual(len(said) + len(errors), len(folders), done.stderr)
        for folder, (place, value, expected) in zip(folders, attacks):
            told = [line for line in errors if f"{folder.name}/" in line]
            told += [json.dumps(said[str(folder)])] if str(folder) in said else []
            with self.subTest(place=place, value=str(value)[:40]):
                self.assertEqual(len(told), 1, told)
                self.assertIn(expected, told[0].replace('\\"', '"'))
        self.assertEqual(said[str(folders[-1])]["verdict"], "unknown")
        self.assertRegex(said[str(folders[-1])]["text"],
                         r"the call itself fails on the CPU \((RuntimeError|NotImplementedError): ")

    def attack(self, call, number, place, value):
        """A copy of the call with another value at one place."""
        folder = self.folder / f"attack{number}"
        shutil.copytree(call, folder)
        if place:
            whole = {"": self.read(folder, place[0])}
            at, keys = whole, ("",) + place[1:]
            for key in keys[:-1]:
                at = at[key]
            at[keys[-1]] = value
            text = value if isinstance(value, str) and len(place) == 1 else json.dumps(whole[""])
            (folder / place[0]).write_text(text, encoding="utf-8")
        return folder

    def does_not_run(self, call):
        """A call on a GPU in a type that the CPU cannot compute with, finite in float64."""
        tensor = ("forward_info.json", "Torch.log.0.forward", "args", 0)
        given = {**self.read(call, tensor[0])[tensor[1]]["args"][0], "dtype": "torch.float16", "shape": [2, 2]}
        folder = self.attack(call, "ed", tensor, given)
        about = self.read(folder, "overflow.json")
        about.update(function="torch.linalg.inv", device="cuda:0")
        (folder / "overflow.json").write_text(json.dumps(about), encoding="utf-8")
        numpy.save(folder / given["datapath"], numpy.eye(2, dtype=numpy.float16))
        return folder

    @staticmethod
    def run_alone(command):
        return subprocess.run(command, capture_output=True, text=True, check=False, env=torches.environment(),
                              timeout=4 * harness.DEADLINE)


if __name__ == "__main__":
    harness.main()
