# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge short reviews: words of variable number, self-attention, then the vector of the first token."""
import torch
from torch import nn

PAD, CLS = 0, 1


class Judge(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.verdict = nn.Linear(width, 2)

    def forward(self, words):
        mask = words != PAD
        h = self.embed(words)
        mixed, _ = self.attention(h, h, h, key_padding_mask=mask)
        return self.verdict(self.norm(h + mixed)[:, 0])


def reviews(mood, count):
    lengths = torch.randint(4, 14, (count,))
    words = torch.randint(2, len(mood), (count, 16))
    words[:, 0] = CLS
    words[torch.arange(16) > lengths.unsqueeze(1)] = PAD
    return words, (mood[words].sum(1) > 0).long()


torch.manual_seed(70)
mood = torch.randn(40)
mood[:2] = 0
judge = Judge(40, 32)
optimizer = torch.optim.Adam(judge.parameters(), lr=5e-3)
loss_of = nn.CrossEntropyLoss(label_smoothing=0.05)
seen = []
for step in range(1, 121):
    words, verdict = reviews(mood, 64)
    logits = judge(words)
    loss = loss_of(logits, verdict)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append((logits.argmax(1) == verdict).float().mean().item())
    if step % 30 == 0:
        print(f"step {step}: loss {loss.item():.4f}, accuracy {sum(seen[-30:]) / 30:.3f}")
