# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes as people make them (mlp.py --mistake): gradb finds node, line and step, and `why` the cause."""
import harness
import torches

SCRIPT = torches.SCRIPTS / "mlp.py"


@torches.both
class Mistake(torches.Folder):
    def found(self, mistake, *commands):
        """What gradb prints after the commands on the script with the mistake."""
        done = self.gradb([self.python, str(SCRIPT), "--steps", "12", "--mistake", mistake], *commands, "kill")
        self.assertIn(done.returncode, (0, 4), done.stdout + done.stderr)  # 4: something fired
        return " ".join(done.stdout.split())

    def line_of(self, text):
        """FILE:LINE of the script's only line with the text."""
        lines = SCRIPT.read_text(encoding="utf-8").splitlines()
        numbers = [number for number, line in enumerate(lines, 1) if text in line]
        self.assertEqual(len(numbers), 1, text)
        return f"mlp.py:{numbers[0]}"

    def test_logarithm_of_zero(self):
        out = self.found("log-zero", "watch TO on all", "continue", "why")
        self.assertIn("Watchpoint 1, step 5, log (log)", out)
        self.assertIn(self.line_of("torch.log("), out)
        self.assertIn("takes the logarithm of 0: 11 of 64 elements of getitem_3 are 0", out)

    def test_rate_too_high(self):
        out = self.found("huge-lr", "watch WCL on weights", "continue")
        self.assertIn("weight_change_too_large (WCL), step 2", out)
        self.assertRegex(out, r"net/out/weight:0 abs_mean_update_ratio_gt=0\.1 \(20\.3")
        self.assertIn("lr = 50,", out)

    def test_dead_units(self):
        out = self.found("dead-relu", "step 1", "watch DU dead_percentage_ge=90 steps=2 on activations", "continue",
                         "why")
        self.assertIn("dead_units (DU), step 3 net/relu_1:0 dead_percentage_ge=90 (100)", out)
        self.assertIn("no element of net/fc2/linear is above 0 (the highest is -99.358)", out)
        self.assertIn(self.line_of("self.fc2(x)"), out)

    def test_frozen_layer(self):
        out = self.found("frozen", "step 2", "watch WNC on all", "continue")
        self.assertIn("weight_not_changed (WNC), step 3 net/fc1/weight:0 net/fc1/bias:0 ", out)

    def test_label_out_of_range(self):
        out = self.found("label", "continue")
        self.assertIn("cross_entropy raised IndexError: Target 2 is out of bounds.", out)

    def test_sum_instead_of_mean(self):
        out = self.found("sum-loss", "watch UB on weights", "continue")
        self.assertIn("update_ratio_band (UB), step 2", out)
        self.assertIn("net/out/weight:0 abs_mean_update_ratio_gt=0.1 (0.284", out)
        self.assertIn("lr = 0.05, loss = 43.8", out)

    def test_detached(self):
        out = self.found("detached", "step 1", "watch GM on gradients", "continue")
        self.assertIn("gradient_missing (GM), step 2 net/fc1/weight.grad:0 age_ge=1 (2) net/fc1/bias.grad:0 ", out)

    def test_gradients_not_zeroed(self):
        out = self.found("no-zero-grad", "step 1", "watch 'cosine > 0.9' on gradients", "continue")
        self.assertIn("cosine > 0.9, step 2", out)
        self.assertIn("net/fc1/weight.grad:0 cosine=0.953", out)


if __name__ == "__main__":
    harness.main()
