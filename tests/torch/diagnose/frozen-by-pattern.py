# SPDX-License-Identifier: MIT
"""An embedding is to be frozen, by the beginning of names, which is that of another layer too."""
import sys

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(20, 8)
        self.emb_proj = torch.nn.Linear(8, 16)
        self.top = torch.nn.Linear(16, 3)

    def forward(self, ids):
        return self.top(torch.relu(self.emb_proj(self.emb(ids))).mean(1))


torch.manual_seed(0)
net = Net()
with torch.no_grad():  # vectors that were trained before: they lie in few directions
    net.emb.weight.copy_(torch.randn(20, 2) @ torch.randn(2, 8))
for name, parameter in net.named_parameters():
    if name.startswith("emb" if "mistake" in sys.argv else "emb."):
        parameter.requires_grad = False  # <- here
optimizer = torch.optim.Adam([one for one in net.parameters() if one.requires_grad], 0.01)
ids = torch.randint(0, 20, (64, 5))
for step in range(10):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(ids), ids[:, 0] % 3).backward()
    optimizer.step()
