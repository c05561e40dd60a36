# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of the help texts have the names of a PyTorch script: each is typed in while that script trains."""
import sys

import harness
import torches

sys.path.append(str(harness.SOURCE / "tests" / "e2e"))
import test_help  # the examples, and how they are typed in

MODEL = '''
import torch
import torch.nn.functional as F
from torch import nn

WIDTH, LENGTH, WORDS = 12, 6, 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Parameter(torch.randn(3 * WIDTH, WIDTH) * 0.1)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        self.mixed = F.linear(x, self.qkv)
        query, key, value = self.mixed.view(batch, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        self.weights = F.softmax(query @ key.transpose(-2, -1), dim=-1)
        return self.proj((self.weights @ value).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.fc = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attn(self.norm(x))
        return x + F.gelu(self.fc(x))


class Loss(nn.Module):
    def forward(self, scores, labels):
        self.shares = torch.log(F.softmax(scores, dim=-1))
        self.value = F.nll_loss(self.shares.flatten(0, 1), labels.flatten())
        return self.value


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(WORDS, WIDTH)
        self.block0 = Block()
        self.head = nn.Linear(WIDTH, WORDS)
        self.loss = Loss()

    def forward(self, words):
        return self.loss(self.head(self.block0(self.token(words))), words.roll(-1, 1))


def train(model, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randint(WORDS, (2, LENGTH))).backward()
        optimizer.step()


torch.manual_seed(0)
train(Model(), 1000000)
'''
LINE, LINES = 42, 130  # examples list model.py:42, where a node is made, and model.py:120

# What charlm cannot; nothing has overflowed.
SUPPORTED = ("catch overflow", "tcatch overflow", "catch exception", "overflow", "info overflows", "agent",
             "checkpoint", "info timing advice", "info locals", "info args", "skip-update",
             "zero-grad", "info optimizer", "training", "scale", "aten")
FAILS = {example: code for example, code in test_help.FAIL_HERE.items() if not example.startswith(SUPPORTED)}
FAILS.update({"rerun": "io", "rerun 2": "io"})


class Examples(test_help.Typed, torches.Case):
    """On one PyTorch: what differs between releases has tests of its own."""

    @staticmethod
    def which():
        return torches.pip() or torches.debian()

    def test_every_example_does_what_it_says(self):
        text = "\n" * (LINE - 1 - MODEL[:MODEL.index("        self.mixed")].count("\n")) + MODEL
        (self.folder / "model.py").write_text(text + "\n" * (LINES - text.count("\n")), encoding="utf-8")
        self.type_in(["run", "--", *torches.warm(self.python), "model.py"], "model/block0/attn/softmax",
                     "model/head/bias", "model/loss/softmax", FAILS, env=torches.environment())


if __name__ == "__main__":
    harness.main()
