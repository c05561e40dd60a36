# SPDX-License-Identifier: GPL-3.0-or-later
"""shell and pipe while a training process is connected: it must not be lost over them."""
import unittest

import harness


class Shell(unittest.TestCase):
    def play(self, *commands):
        """The commands in batch mode, with a keepalive that a blocked loop would miss several times."""
        run = f"run {harness.CHARLM} --threads 1 --layers 1 --data {harness.SOURCE / 'LICENSES' / 'MIT.txt'}"
        done = harness.run_gradb("--batch", "-nx", "--listen", "127.0.0.1:0",
                                 *harness.typed("set keepalive 0.3", run, *commands))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_trainer_is_served_while_a_shell_command_runs(self):
        out = self.play("shell sleep 3; echo slept", "step")
        self.assertRegex(out, r"slept\nStopped at the end of step 1")

    def test_trainer_is_served_while_a_reader_is_slow(self):
        out = self.play("pipe print -a Default/network/head.weight | (sleep 3; wc -l)", "step")
        self.assertRegex(out, r"\n\d{3,}\nStopped at the end of step 1")

    def test_reader_that_stops_early(self):
        out = self.play("pipe print -a Default/network/head.weight | head -1", "step")
        self.assertRegex(out, r"\$1 = Default/network/head.weight:0\nStopped at the end of step 1")


if __name__ == "__main__":
    harness.main()
