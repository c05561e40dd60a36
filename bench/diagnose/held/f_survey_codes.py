# SPDX-License-Identifier: GPL-3.0-or-later
"""Yes or no in a survey (as coded in the file: 1 = no, 2 = yes) from 15 columns."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(44)
columns = torch.randn(1200, 15)
opinion = columns[:, :5].sum(1) + columns[:, 6] * columns[:, 7] + 0.3 * torch.randn(1200)
answer = torch.where(opinion > 0, 2, 1)
train = DataLoader(TensorDataset(columns[:900], answer[:900]), batch_size=50, shuffle=True)

net = nn.Sequential(nn.Linear(15, 32), nn.ELU(), nn.Linear(32, 1), nn.Flatten(0))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.NAdam(net.parameters(), lr=3e-3)

for epoch in range(4):
    running = 0.0
    for batch, batch_answer in train:
        score = net(batch)
        loss = criterion(score, batch_answer.float())
        net.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    with torch.no_grad():
        guess = 1 + (net(columns[900:]) > 0).long()
        right = (guess == answer[900:]).float().mean().item()
    print(f"epoch {epoch}: loss {running / len(train):.4f}, right {right:.3f}")
