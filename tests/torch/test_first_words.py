# SPDX-License-Identifier: GPL-3.0-or-later
"""What users who know other tools type at their first PyTorch session: each guess is typed, and its answer checked.

NEWCOMERS are those of somebody who had never seen gradb; OURS were written down before anybody looked at which commands
there are. No guess may be changed so that it passes. With GRADB_SHOW_WORDS=1 the test prints all answers."""
import os
import re
import subprocess

import harness
import torches

NEWCOMERS = [
    "step", "next", "finish", "bt", "list", "p loss", "p lr", "info parameters", "display loss", "watch loss > 10",
    "catch nan", "search linear", "tui enable", "shell ls",
    "break model/transformer/h/0/attn/c_attn/linear if step == 20",
    "break nano.py:38", "print transformer.h.0.attn.c_attn.weight", "p lm_head.weight.grad",
    "print 'layer1/0/conv1/conv2d'", "p 0/weight", "break Attn", "run-to transformer.h.0.attn", "p x", "info locals",
    "p 1+1", "p w.std()", "call w.std()", "python print(w.shape)", "interact", "set lr 0.1", "set var w[0] = 0",
    "plot loss", "p grad_norm", "info memory", "info optimizer", "info batch", "info lr", "info model",
    "info gradients", "info nodes | head", "until step 10", "layout src", "pwd", "cd ..", "set logging on",
    "print model/lm_head/weight",
]
OURS = {
    'gdb': ['where', 'f 1', 'i b', 'x/8f model.fc1.weight', 'ptype loss', 'whatis model.fc1.weight', 'info threads',
            'tbreak fc2', 'advance fc2', 'info registers', 'jump 20'],
    'pdb': ['w', 'll', 'pp model.fc1.weight.grad', 'args', 'loss.item()', 'torch.isnan(loss).any()'],
    'lldb': ['thread backtrace', 'frame variable', 'breakpoint list', 'po loss'],
    'W&B': ['watch model', 'summary', 'history loss', 'hist model.fc1.weight'],
    'tfdbg': ['run -f has_inf_or_nan', 'lt', 'ni fc1', 'pt model/fc1/weight'],
    'MindInsight': ['recheck'],
}

SCRIPT = """\
import torch
from torch import nn
from torch.nn import functional as F


class Attn(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.c_attn(x).chunk(3, dim=-1)
        weights = torch.softmax(q @ k.transpose(-2, -1) / 4, dim=-1)
        return x + self.c_proj(weights @ v)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attn = Attn(width)

    def forward(self, x):
        return self.attn(x)


class Net(nn.Module):
    def __init__(self, words=16, width=8):
        super().__init__()
        self.transformer = nn.ModuleDict({"wte": nn.Embedding(words, width), "h": nn.ModuleList([Block(width)])})
        self.layer1 = nn.ModuleList([nn.ModuleDict({"conv1": nn.Conv2d(1, 1, 3, padding=1)})])
        self.fc1, self.fc2 = nn.Linear(width, 16), nn.Linear(16, width)
        self.lm_head = nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.transformer.wte.weight  # tied

    def forward(self, tokens):
        x = self.transformer.wte(tokens)
        for block in self.transformer.h:
            x = block(x)
        x = x + self.layer1[0].conv1(x.unsqueeze(1)).squeeze(1)
        x = x + self.fc2(F.relu(self.fc1(x)))
        return self.lm_head(x)


def train():
    torch.manual_seed(0)
    model = Net()
    w = model.fc1.weight
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = torch.utils.data.TensorDataset(torch.randint(0, 16, (64, 4)))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    for epoch in range(40):
        for tokens, in loader:
            loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train()
"""

