# SPDX-License-Identifier: GPL-3.0-or-later
"""Classification of sequences by their trend, with an LSTM."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
n, T = 640, 20
labels = torch.randint(0, 2, (n,))
seqs = torch.randn(n, T, 4) * 0.7
seqs[:, :, 0] += (labels * 2 - 1)[:, None] * torch.linspace(0, 0.6, T)
loader = DataLoader(TensorDataset(seqs, labels), batch_size=32, shuffle=True, drop_last=True)


class Model(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.hidden = hidden
        self.lstm = nn.LSTM(4, hidden, num_layers=1, batch_first=True)
        self.out = nn.Linear(hidden, 2)

    def init_hidden(self, b):
        return torch.zeros(1, b, self.hidden), torch.zeros(1, b, self.hidden)

    def forward(self, x, state):
        y, state = self.lstm(x, state)
        return self.out(y[:, -1]), state


model = Model()
crit = nn.CrossEntropyLoss()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
h = model.init_hidden(32)
for epoch in range(6):
    running = 0.0
    for x, y in loader:
        h = tuple(s.detach() for s in h)
        opt.zero_grad()
        logits, h = model(x, h)
        loss = crit(logits, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        running += loss.item()
    print("Epoch", epoch, "loss", running / len(loader))
