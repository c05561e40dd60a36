# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that act on a MindSpore training: learning rates, checkpoints."""
import re

import harness
import minds
import shipped

# Prints a digest of the weights. Arguments: mode, optimizer, and what happens in step 3: nothing, "set" (what gradb's
# test sets), or the checkpoint to begin there with.
TRAIN = """
import hashlib, sys
import numpy as np
import mindspore as ms
from mindspore import nn, Tensor
from mindspore.experimental import optim
mode, kind, third = (sys.argv + [""])[1:4]
ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
ms.set_seed(1)
net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
rows = np.random.RandomState(0)
data = [(Tensor(rows.randn(16, 4).astype("f4")), Tensor(rows.randn(16, 2).astype("f4"))) for _ in range(6)]
held = net.trainable_params()
groups = [{"params": held[:2], "lr": 0.02}, {"params": held[2:]}]
optimizer = {
    "plain": lambda: nn.Momentum(held, 0.1, 0.9),
    "groups": lambda: nn.Adam(groups, learning_rate=0.1),
    "mixed": lambda: nn.SGD([dict(groups[0], lr=nn.ExponentialDecayLR(0.02, 0.9, 1)), groups[1]], learning_rate=0.1),
    "list": lambda: nn.SGD(held, [0.1] * 20),
    "schedule": lambda: nn.SGD(held, nn.CosineDecayLR(0.0, 0.1, 20)),
    "experimental": lambda: optim.Adam(groups, lr=0.1),
}[kind]()
scheduler = optim.lr_scheduler.LambdaLR(optimizer, [lambda step: 0.9 ** step] * 2) if kind == "experimental" else None
loss = nn.MSELoss()
def forward(x, y):
    return loss(net(x), y)
grad = ms.value_and_grad(forward, None, optimizer.parameters)
def train(x, y):
    value, gradients = grad(x, y)
    optimizer(gradients)
    return value
step = ms.jit(train) if mode == "graph" else train
def place(rate, value):
    ms.ops.assign(rate, Tensor(value, ms.float32))
first = 0
if third not in ("", "set"):
    known = ms.load_checkpoint(third)
    assert ms.load_param_into_net(net, known)[0] == []
    ms.load_param_into_net(optimizer, known)
    first = int(known["step_num"].asnumpy())
for index in range(first, 6):
    if index == 2 and third == "set":
        if kind == "plain":
            place(optimizer.learning_rate, 0.05)
        elif kind == "groups":
            place(optimizer.learning_rate[0], 0.01)
            place(optimizer.learning_rate[2], 0.01)
        elif kind == "mixed":
            place(optimizer.learning_rate[2].learning_rate, 0.01)
        else:
            scheduler.base_lrs = [rate * 0.5 for rate in scheduler.base_lrs]
            for group, scale in zip(optimizer.param_groups, (0.5, 0.5)):
                place(group["lr"], float(group["lr"].asnumpy()) * scale)
    step(*data[index])
    if scheduler is not None:
        scheduler.step()
print("digest", hashlib.sha256(b"".join(p.asnumpy().tobytes() for p in net.trainable_params())).hexdigest())
"""
MODEL = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn
mode = sys.argv[1]
ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
ms.set_seed(1)
net = nn.Dense(4, 2)
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
rows = np.random.RandomState(0)
held = [(rows.randn(16, 4).astype("f4"), rows.randn(16, 2).astype("f4")) for _ in range(4)]
data = ms.dataset.GeneratorDataset(held, ["x", "y"], shuffle=False)
class Steps(ms.Callback):
    def on_train_step_end(self, context):
        told = context.original_args()
        print("loss", told.cur_step_num, float(told.net_outputs.asnumpy()), flush=True)
