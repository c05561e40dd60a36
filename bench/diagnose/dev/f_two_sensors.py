# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge machines from two sensors, sound and heat, each with its own encoder."""
import torch
from torch import nn


class TwoSensors(nn.Module):
    def __init__(self):
        super().__init__()
        self.sound = nn.Sequential(nn.Linear(10, 16), nn.Tanh())
        self.heat = nn.Sequential(nn.Linear(6, 16), nn.Tanh())
        self.judge = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, sound, heat):
        a, b = self.sound(sound), self.heat(heat)
        both = torch.cat([a, b]).view(len(sound), -1)
        return self.judge(both)


torch.manual_seed(46)
by_sound, by_heat = torch.randn(10, 3), torch.randn(6, 3)
model = TwoSensors()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(100):
    sound, heat = torch.randn(64, 10), torch.randn(64, 6)
    state = (sound @ by_sound + heat @ by_heat).argmax(1)
    scores = model(sound, heat)
    loss = nn.functional.cross_entropy(scores, state)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 24:
        print(f"step {step + 1}: loss {loss.item():.4f}, right {(scores.argmax(1) == state).float().mean().item():.3f}")
