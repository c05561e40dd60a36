# SPDX-License-Identifier: GPL-3.0-or-later
"""Deep ReLU network on tabular data, with its own initialization."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Deep(nn.Module):
    def __init__(self, width=128, depth=24):
        super().__init__()
        sizes = [30] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 1)
        self.reset()

    def reset(self):
        for layer in self.layers:
            nn.init.normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.out(x).squeeze(1)


torch.manual_seed(53)
x = torch.randn(400, 30)
y = x[:, 0] * 2 + x[:, 1]
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
model = Deep()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for xb, yb in loader:
        loss = nn.functional.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4g}")
