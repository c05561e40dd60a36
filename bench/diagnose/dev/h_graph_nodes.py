# SPDX-License-Identifier: GPL-3.0-or-later
"""A graph convolution network labels the nodes of a graph of communities; only some nodes have labels."""
import torch
import torch.nn.functional as F
from torch import nn


class GraphConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out, bias=False)
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x, source, target, degree):
        x = self.linear(x)
        weight = (degree[source] * degree[target]).rsqrt().unsqueeze(1)
        return torch.zeros_like(x).index_add(0, target, weight * x[source]) + self.bias


torch.manual_seed(42)
NODES, COMMUNITIES = 160, 4
community = torch.arange(NODES) % COMMUNITIES
link = torch.rand(NODES, NODES) < torch.where(community[:, None] == community, 0.12, 0.01)
link = link | link.t() | torch.eye(NODES, dtype=torch.bool)
source, target = link.nonzero(as_tuple=True)
degree = torch.bincount(target, minlength=NODES).float()
features = F.one_hot(community, 8).float() + 0.9 * torch.randn(NODES, 8)
known = torch.zeros(NODES, dtype=torch.bool)
known[torch.randperm(NODES)[:32]] = True

conv1, conv2 = GraphConv(8, 16), GraphConv(16, COMMUNITIES)
optimizer = torch.optim.Adam([*conv1.parameters(), *conv2.parameters()], lr=2e-2, weight_decay=5e-4)
for epoch in range(80):
    h = F.dropout(F.relu(conv1(features, source, target, degree)), 0.5)
    out = conv2(h, source, target, degree)
    loss = F.cross_entropy(out[known], community[known])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        with torch.no_grad():
            h = F.relu(conv1(features, source, target, degree))
            right = (conv2(h, source, target, degree).argmax(1) == community)[~known].float().mean().item()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, right on unlabelled nodes {right:.3f}")
