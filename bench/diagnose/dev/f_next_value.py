# SPDX-License-Identifier: GPL-3.0-or-later
"""An LSTM forecasts a series."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import TensorDataset, DataLoader

t = np.arange(2200)
series = np.sin(t * 0.1) + 0.5 * np.sin(t * 0.037) + np.random.RandomState(1).normal(0, 0.1, len(t))
series = ((series - series.mean()) / series.std()).astype(np.float32)

def create_sequences(data, window):
    xs, ys = [], []
    for i in range(len(data) - window):
        xs.append(data[i:i + window])
        ys.append(data[i + window - 1])
    return torch.tensor(np.array(xs)).unsqueeze(-1), torch.tensor(np.array(ys)).unsqueeze(-1)

X, y = create_sequences(series, 20)
n_train = 1800
train = DataLoader(TensorDataset(X[:n_train], y[:n_train]), batch_size=64, shuffle=True)

class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)
    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])

torch.manual_seed(0)
model = Forecaster()
loss_fn = nn.MSELoss()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    for xb, yb in train:
        opt.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        val = loss_fn(model(X[n_train:]), y[n_train:]).item()
    print(f"epoch {epoch}: train {loss.item():.4f} val {val:.4f}")
