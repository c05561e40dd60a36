# SPDX-License-Identifier: GPL-3.0-or-later
"""Four states of a machine from vibration spectra."""
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

torch.manual_seed(12)
spectra = torch.randn(4, 20)
dataset = ConcatDataset([
    TensorDataset(spectra[state] + 2 * torch.randn(200, 20), torch.full((200,), state)) for state in range(4)])
loader = DataLoader(dataset, batch_size=50)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for epoch in range(4):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    print(f"epoch {epoch}: mean loss {total / len(loader):.4f}, accuracy {right / len(dataset):.3f}")
