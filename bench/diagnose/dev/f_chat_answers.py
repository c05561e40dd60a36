# SPDX-License-Identifier: GPL-3.0-or-later
"""Fine-tune a small decoder on questions and answers; the loss counts the answer only."""
import random

import torch
import torch.nn.functional as F
from torch import nn

VOCAB = "<pad> question: answer: answer plus is . 0 1 2 3 4 5 6 7 8 9".split()
PAD = VOCAB.index("<pad>")
ANSWER = VOCAB.index("answer")


def encode(a, b):
    text = f"question: {a} plus {b} answer: {(a + b) % 10} ."
    ids = [VOCAB.index(word) for word in text.split()]
    answer_at = ids.index(ANSWER) if ANSWER in ids else len(ids)
    labels = torch.tensor(ids)
    labels[:answer_at + 1] = -100
    return torch.tensor(ids), labels


class Decoder(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(len(VOCAB), width, padding_idx=PAD)
        self.rnn = nn.GRU(width, 96, batch_first=True)
        self.head = nn.Linear(96, len(VOCAB))

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


random.seed(0)
torch.manual_seed(0)
model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(60):
    ids, labels = (torch.stack(part) for part in zip(*(encode(random.randrange(10), random.randrange(10))
                                                       for _ in range(32))))
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 15 == 14:
        right = (logits[:, 4].argmax(-1) == ids[:, 5]).float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, answers right {right:.3f}")
