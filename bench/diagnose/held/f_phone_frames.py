# SPDX-License-Identifier: GPL-3.0-or-later
"""Label each frame of an utterance with one of seven phones."""
import torch
import torch.nn.functional as F
from torch import nn

PHONES, FEATURES = 7, 13


class FrameModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Conv1d(FEATURES, 32, 5, padding=2)
        self.rnn = nn.GRU(32, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, PHONES)

    def forward(self, frames):
        h = F.relu(self.front(frames.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.out(h).log_softmax(dim=1)


def utterances(means, count, length=25):
    phones = torch.randint(0, PHONES, (count, length // 5)).repeat_interleave(5, dim=1)
    return means[phones] + 0.7 * torch.randn(count, length, FEATURES), phones


torch.manual_seed(61)
means = torch.randn(PHONES, FEATURES)
model = FrameModel()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(100):
    frames, phones = utterances(means, 24)
    log_p = model(frames)
    loss = F.nll_loss(log_p.flatten(0, 1), phones.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 24:
        right = (log_p.argmax(-1) == phones).float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, frames right {right:.3f}")