# (what is typed, what its answer must contain: regular expressions). A guess appears as it was written.
SESSION = [
    ("print loss", [r"error: loss has no value yet: it is the number that a step computes its gradients from, .*step"]),
    ("info threads", [r"\* +1 .* stopped .* nano\.py"]),
    ("info batch", [r"No batch was fetched yet: \"step\""]),
    ("step", [r"Stopped at the end of step 1\.", r"loss = \d"]),
    ("p loss", [r"^loss = \d\.\d+ \(step 1\)$"]),
    ("po loss", [r"^loss = \d\.\d+ \(step 1\)$"]),
    ("p lr", [r"^lr = 0\.01 \(step 1\)$"]),
    ("ptype loss", [r"^type = number, a metric of the training \(step 1\)$"]),
    ("plot loss", [r"^loss \d\.\d+ at step 1"]),
    ("info parameters", [r"model/fc1/weight", r"float32 +\(16, 8\) +128", r"^11 weights: 706 elements"]),
    ("info model", [r"^Step 1: 11 parameters, 706 elements, 2\.8 KiB", r"^ +706 .* model: Net$",
                    r"^ +144 +576 B +float32 +(?:cpu|cuda:0) +fc1: Linear$", r"^ +288 .* attn: Attn$"]),
    ("info optimizer", [r"^AdamW, the main one: 11 parameters, 706 elements, state 5\.6 KiB in 33 tensors$",
                        r"^ +0 +0\.01 +11 +706 +betas 0\.9, 0\.999; eps 1e-08; weight_decay 0\.01"]),
    ("info lr", [r"^Step 1: the rates that the next step uses", r"^0\.01 +0 +AdamW"]),
    ("info batch ", [r"^Step 1, epoch 1, batch 1: DataLoader of TensorDataset, batch size 8, 8 batches an epoch, "
                     r"64 samples, shuffled$", r"^int64 +\(8, 4\) +(?:cpu|cuda:0) +256 B +0$"]),
    ("info gradients", [r"model/fc1/weight\.grad", r"^Step 1: 11 gradients, norm of all \d+\.\d+$"]),
    ("search linear", [r"model/fc1/linear"]),
    ("shell ls", [r"^nano\.py$"]),
    ("pwd", [r"^Working directory .*gradb-test-[^/]*\.$"]),
    ("cd ..", [r"^Working directory /.*\.$"]),
    ("p 1+1", [r"^2$"]),
    ("set logging on", [r"^Copying output to gradb\.txt\.$"]),
    ("info memory", [r"^ *2\.8 KiB .* weights$", r"^ *5\.6 KiB .* optimizer$"]),
    ("set logging off", [r"^Done logging to gradb\.txt\.$"]),
    ("shell grep -c weights gradb.txt", [r"^[1-9]\d*$"]),
    ("shell rm gradb.txt", [r"\A\n?\Z"]),
    ("info nodes | head", [r"\AOrder .*\n(?:.*\S.*\n){9}\n?\Z"]),
    ("info registers", [r"error: info registers: a training has no registers: .*\"print NODE\" a tensor"]),
    ("jump 20", [r"error: jump: a training runs its lines in order: .*\"run-to NODE\" goes to a later place"]),
    ("summary", [r"error: summary: \"info model\" shows the modules .*\"info scalars\" the metrics"]),
    ("run -f has_inf_or_nan", [r"error: run -f: to run until a value is not finite: \"catch nan\", then \"continue\""]),
    ("watch model", [r"error: watch: \"model\" is not a condition; .*\"watch TO on model\""]),
    ("pt model/fc1/weight", [r"^\$\d+ = model/fc1/weight:0$", r"float32 \(16, 8\)", r"^\[\[ *-?\d\.\d+"]),
    ("x/8f model.fc1.weight", [r"^model/fc1/weight:0$", r"^\[0, 0\]: +-?\d\.\d+ ", r"^\[0, 4\]:"]),
    ("whatis model.fc1.weight", [r"^type = float32 \(16, 8\), 128 elements, 512 B$"]),
    ("pp model.fc1.weight.grad", [r"= model/fc1/weight\.grad:0$", r"^float32 \(16, 8\) n=128"]),
    ("hist model.fc1.weight", [r"^model/fc1/weight:0$", r"^  L2 norm +\d", r"^  mean +-?\d"]),
    ("print transformer.h.0.attn.c_attn.weight", [r"= model/transformer/h/0/attn/c_attn/weight:0$", r"\(24, 8\)"]),
    ("p lm_head.weight.grad", [r"= model/transformer/wte/weight\.grad:0$", r"\(16, 8\)"]),  # tied
    ("print model/lm_head/weight", [r"= model/transformer/wte/weight:0$", r"\(16, 8\)"]),
    ("print 'layer1/0/conv1/conv2d'", [r"error: the script no longer has it; stop right after the operator to see it"]),
    ("lt", [r"weight +float32 +\(16, 8\) +512 B +model/fc1/weight"]),
    ("layout src", [r"\A\n?\Z"]),
    ("layout", [r"^stack$"]),
    ("display loss", [r"^1: loss = \d\.\d+"]),
    ("watch loss > 10", [r"^Watchpoint 1: 'loss > 10' on loss$"]),
    ("catch nan", [r"^Catchpoint 2: nan-loss$"]),
    ("i b", [r"^1 +watchpoint .*'loss > 10' on loss$", r"^2 +catchpoint .* nan-loss$"]),
    ("breakpoint list", [r"^1 +watchpoint .*'loss > 10' on loss$", r"^2 +catchpoint .* nan-loss$"]),
    ("recheck", [r"No watchpoint fires on these values: \d checks?\."]),
    ("until step 10", [r"Stopped at the end of step 10\.", r"^1: loss = \d\.\d+"]),
    ("p w.std()", [r"^\$\d+ = w\.std\(\)(?:, cuda:0)?, in train \(nano\.py:\d+\), step 10$", r"^float32 \(\)$"]),
    ("loss.item()", [r"^\d\.\d+$"]),
    ("torch.isnan(loss).any()", [r"^False$"]),
    ("call w.std()", [r"^\$\d+ = w\.std\(\)(?:, cuda:0)?, grad_fn StdBackward0, in train", r"^float32 \(\)$"]),
    ("python print(w.shape)", [r"^torch\.Size\(\[16, 8\]\)$"]),
    ("interact", [r"\A\n?\Z"]),
    ("set var w[0] = 0", [r"error: set var: \"set NODE\[SLICE\] = VALUE\" changes a tensor, \"call NAME = VALUE\""]),
    ("p grad_norm", [r"^grad_norm = \d\.\d+ \(step 10\)$"]),
    ("ni fc1", [r"^model/fc1/  Linear, 5 nodes$", r"^  weight  \(Parameter\)"]),
    ("p 0/weight", [r"there is no node '0/weight'; no variable of that name in train"]),
    ("history loss", [r"^loss\b.*\n(?:.*\n)*.*\b10\b"]),
    ("break model/transformer/h/0/attn/c_attn/linear if step == 20", [r"^Watchpoint 3: .* if step == 20: 1 node$"]),
    ("continue", [r"step 20, forward, model/transformer/h/0/attn/c_attn/linear", r"^Watchpoint 3, step 20"]),
    ("where", [r"#\d+ .*nano\.py:13 in forward$", r"q, k, v = self\.c_attn"]),
    ("w", [r"#\d+ .*nano\.py:13 in forward$"]),
    ("bt", [r"#\d+ .*nano\.py:13 in forward$"]),
    ("thread backtrace", [r"#\d+ .*nano\.py:13 in forward$"]),
    ("list", [r"13\b.*q, k, v = self\.c_attn"]),
    ("ll", [r"^ +\d+\b"]),
    ("f 1", [r"^#1 "]),
    ("next", [r"^step 20, forward, model/transformer/h/0/attn/chunk"]),
    ("finish", [r"^Run till the end of model/transformer/h/0/attn$", r"^step 20, forward, model/transformer/h/0/attn/add "]),
    ("break nano.py:38", [r"^Breakpoint 4 at .*nano\.py:38 \(Net\.forward\)$"]),
    ("continue ", [r"^Breakpoint 4, step 20 \(forward\), in Net\.forward$", r"nano\.py:38\t *for block in"]),
    ("info locals", [r"^Variables in forward \(nano\.py:38\), step 20:$", r"^tokens +Tensor +int64 \(8, 3\)"]),
    ("frame variable", [r"^tokens +Tensor +int64 \(8, 3\)"]),
    ("args", [r"^self +Net +module, 706 parameters$", r"^tokens +Tensor +int64 \(8, 3\)"]),
    ("p x", [r"^\$\d+ = x, .*in forward \(nano\.py:38\), step 20$", r"^float32 \(8, 3, 8\)"]),
    ("delete 4", [r"\A\n?\Z"]),
    ("break Attn", [r"^Breakpoint 5 at model/transformer/h/0/attn/c_attn/linear \(linear\)$"]),
    ("delete 5", [r"\A\n?\Z"]),
    ("tbreak fc2", [r"^Temporary breakpoint 6 at model/fc2/linear \(linear\)$"]),
    ("advance fc2", [r"step 20, forward, model/fc2/linear \(linear\)$"]),
    ("run-to transformer.h.0.attn", [r"^step 21, forward, model/transformer/h/0/attn/c_attn/linear \(linear\)$"]),
    ("set lr 0.1", [r"AdamW.*0\.01.*0\.1"]),
    ("tui enable", [r"error: the panes need a terminal"]),  # which this test has not
]

