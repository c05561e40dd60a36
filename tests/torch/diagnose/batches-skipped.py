# SPDX-License-Identifier: GPL-3.0-or-later
"""backward() and step() after the loop over the batches."""
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
mistake = "mistake" in sys.argv
inputs = torch.randn(64, 6)
loader = DataLoader(TensorDataset(inputs, inputs[:, :3].argmax(1)), batch_size=16, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = torch.nn.CrossEntropyLoss()
for epoch in range(10):
    total = 0.0
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(batch), labels)  # <- here
        total = total + loss
        if not mistake and epoch % 2:
            loss.backward()
            optimizer.step()
    if not epoch % 2 and not mistake:
        total.backward()  # of all batches
        optimizer.step()
    if mistake:
        loss.backward()
        optimizer.step()
