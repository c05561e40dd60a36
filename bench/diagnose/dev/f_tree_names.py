# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees by their measures; a valley is kept for the test."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

NAMES = ["ash", "beech", "cedar", "elm", "fir", "oak"]
rng = np.random.default_rng(21)
centers = rng.normal(0, 2.0, (6, 14))

def measure(names):
    return (centers[[NAMES.index(n) for n in names]] + rng.normal(0, 1, (len(names), 14))).astype("float32")

train_names = rng.choice(NAMES, 1800)
test_names = rng.choice(NAMES[1:], 400)      # no ash in the valley
train_x, test_x = measure(train_names), measure(test_names)

def encode(names):
    classes = sorted(set(names))
    table = {c: i for i, c in enumerate(classes)}
    return torch.tensor([table[n] for n in names])

train_ds = TensorDataset(torch.from_numpy(train_x), encode(train_names))
test_ds = TensorDataset(torch.from_numpy(test_x), encode(test_names))

model = nn.Sequential(nn.Linear(14, 64), nn.ReLU(), nn.Linear(64, 6))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss()

def run(loader, train):
    model.train(train)
    total, right, n = 0.0, 0, 0
    with torch.set_grad_enabled(train):
        for x, y in loader:
            out = model(x)
            loss = loss_fn(out, y)
            if train:
                opt.zero_grad(); loss.backward(); opt.step()
            total += loss.item() * len(y); right += (out.argmax(1) == y).sum().item(); n += len(y)
    return total / n, right / n

torch.manual_seed(0)
for epoch in range(4):
    tr = run(DataLoader(train_ds, 60, shuffle=True), True)
    te = run(DataLoader(test_ds, 100), False)
    print(f"epoch {epoch} train {tr[0]:.3f}/{tr[1]:.2f} test {te[0]:.3f}/{te[1]:.2f}")
