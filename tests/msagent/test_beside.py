# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs beside a MindSpore training does not count as training: evaluations, callbacks, dataset workers, other processes."""
import harness
import minds

INFERENCE = """
import mindspore as ms
from mindspore import nn, ops
net = nn.Dense(3, 1)
net.set_train(False)
for _ in range(3):
    net(ops.ones((2, 3), ms.float32))
open("inferred", "w").close()
"""


@minds.needed
class Beside(minds.Case):
    def check(self, style, epoch):
        """8 steps in two epochs, between which the network is evaluated."""
        script = self.script("beside.py")
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                done = self.gradb([script, mode, style], "step 2", "watch TO on all", "step 4", "delete 1", "step 2",
                                  "continue")
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout + done.log)
                events = [line for line in done.log.splitlines() if line.startswith("unseen at step 3: step 3 is compiled")]
                self.assertEqual(len(events), mode == "graph", done.log)
                log = [line for line in done.log.splitlines() if line not in events]
                self.assertEqual(log, self.bare(script, mode, style).splitlines())
                said = done.stdout.split("Stopped before the first step.\n")[1]
                for step, place in ((2, "epoch = 1, batch = 2"), (6, f"epoch = {epoch}, batch = 2"),
                                    (8, f"epoch = {epoch}, batch = 4")):
                    self.assertRegex(said, rf"Stopped at the end of step {step}\.\nloss = \S+, lr = 0\.05, {place}\n")
                self.assertTrue(said.endswith("Continuing.\nThe training ended.\n"), said)

    def test_fit_with_an_evaluation_after_each_epoch(self):
        self.check("fit", 2)

    def test_eval_between_two_trainings(self):
        self.check("between", 1)

    def test_workers_of_the_dataset(self):
        self.check("workers", 1)

    def test_a_process_without_an_optimizer(self):
        path = self.folder / "infer.py"
        path.write_text(INFERENCE)
        done = self.gradb([path], "step")
        self.assertTrue((self.folder / "inferred").exists(), done.stderr)
        self.assertNotIn("Connected", done.stdout)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)


if __name__ == "__main__":
    harness.main()
