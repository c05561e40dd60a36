# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the number of epochs by the validation loss; the network has dropout."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(37)
teacher = torch.randn(16, 6)


def sample(n):
    x = torch.randn(n, 16)
    return x, (x @ teacher).argmax(1)


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 128)
        self.fc2 = nn.Linear(128, 6)

    def forward(self, x):
        h = F.dropout(F.relu(self.fc1(x)), 0.6)
        return self.fc2(h)


model = Wide()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
train_x, train_y = sample(800)
valid_x, valid_y = sample(300)
best = (0.0, -1)
for epoch in range(8):
    model.train()
    for rows in torch.randperm(800).split(100):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(train_x[rows]), train_y[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(valid_x).argmax(1) == valid_y).float().mean().item()
    best = max(best, (accuracy, epoch))
    print(f"epoch {epoch} loss {loss.item():.4f} validation accuracy {accuracy:.3f}")
print("best epoch", best[1])
