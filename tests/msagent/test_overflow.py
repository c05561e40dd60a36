# SPDX-License-Identifier: GPL-3.0-or-later
"""Overflows (scripts/overflow.py): each origin is found in both modes and distinguished from what is intended."""
import harness
import minds

SCRIPT = minds.SCRIPTS / "overflow.py"
MODES = ("pynative", "graph")


def line_of(text):
    """FILE:LINE of the script's only line with the text."""
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    number, = [number for number, line in enumerate(lines, 1) if text in line]
    return f"overflow.py:{number}"


@minds.needed
class Overflow(minds.Case):
    def look(self, way, *commands):
        """(the mode, what gradb said, without line breaks; what the script and gradb logged) for both modes; the weights
        are those of a run without gradb."""
        script = self.script("overflow.py")
        for mode in MODES:
            with self.subTest(mode=mode):
                done = self.gradb([script, mode, way], "set on-error continue", "catch overflow", *commands)
                self.assertIn("The training ended.\n", done.stdout, done.stderr + done.log)
                self.assertEqual(minds.digests(done.log), minds.digests(self.bare(script, mode, way)))
                yield mode, " ".join((done.stdout + done.stderr).split()), done.log

    def expect(self, output, *parts):
        """Each part is in the output, after the previous one."""
        at = 0
        for part in parts:
            found = output.find(part, at)
            self.assertGreaterEqual(found, 0, f"{part!r} is not after {output[:at][-200:]!r} in\n{output}")
            at = found + len(part)

    def test_each_is_found(self):
        for _, out, log in self.look("ways", "continue", "why", *6 * ["continue"], "info overflows", "overflow off",
                                     "info overflows -a", "rerun", "overflow record 3", "save overflow 1 here", "continue"):
            self.expect(
                out, "every overflow.",  # the mask of step 1 does not stop the run
                "Overflow, step 2, forward, Log (Log) overflow 2: Log made 16 -inf of 16 elements, " + line_of("# of 0"),
                "takes the logarithm of 0",
                "step 3, forward, Mul (Mul) overflow 3: Mul made 16 inf of 16 elements, " + line_of("float16 ends"),
                "step 4, backward, backward/Sqrt (SqrtBackward) overflow 4: ", "of 16 elements, " + line_of("its slope"),
                "in step 5 AddExt_2 was given NaN that no operator made: a tensor from outside",
                "step 6, optimizer, optimizer/SGD/", "inf of ", line_of("optimizer(tuple"),
                "The training stops at every overflow.", "forward Log", "0 ... 0 16 -inf of 16", "backward backward/Sqrt",
                "hidden: intended", "In step 5, AddExt_2 received NaN that no operator produced: a tensor from outside",
                "Overflow detection is off.", "MaskedFill", "4 -inf of 16 intended")
            self.assertEqual(out.count("error: a call of MindSpore's cannot be repeated, so it is not written"), 3, out)

    def test_of_a_step_that_the_scaler_skips(self):
        for _, out, log in self.look("scaled", "continue", "continue", "step", "info overflows", "overflow off",
                                     "continue"):
            self.expect(out, "Overflow, step 1, backward, backward/Cast_1 (CastBackward) overflow 1: "
                        "backward/Cast_1 made 1 inf of 1 "
                        "elements, " + line_of("return scaler.scale"), "Overflow, step 2, backward, backward/Cast_1",
                        "4.1943e+06 ... 4.1943e+06 1 inf of 1 scaled, skipped", "1 inf of 1 scaled, skipped")
            self.expect(log, "the loss scaler skipped step 1 (overflow 1, backward/Cast_1)\n",
                        "the loss scaler skipped step 2 (overflow 2, backward/Cast_1)\n")

    def test_of_a_part_that_is_compiled(self):
        said = {mode: (out, log) for mode, out, log in self.look("partly", "continue", "continue")}
        self.assertIn("Overflow, step 1, forward, Log (Log) overflow 1: Log made 16 -inf of 16 elements, " + line_of("log(x * 0)"),
                      said["graph"][0].replace("net/", ""))
        out, log = said["pynative"]
        self.assertNotIn("Overflow, step", out)
        self.assertEqual(log.count("overflow at step"), 1, log)
        self.assertIn("in step 1 the compiled function part made numbers that are not finite of finite ones: its operators "
                      "are seen without @jit\n", log)

    def test_none_says_how_many_were_looked_at(self):
        done = self.gradb([self.script("styles.py"), "graph", "transformer"], "catch overflow", "step 2", "info overflows",
                          "kill")
        self.assertRegex(done.stdout, r"No overflow found: [1-9]\d* operators checked\.")


if __name__ == "__main__":
    harness.main()