ms.Model(net, nn.MSELoss(), optimizer).train(5, data, callbacks=[Steps()], dataset_sink_mode=False)
print("the script continues")
"""
# The loss falls for ten steps, then stays; with an argument it is NaN from step 7 on.
PLATEAU = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn
import gradb.mindspore
ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
net = nn.Dense(2, 1)
optimizer = nn.SGD(net.trainable_params(), 0.5)
class Loss(nn.Cell):
    def construct(self, output, value):
        return output.sum() * 0 + value.sum()
class Show(ms.Callback):
    def on_train_step_begin(self, context):
        step = context.original_args().cur_step_num
        gradb.mindspore.log("accuracy", 0.1 * (step % 7) + 0.01 * (step // 7))
        self.rate = float(optimizer.learning_rate.asnumpy())
    def on_train_step_end(self, context):
        told = context.original_args()
        print("loss", told.cur_step_num, float(told.net_outputs.asnumpy()), self.rate, flush=True)
values = [float("nan") if len(sys.argv) > 2 and step > 6 else max(1.0, 2 - step / 10) for step in range(1, 41)]
rows = [(np.ones((1, 2), "f4"), np.array([value], "f4")) for value in values]
data = ms.dataset.GeneratorDataset(rows, ["x", "value"], shuffle=False)
ms.Model(net, Loss(), optimizer).train(1, data, callbacks=[Show()], dataset_sink_mode=False)
print("the script continues")
"""
HAND = """
import hashlib, sys
import numpy as np
import mindspore as ms
from mindspore import nn
ms.set_context(mode=ms.PYNATIVE_MODE if sys.argv[1] == "pynative" else ms.GRAPH_MODE)
ms.set_seed(1)
np.random.seed(1)
net = nn.Dense(4, 2)
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
class Loss(nn.Cell):
    def construct(self, x, y):
        return ((x - y) ** 2).mean()
cell = nn.TrainOneStepCell(nn.WithLossCell(net, Loss()), optimizer)
digest = hashlib.sha256()
for step in range(5):
    loss = cell(ms.Tensor(np.random.rand(3, 4).astype("f4")), ms.Tensor(np.random.rand(3, 2).astype("f4")))
    digest.update(loss.asnumpy().tobytes())
for parameter in optimizer.get_parameters():
    digest.update(parameter.asnumpy().tobytes())
print("digest", digest.hexdigest(), flush=True)
"""
# What sets the rates of each kind of optimizer as "set" does, and what gradb says.
SETS = {
    "plain": (["set lr = lr / 2"], ["lr of Momentum: 0.1 -> 0.05\n"]),
    "groups": (["set lr[0] = 0.01", "set lr[1] *= 0.1"],
               ["lr of Adam, group 0: 0.02 -> 0.01\n", "lr of Adam, group 1: 0.1 -> 0.01\n"]),
    "mixed": (["set lr[1] = 0.01"], ["lr of SGD, group 1: 0.1 -> 0.01\n"]),
    "experimental": (["set lr = lr / 2"],
                     ["lr of Adam, group 1: 0.09 -> 0.045\n",
                      "The scheduler LambdaLR (made at train.py:23) can change it again, from the new rate.\n"]),
}
WRONG = {
    "list": ("set lr = 0.5", "error: set lr: SGD computes its rate from the step, by a list: it cannot be set\n"),
    "schedule": ("set lr = 0.5", "error: set lr: SGD computes its rate from the step, by the schedule CosineDecayLR: it "
                                 "cannot be set\n"),
    "plain": ("checkpoint x.pt", "error: x.pt: MindSpore's checkpoints end in .ckpt or .safetensors\n"),
    "mixed": ("set lr *= 2", "error: set lr: SGD computes its rate from the step, by the schedule ExponentialDecayLR: it "
                             "cannot be set\n"),
}


@minds.needed
class Examples(shipped.Shipped, minds.Case):
    mode = ""

    def trained(self, commands, *arguments):
        (self.folder / "plateau.py").write_text(PLATEAU)
        done = self.gradb(["plateau.py", self.mode, *arguments], *commands)
        self.assertIn(done.returncode, (0, 4), done.stdout + done.stderr)
        self.assertEqual(done.stderr, "", done.stdout)
        return done.stdout + done.log

    def test_pynative(self):
        self.mode = "pynative"
        self.check_all("ckpt")

    def test_graph(self):
        self.mode = "graph"
        self.check_all("ckpt")


