# SPDX-License-Identifier: GPL-3.0-or-later
"""Train a linear classifier on standardized features with a margin loss."""
import torch

torch.manual_seed(2)
true_w = torch.randn(30)
x = torch.randn(800, 30)
y = torch.sign(x @ true_w + 0.1 * torch.randn(800))

model = torch.nn.Linear(30, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def accuracy():
    with torch.no_grad():
        return (torch.sign(model(x).squeeze(1)) == y).float().mean().item()


for epoch in range(6):
    for i in range(0, 800, 100):
        xb, yb = x[i:i + 100], y[i:i + 100]
        margin = yb * model(xb).squeeze(1)
        loss = torch.relu(1 - margin).mean()
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy():.3f}")
