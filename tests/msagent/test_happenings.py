# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of a MindSpore training: catch, on, and what an unmodified script is seen to do."""
import re

import harness
import minds

# Prints a digest of the weights of each style: Model in both modes, and a loop of one's own.
TRAIN = """
import hashlib, sys
import numpy as np
import mindspore as ms
from mindspore import nn, save_checkpoint
from mindspore.dataset import NumpySlicesDataset
def train(style):
    ms.set_context(mode=ms.GRAPH_MODE if style == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU(), nn.Dense(4, 1))
    loss, optimizer = nn.MSELoss(), nn.SGD(net.trainable_params(), 0.05)
    x = np.random.RandomState(1).randn(6, 4).astype("f4")
    y = x.sum(1, keepdims=True)
    data = NumpySlicesDataset((x, y), shuffle=False).batch(2)
    checks = NumpySlicesDataset((x[:2], y[:2]), shuffle=False).batch(1)
    model = ms.Model(net, loss, optimizer, metrics={"mae"})
    grad = ms.value_and_grad(lambda a, b: loss(net(a), b), None, optimizer.parameters)
    for epoch in range(2):
        if style == "loop":
            net.set_train()
            for a, b in data.create_tuple_iterator():
                _, gradients = grad(a, b)
                optimizer(gradients)
            net.set_train(False)
            for a, b in checks.create_tuple_iterator():
                loss(net(a), b)
        else:
            model.train(epoch + 1, data, dataset_sink_mode=False, initial_epoch=epoch)
            model.eval(checks, dataset_sink_mode=False)
        save_checkpoint(net, "net.ckpt")
    weights = b"".join(held.asnumpy().tobytes() for held in net.trainable_params())
    print("first", float(net[0].weight.asnumpy()[0, 0]))
    print("digest", style, hashlib.sha256(weights).hexdigest()[:16])
for style in sys.argv[1:]:
    train(style)
"""
FIT = TRAIN.replace("model.train(epoch + 1, data, dataset_sink_mode=False, initial_epoch=epoch)", """class Show(ms.Callback):
                def on_train_step_end(self, context):
                    print("done", context.original_args().cur_step_num, flush=True)
            model.fit(3, data, checks, callbacks=[Show()], dataset_sink_mode=False, valid_dataset_sink_mode=False)
            print("the script continues")
            break""")
STYLES = ("pynative", "graph", "loop")
COMMANDS = ("on step-end every 2 print step", "on step-begin every 4 print epoch", "on epoch-end if epoch > 1 print batch",
            "on step-end if loss > 1e9 print loss", "catch begin", "catch epoch begin", "catch epoch_end",
            "catch eval-begin", "catch eval-end", "catch checkpoint", "tcatch step-begin if step == 5",
            "catch step-end if step == 2", *["continue"] * 8, "delete 5 6 7 8 9 10 12", "continue", "catch end", "continue",
            "info breakpoints", "print net/0/weight[0]", "info events", "continue")
STOPS = ["begin), stopped before the first step.", "epoch-begin, epoch 1), stopped before the first step.",
         "step-end, epoch 1, batch 2), at the end of step 2.", "epoch-end, epoch 1), at the end of step 3.",
         "eval-begin, epoch 1), at the end of step 3.", "eval-end, epoch 1), at the end of step 3.",
         "checkpoint net.ckpt, epoch 1), at the end of step 3.", "epoch-begin, epoch 2), at the end of step 3.",
         "step-begin), at the end of step 4.", "end), at the end of step 6."]
HAPPENED = [("begin", "")] + [event for epoch in ("epoch 1", "epoch 2") for event in (
    ("epoch-begin", epoch), ("epoch-end", epoch), ("eval-begin", epoch), ("eval-end", epoch),
    ("checkpoint", "net.ckpt"))] + [("end", "")]


@minds.needed
class Happenings(minds.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "train.py").write_text(TRAIN)

    def check(self, style, wanted):
        done = self.gradb(["train.py", style], *COMMANDS)
        said = done.stdout
        self.assertEqual((done.returncode, done.stderr), (0, ""), said)
        self.assertEqual(re.findall(r"(?m)^(?:Temporary c|C)atchpoint \d+ \((.*)$", said), STOPS, said)
        printed = re.findall(r"(?m)^((?:step|epoch|batch|loss) = \d+) \(step (\d)\)$", said)
        self.assertEqual(printed, [("step = 2", "2"), ("epoch = 1", "3"), ("step = 4", "4"), ("step = 6", "6"),
                                   ("batch = 3", "6")])
        self.assertIn("step-end every 2: print step\n        already hit 3 times\n", said)
        value = float(re.search(r"(?m)^\[ *(\S+)", said).group(1))  # at the end, of the weights that the script saves
        first = re.search(r"(?m)^first (\S+)$", done.log).group(1)
        self.assertAlmostEqual(value, float(first), places=7)
        log = [line.split(None, 2)[1:] for line in said.split("$1 = ")[1].splitlines() if line[:4].strip().isdigit()]
        self.assertEqual([(kind[0], " ".join(kind[1:])) for kind in log], HAPPENED)
        self.assertEqual(minds.digests(done.log), {style: wanted})

    def test_the_training_stops_at_each_event(self):
        """Commands run while it continues, and its weights are those of a run without gradb."""
        wanted = minds.digests(self.bare("train.py", *STYLES))
        for style in STYLES:
            with self.subTest(style=style):
                self.check(style, wanted[style])

    def test_the_training_ends_where_it_is_told_to(self):
        """Values of an evaluation belong to the step before it; the script continues after Model.train."""
        where = {"epoch-begin": "4", "epoch-end": "3", "eval-begin": "3", "step-end": "3"}
        (self.folder / "fit.py").write_text(FIT)
        for event, last in where.items():
            with self.subTest(event=event):
                done = self.gradb(["fit.py", "fit"], f"on {event} if step == 3 kill training", 'dprintf net/0,"%g\\n",mean',
                                  "on end print step", "continue", "info events")
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                self.assertEqual(re.findall(r"done (\d)", done.log)[-1], last)
                self.assertIn("the script continues\n", done.log)
                self.assertIn("step = %s (step %s)\n" % (last, last), done.stdout)
                self.assertEqual(re.findall(r"(?m)^ *(\d) +eval-end", done.log)[-1], last)
        for event in ("epoch-end", "eval-begin", "step-end"):
            with self.subTest(loop=event):
                done = self.gradb(["train.py", "loop"], f"on {event} if step == 3 kill training", "continue")
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                self.assertIn("gradb: the training was ended after step 3 (kill training)\n", done.log)

    def test_epochs_are_those_of_the_training(self):
        """Also where each makes its dataset, and one was tried before."""
        loop = TRAIN.replace("    for epoch in range(2):", "    next(data.create_tuple_iterator())\n    for epoch in range(2):")
        made = loop.replace("            net.set_train()", "            net.set_train()\n            "
                            "data = NumpySlicesDataset((x, y), shuffle=False).batch(2)")
        for name, script in (("kept", loop), ("made", made)):
            with self.subTest(name=name):
                (self.folder / (name + ".py")).write_text(script)
                done = self.gradb([name + ".py", "loop"], f"on step-end table {name}.csv epoch batch", "continue")
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                rows = [row.split(",")[1:3] for row in (self.folder / (name + ".csv")).read_text().splitlines()[1:]]
                self.assertEqual(rows, [[epoch, batch] for epoch in "12" for batch in "123"])


if __name__ == "__main__":
    harness.main()