@torches.both
class Words(torches.Folder):
    """One session with all guesses."""

    def test_every_guess(self):
        answers = self.answers([typed for typed, _ in SESSION])
        for typed, wanted in SESSION:
            with self.subTest(typed=typed):
                for pattern in wanted:
                    self.assertRegex(answers[typed], re.compile(pattern, re.M))

    def test_no_guess_is_left_out(self):
        typed = {typed.strip() for typed, _ in SESSION}
        guesses = {*NEWCOMERS, *(guess for tool in OURS.values() for guess in tool)}
        self.assertEqual(guesses - typed, set())

    def answers(self, lines):
        """typed -> what gradb answered on one session, output and errors in the order in which they appear."""
        script = self.write("nano.py", SCRIPT)
        program = " ".join('"%s"' % word for word in [*torches.warm(self.python), script])
        # What follows `interact` is Python's, up to exit().
        marked = [word for line in lines
                  for word in (line, *["exit()"] * (line == "interact"), "echo @@@@\\n")]
        args = ["-nx", "--batch", "--listen", "127.0.0.1:0", *harness.typed(
            "set on-error continue", "set evaluate-code on",
            "set start-timeout 0", "run -- " + program, "echo @@@@\\n", *marked, "kill")]
        home = str(self.folder / "home")
        env = torches.environment(HOME=home, XDG_CONFIG_HOME=home, XDG_STATE_HOME=home, TERM="dumb", LC_ALL="C.UTF-8")
        done = subprocess.run([str(harness.GRADB), *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              cwd=self.folder, env=env, timeout=4 * harness.DEADLINE, check=False,
                              stdin=subprocess.DEVNULL)
        parts = done.stdout.split("@@@@\n")
        self.assertEqual(len(parts), len(lines) + 2, done.stdout)
        found = dict(zip(lines, parts[1:]))
        if os.environ.get("GRADB_SHOW_WORDS"):
            for line in lines:
                print("(gradb) %s\n%s" % (line, found[line]))
        return found


if __name__ == "__main__":
    harness.main()
