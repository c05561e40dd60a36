# SPDX-License-Identifier: GPL-3.0-or-later
"""The command files of examples/commands, run on a training of any framework."""
import harness

EXAMPLES = harness.SOURCE / "examples" / "commands"


class Shipped:
    """Runs the command files of examples/commands, with smaller numbers. A part of a TestCase, which has
    trained(commands, *arguments): gradb's output, and then the training's."""

    def ship(self, name, *replaced):
        """The path of an example with other numbers; the comment alone may have them, too."""
        text = (EXAMPLES / (name + ".gradb")).read_text()
        commands = [line for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(len(commands), 1)
        for old, new in replaced:
            self.assertIn(old, commands[0])
            commands[0] = commands[0].replace(old, new)
        path = self.folder / (name + ".gradb")
        path.write_text(commands[0] + "\n")
        return f"source {path.name}"

    def check_all(self, ending):
        """ending: of the framework's checkpoints."""
        checks = {"stop-after-time": self.check_time, "best-checkpoint": lambda: self.check_best(ending),
                  "keep-last": lambda: self.check_last(ending), "early-stop": self.check_early,
                  "lr-on-plateau": self.check_plateau, "stop-on-nan": self.check_nan, "log-table": self.check_table}
        self.assertEqual({path.stem for path in EXAMPLES.glob("*.gradb")}, set(checks))
        for name, check in checks.items():
            with self.subTest(example=name):
                check()

    def check_time(self):
        said = self.trained([self.ship("stop-after-time", ("> 600", "> 0.000001")), "continue"])
        last = losses(said)[-1]
        self.assertRegex(said, r"(?m)^The training ends at (epoch \d+, )?step %d, loss %.6g: " % (last[0], last[1]))
        self.assertLess(last[0], 40)

    def check_best(self, ending):
        said = self.trained([self.ship("best-checkpoint"), "continue"])
        self.assertEqual([path.name for path in self.folder.glob("best-0*")], ["best-0.6400." + ending], said)
        self.assertGreater(said.count("checkpoint of step "), 5)

    def check_last(self, ending):
        self.trained([self.ship("keep-last", ("100", "10")), "continue"])
        self.assertEqual(sorted(path.name for path in self.folder.glob("step-*")),
                         [f"step-000000{step}.{ending}" for step in (20, 30, 40)])

    def check_early(self):
        said = self.trained([self.ship("early-stop", ("500", "8")), "continue"])
        self.assertEqual(losses(said)[-1][:2], (18, 1.0), said)
        self.assertRegex(said, r"(?m)^The training ends at (epoch \d+, )?step 18, loss 1: ")

    def check_plateau(self):
        said = self.trained([self.ship("lr-on-plateau", ("200", "5")), "info events", "continue", "info events"])
        self.assertEqual([rate for step, _, rate in losses(said) if step in (15, 16, 21, 26)], [0.5, 0.25, 0.125, 0.0625])
        self.assertRegex(said, r"(?m)^ *15 +set +lr of SGD: 0.5 -> 0.25$")

    def check_nan(self):
        said = self.trained([self.ship("stop-on-nan"), "continue", "print loss", "kill"], "nan")
        self.assertRegex(said, r"(?m)^Watchpoint 1, at the end of step 7\.$")

    def check_table(self):
        said = self.trained([self.ship("log-table", ("every 10", "every 5")), "continue"])
        head, *rows = (self.folder / "run.csv").read_text().splitlines()
        self.assertEqual(head, "step,epoch,batch,elapsed,loss,lr")
        self.assertEqual([(int(row.split(",")[0]), *map(float, row.split(",")[4:])) for row in rows], losses(said)[4::5])


def losses(text):
    """(step, loss, rate) that the training printed."""
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith("loss ") and len(line.split()) == 4]
    return [(int(step), float(loss), float(rate)) for step, loss, rate in lines]
