# SPDX-License-Identifier: GPL-3.0-or-later
"""Air pressure at ten stations: a level for each station and the effect of the weather, in float16."""
import torch
from torch import nn

torch.manual_seed(59)
STATIONS = 10
true_level = 1000 + 12 * torch.rand(STATIONS)
true_effect = torch.randn(4)


class Pressure(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = nn.Parameter(torch.full((STATIONS,), 1005.0))
        self.effect = nn.Linear(4, 1, bias=False)

    def forward(self, station, weather):
        return self.level[station].float() + self.effect(weather.to(self.effect.weight.dtype)).squeeze(1).float()


def observations(n):
    station, weather = torch.randint(0, STATIONS, (n,)), torch.randn(n, 4)
    return station, weather, true_level[station] + weather @ true_effect


model = Pressure().half()
optimizer = torch.optim.SGD([{"params": [model.level], "lr": 0.2}, {"params": model.effect.parameters(), "lr": 0.02}])
for step in range(150):
    station, weather, pressure = observations(128)
    loss = nn.functional.mse_loss(model(station, weather), pressure)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final loss", loss.item())
