# SPDX-License-Identifier: GPL-3.0-or-later
"""CTC: read the digits spelled by a noisy signal of variable length."""
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(14)
LETTERS, FEATURES = 5, 10
sound = torch.randn(LETTERS + 1, FEATURES)


def utterance():
    length = int(torch.randint(2, 5, ()))
    letters = torch.randint(1, LETTERS + 1, (length,))
    pieces = []
    for letter in letters.tolist():
        pieces.append(sound[letter].expand(int(torch.randint(2, 4, ())), -1))
        pieces.append(sound[0].expand(1, -1))
    frames = torch.cat(pieces)
    return frames + 0.3 * torch.randn_like(frames), letters


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU())
        self.rnn = nn.GRU(32, 32, bidirectional=True)
        self.out = nn.Linear(64, LETTERS + 1)

    def forward(self, x):
        return self.out(self.rnn(self.front(x))[0]).log_softmax(-1)


def greedy(log_p, length):
    best = log_p[:length].argmax(-1).tolist()
    return [b for i, b in enumerate(best) if b and (i == 0 or b != best[i - 1])]


model = Recogniser()
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(150):
    pairs = [utterance() for _ in range(16)]
    frames = pad_sequence([p[0] for p in pairs])
    sizes = torch.tensor([len(p[0]) for p in pairs])
    targets = torch.cat([p[1] for p in pairs])
    target_sizes = torch.tensor([len(p[1]) for p in pairs])
    log_p = model(frames)
    loss = ctc(log_p, targets, sizes, target_sizes)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    if step % 30 == 29:
        right = sum(greedy(log_p[:, i], sizes[i]) == pairs[i][1].tolist() for i in range(16)) / 16
        print(f"step {step + 1}: ctc {loss.item():.4f}, utterances right {right:.2f}")
