# SPDX-License-Identifier: GPL-3.0-or-later
"""Train a one-block transformer in half precision to copy a sequence."""
import torch
from torch import nn

torch.manual_seed(6)
VOCAB, LENGTH, DIM = 12, 8, 32


class Copier(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(VOCAB, DIM)
        self.place = nn.Parameter(torch.randn(LENGTH, DIM) * 0.1)
        self.fc1 = nn.Linear(DIM, 4 * DIM)
        self.fc2 = nn.Linear(4 * DIM, DIM)
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, x):
        h = self.token(x) + self.place
        h = h + self.fc2(torch.relu(self.fc1(h)))
        return self.out(h)


model = Copier().half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(60):
    x = torch.randint(0, VOCAB, (16, LENGTH))
    logits = model(x)
    loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), x.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 6 == 0:
        print(step, round(loss.item(), 4))
