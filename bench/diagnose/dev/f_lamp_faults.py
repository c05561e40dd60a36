# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lamps will fail? Batch normalisation takes care of the units of nine measurements."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def measure(count, generator):
    state = torch.randint(0, 3, (count,), generator=generator)
    level = torch.tensor([[0., 1., 2.], [2., 0., 1.], [1., 2., 0.]])[state].repeat(1, 3)
    return 230 + 40 * (level + torch.randn(count, 9, generator=generator)), state


g = torch.Generator().manual_seed(1)
x, y = measure(768, g)
x_test, y_test = measure(300, g)
torch.manual_seed(2)
model = nn.Sequential(
    nn.BatchNorm1d(9, momentum=1e-3),
    nn.Linear(9, 32),
    nn.BatchNorm1d(32, momentum=1e-3),
    nn.ReLU(),
    nn.Linear(32, 3),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    model.train()
    hits = 0
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        out = model(xb)
        loss = nn.functional.cross_entropy(out, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += (out.argmax(1) == yb).sum().item()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch}: train accuracy {hits / len(x):.3f}, test accuracy {accuracy:.3f}")
