# SPDX-License-Identifier: GPL-3.0-or-later
"""charlm under gradb: its graph, source lines, checkpoint, exit, and a fault that is found."""
import os
import pathlib
import re
import unittest

import harness

SOURCES = harness.SOURCE / "examples" / "charlm"


class Debugged(unittest.TestCase):
    def setUp(self):
        self.folder = harness.folder_of(self)
        self.text = self.folder / "text.txt"
        self.text.write_text("".join(f"line {i} of {i * i % 97} is {i % 7}\n" for i in range(3000)))

    def run_script(self, lines, *args):
        done = harness.run_gradb("-q", "-nx", "--batch", "--listen", "127.0.0.1:0", "run", "--", harness.CHARLM,
                                 "--data", self.text, "--layers", 1, "--width", 16, "--context", 16, "--batch", 4,
                                 "--threads", 1, *args, script=lines)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_every_frame_is_a_line_of_the_model(self):
        output = self.run_script(["next", "backtrace", "next 30", "backtrace", "next 25", "backtrace",
                                  "tbreak type:AdamWeightDecay", "continue", "backtrace"])
        frames = re.findall(r"^#\d+ +(\S+):(\d+) in (\w+)$", output, re.MULTILINE)
        self.assertGreater(len(frames), 10)
        for path, line, function in frames:
            self.assertEqual(pathlib.Path(path).parent, SOURCES)
            source = pathlib.Path(path).read_text().splitlines()
            before = [text for text in source[:int(line)] if re.match(r"^\w.*\w\(", text)]
            self.assertIn(function + "(", before[-1], f"{path}:{line}")
        self.assertEqual({frame[2] for frame in frames if frame[2].startswith("network")},
                         {"network_forward", "network_backward"})

    def test_classes(self):
        output = self.run_script(["info graph", "info params -a", "info nodes activations"])
        self.assertRegex(output, r"18 weights:")
        self.assertRegex(output, r"38 other parameters:")
        for word in ("GeLU", "Softmax"):
            self.assertIn(word, output)
        self.assertNotRegex(output, r"(?m)^weight .*moment")

    def test_steps_change_what_they_should(self):
        def changed(*args):
            output = self.run_script(["step", "stats fc.weight", "step", "stats fc.weight"], *args)
            before, after = output.split("end of step 1.")[1].split("end of step 2.")
            mean = re.compile(r"mean\D*(\S+)")
            self.assertTrue(mean.search(before) and mean.search(after), output)
            return mean.search(before)[1] != mean.search(after)[1]

        self.assertTrue(changed())
        self.assertFalse(changed("--fault", "frozen-weight"))

    def test_checkpoint(self):
        self.run_script(["step 3", "checkpoint", "step"], "--checkpoint-dir", str(self.folder))
        files = [name for name in os.listdir(self.folder) if name.startswith("charlm-")]
        self.assertEqual(len(files), 1, files)
        self.assertRegex(files[0], r"^charlm-[34]\.bin$")
        data = (self.folder / files[0]).read_bytes()
        self.assertTrue(data.startswith(b"charlm 1\nstep "))
        self.assertIn(b"\nblock0/attn/qkv.weight 768\n", data)

    def test_kill_ends_it_in_order(self):
        with harness.Gradb("-nx", command=("run", "--", str(harness.CHARLM), "--data", str(self.text),
                                           "--layers", "1", "--steps", "1000000")) as run:
            run.expect("Stopped before the first step")
            run.run("step 2", "Stopped at the end of step 2")
            run.run("kill", "ended")
            run.send("info log")
            run.expect(r"step 1 loss")
            self.assertEqual(run.finish(), 0)

    def test_nan_log_is_found_by_its_operator(self):
        """Steps until the loss is NaN, then finds the operator that caused it."""
        output = self.run_script(["set print threshold 6", "break type:Log"]
                                 + ["continue", "print ."] * 100, "--fault", "nan-log", "--steps", 120)
        stops = re.split(r"(?m)^Breakpoint 1, step ", output)[1:]
        bad = [stop for stop in stops if "-Inf!" in stop]
        self.assertTrue(bad, output[-2000:])
        self.assertGreater(int(bad[0].split(",")[0]), 15)
        self.assertIn("Default/network/loss/Log-op", bad[0])
        self.assertNotIn("NaN!", "".join(stops[:stops.index(bad[0]) + 1]))


if __name__ == "__main__":
    harness.main()
