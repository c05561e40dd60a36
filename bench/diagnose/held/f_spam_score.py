# SPDX-License-Identifier: GPL-3.0-or-later
"""Spam or not, from counts of 30 words."""
import torch
from torch import nn

torch.manual_seed(7)
rates = torch.rand(2, 30) * 2


def mails(count):
    spam = torch.randint(0, 2, (count,))
    return torch.poisson(rates[spam]).log1p(), spam.float()


model = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Dropout(0.1),
                      nn.Linear(24, 1), nn.Softmax(dim=1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
x_valid, y_valid = mails(400)

for epoch in range(4):
    model.train()
    for _ in range(15):
        x, y = mails(64)
        p = model(x).squeeze(1)
        loss = nn.functional.binary_cross_entropy(p, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = ((model(x_valid).squeeze(1) > 0.5).float() == y_valid).float().mean().item()
    print(f"epoch {epoch + 1}: train loss {loss.item():.3f}, valid accuracy {accuracy:.3f}")