@minds.needed
class Actions(minds.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "train.py").write_text(TRAIN)

    def after(self, *words):
        """What gradb says of a training, without the folder's name."""
        done = self.gradb(["train.py", *words[0]], *words[1:])
        return done, (done.stdout + done.log).replace(str(self.folder.resolve()) + "/", "")

    def test_rates_reach_compiled_steps(self):
        for mode in ("pynative", "graph"):
            for kind, (commands, texts) in SETS.items():
                with self.subTest(mode=mode, kind=kind):
                    wanted = digest(self.bare("train.py", mode, kind, "set"))
                    self.assertNotEqual(wanted, digest(self.bare("train.py", mode, kind)))
                    done, said = self.after([mode, kind], "step 2", *commands, "continue")
                    self.assertEqual((done.returncode, done.stderr), (0, ""), said)
                    for text in texts:
                        self.assertIn(text, said)
                    self.assertEqual(digest(said), wanted)

    def test_changes_by_hand(self):
        """They take effect, alike in both modes, and after undo the training is as it was, bit for bit."""
        (self.folder / "hand.py").write_text(HAND)
        changes = ("set net/weight[0, 1:3] = nan", "set net/weight = 0.25", "set net/bias[1] = 3",
                   "set optimizer/Momentum/net/bias.moments = 1", "set lr = lr / 3")
        found = {}
        for mode in ("pynative", "graph"):
            for kind, commands in (("bare", ()), ("kept", changes), ("undone", (*changes, *["undo"] * len(changes)))):
                done = self.gradb(["hand.py", mode], "step 2", *commands, "print net/bias", "continue")
                said = done.stdout + done.log
                self.assertEqual((done.returncode, done.stderr), (0, ""), said)
                found[mode, kind] = re.search(r"(?m)^digest (\w{64})$", said)[1]
                self.assertEqual("3.        " in said or " 3. " in said or " 3.]" in said, kind == "kept", said)
            self.assertEqual(found[mode, "undone"], found[mode, "bare"])
            self.assertNotEqual(found[mode, "kept"], found[mode, "bare"])
        self.assertEqual(found["pynative", "kept"], found["graph", "kept"])
        done = self.gradb(["hand.py", "pynative"], "set on-error continue", "set evaluate-code on", "step 2", "print cell",
                          "print loss * 0 + step", "info locals step", "zero-grad", "skip-update",
                          "set requires_grad net/bias off", "set net/weight[9] = 1", "set net/bias = 1e99", "continue")
        for text in ("error: MindSpore's gradients are results of each step", "error: the MindSpore agent cannot skip an update",
                     "error: MindSpore decides what is trained when", "error: index 9 is out of bounds for axis 0 with size 2: ",
                     "error: 1e99 is outside of what float32 holds"):
            self.assertIn(text, done.stderr)
        self.assertIn("TrainOneStepCell", done.stdout)
        self.assertEqual(re.search(r"digest (\w+)", done.stdout + done.log)[1], found["pynative", "bare"])

    def test_what_cannot_be_done_is_said(self):
        for kind, (command, message) in WRONG.items():
            with self.subTest(kind=kind):
                done, said = self.after(["graph", kind], "step 2", command, "continue")
                self.assertEqual(done.returncode, 1, said)
                self.assertTrue(done.stderr.startswith(message), done.stderr)

    def test_the_training_ends_early_and_the_script_goes_on(self):
        (self.folder / "model.py").write_text(MODEL)
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                done = self.gradb(["model.py", mode], "step 3", f"table {mode}.csv loss", "step 3", f"table {mode}.csv loss",
                                  "kill training")
                said = done.stdout + done.log
                self.assertEqual((done.returncode, done.stderr), (0, ""), said)
                losses = re.findall(r"(?m)^loss (\d+) (\S+)$", said)
                self.assertEqual([step for step, _ in losses], list("123456"), said)
                self.assertIn("The training ends at epoch 2, step 6, loss %.6g: run_context.request_stop(), the script "
                              "continues after it\n" % float(losses[-1][1]), said)
                self.assertTrue(said.endswith("the script continues\n"), said)
                rows = [row.split(",") for row in (self.folder / (mode + ".csv")).read_text().splitlines()]
                self.assertEqual(rows[0], ["step", "epoch", "batch", "elapsed", "loss"])
                self.assertEqual([(row[:3], float(row[4])) for row in rows[1:]], [
                    (["3", "1", "3"], float(losses[2][1])), (["6", "2", "2"], float(losses[5][1]))])

    def test_resumed_training_ends_with_the_same_weights(self):
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                whole = digest(self.bare("train.py", mode, "groups"))
                done, said = self.after([mode, "groups"], "step 2", f"checkpoint {mode}-{{step:03d}}-{{loss:.2f}} keep=1",
                                        "step", f"checkpoint {mode}-{{step:03d}}-{{loss:.2f}} keep=1",
                                        f"checkpoint {mode}.safetensors", "continue")
                self.assertEqual((done.returncode, done.stderr), (0, ""), said)
                self.assertEqual(digest(said), whole)
                files = sorted(path.name for path in self.folder.glob(mode + "*"))
                self.assertEqual(len(files), 2, files)
                self.assertRegex(said, r"(?m)^checkpoint of step 3: %s \(1\.\d KiB: 17 parameters, Adam, step_num\); "
                                       r"1 older file deleted$" % re.escape(files[0]))
                self.assertRegex(files[0], mode + r"-003-\d\.\d\d\.ckpt")
                self.assertEqual(digest(self.bare("train.py", mode, "groups", files[0])), whole)


def digest(text):
    return next(line for line in text.splitlines() if line.startswith("digest "))


if __name__ == "__main__":
    harness.main()
