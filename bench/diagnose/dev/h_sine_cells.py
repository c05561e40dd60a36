# SPDX-License-Identifier: GPL-3.0-or-later
"""Two LSTM cells predict sine waves; LBFGS in double precision."""
import numpy as np
import torch
import torch.nn as nn

np.random.seed(2)
torch.manual_seed(6)
phase = np.random.randint(-40, 40, 12).reshape(-1, 1)
data = torch.from_numpy(np.sin((np.arange(41) + phase) / 5.0))
inputs, targets = data[3:, :-1], data[3:, 1:]
test_inputs, test_targets = data[:3, :-1], data[:3, 1:]


class Sequence(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.lstm1, self.lstm2 = nn.LSTMCell(1, hidden), nn.LSTMCell(hidden, hidden)
        self.linear = nn.Linear(hidden, 1)
        self.hidden = hidden

    def forward(self, x):
        outputs = []
        h1, c1, h2, c2 = (torch.zeros(x.size(0), self.hidden, dtype=torch.double) for _ in range(4))
        for value in x.split(1, dim=1):
            h1, c1 = self.lstm1(value, (h1, c1))
            h2, c2 = self.lstm2(h1, (h2, c2))
            outputs.append(self.linear(h2))
        return torch.cat(outputs, dim=1)


seq = Sequence().double()
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(seq.parameters(), lr=0.8, max_iter=6)


def closure():
    optimizer.zero_grad()
    loss = criterion(seq(inputs), targets)
    loss.backward()
    return loss


for step in range(8):
    loss = optimizer.step(closure)
    with torch.no_grad():
        test = criterion(seq(test_inputs), test_targets)
    print(f"STEP {step} loss {loss.item():.6f} test loss {test.item():.6f}")
