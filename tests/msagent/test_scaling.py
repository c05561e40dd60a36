# SPDX-License-Identifier: GPL-3.0-or-later
"""Loss scaling (scripts/scaling.py): the loss is shown as it is without the scale, and steps that are skipped end."""
import re

import harness
import minds

IN_DOUBT = "loss is what the training step returns, which may be multiplied by the loss scale"


@minds.needed
class Scaling(minds.Case):
    def check(self, mode, way, skipped=(1, 2, 5), in_doubt=0, scaler="DynamicLossScaler"):
        """in_doubt: so many losses are shown as the step returns them; then steps are looked into."""
        script = self.script("scaling.py")
        why = ["why loss"] if skipped and (mode, way) not in (("pynative", "own"), ("pynative", "construct")) else []
        with self.subTest(mode=mode, way=way):
            done = self.gradb([script, mode, way], *4 * ["step"], "agent operators on", "step", *why, "step", "continue")
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout + done.log)
            bare = self.bare(script, mode, way)
            self.assertEqual(minds.digests(done.log), minds.digests(bare))
            shown = [float(number) for number in re.findall(r"^loss = ([-+.e\d]+)", done.stdout, re.M)]
            true = [float(number) for number in re.findall(r"^loss (\S+)$", bare, re.M)]
            self.assertEqual(len(shown), 6, done.stdout)
            for number, (one, other) in enumerate(zip(shown, true)):
                if number >= in_doubt:
                    self.assertAlmostEqual(one / other, 1, places=3, msg=f"step {number + 1}: {done.stdout}")
            self.assertEqual(IN_DOUBT in done.log, in_doubt > 0, done.log)
            self.assertEqual([int(step) for step in re.findall(r"the loss scaler skipped step (\d)\n", done.log)],
                             list(skipped), done.log)
            if why:
                self.assertIn(f"{scaler} skipped the update of Momentum in step 5 because its", " ".join(done.stdout.split()))

    def test_in_python(self):
        self.check("pynative", "own")
        self.check("graph", "own")
        self.check("graph", "halved")
        self.check("pynative", "construct")

    def test_in_compiled_code(self):
        self.check("pynative", "jitted")
        self.check("pynative", "unscaled")
        for way in ("jitted", "unscaled", "construct"):
            self.check("graph", way, in_doubt=4)

    def test_static(self):
        self.check("pynative", "static", skipped=())
        self.check("graph", "static", skipped=(), in_doubt=4)

    def test_cell(self):
        for mode in ("pynative", "graph"):
            self.check(mode, "cell", scaler="WithScale")


if __name__ == "__main__":
    harness.main()
