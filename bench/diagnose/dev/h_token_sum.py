# SPDX-License-Identifier: GPL-3.0-or-later
"""A character model; token-weighted gradient accumulation, the rest of an epoch is stepped, warm-up and clipping."""
import torch
from torch import nn

TEXT = "the quick brown fox jumps over the lazy dog and the small cat sleeps under the old tree " * 30
CHARS = sorted(set(TEXT))
IDS = torch.tensor([CHARS.index(c) for c in TEXT])


def ragged(g, count):
    for _ in range(count):
        length = int(torch.randint(8, 24, (1,), generator=g))
        start = torch.randint(0, len(IDS) - length - 1, (16,), generator=g)
        rows = torch.stack([IDS[s:s + length + 1] for s in start])
        yield rows[:, :-1], rows[:, 1:]


class CharModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(len(CHARS), width)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, len(CHARS))
        nn.init.zeros_(self.out.bias)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    model = CharModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
    for epoch in range(4):
        waiting, tokens = 0, 0
        for i, (x, y) in enumerate(ragged(g, 30)):
            total = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum")
            total.backward()
            tokens += y.numel()
            waiting += 1
            if waiting == 4 or i == 29:
                for p in model.parameters():
                    p.grad /= tokens
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                warm.step()
                optimizer.zero_grad()
                last = total.item() / y.numel()
                waiting, tokens = 0, 0
        print(epoch, "loss", round(last, 3))


main()
