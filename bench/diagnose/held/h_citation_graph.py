# SPDX-License-Identifier: GPL-3.0-or-later
"""Graph convolution on a synthetic citation graph: few labelled nodes, dropout 0.5."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(115)
N, K = 240, 4
group = torch.arange(N) % K
near = torch.rand(N, N) < torch.where(group[:, None] == group[None, :], 0.08, 0.008)
near = (near | near.t()).float()
near.fill_diagonal_(1)
degree = near.sum(1).rsqrt()
adjacency = (degree[:, None] * near * degree[None, :]).to_sparse()
words = (torch.rand(N, 100) < 0.02 + 0.04 * (torch.arange(100)[None, :] % K == group[:, None])).float()
labelled = torch.zeros(N, dtype=torch.bool)
labelled[:32] = True


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Parameter(torch.empty(100, 16))
        self.w2 = nn.Parameter(torch.empty(16, K))
        nn.init.kaiming_uniform_(self.w1)
        nn.init.kaiming_uniform_(self.w2)

    def forward(self, x):
        x = F.relu(torch.sparse.mm(adjacency, x @ self.w1))
        x = F.dropout(x, 0.5, training=self.training)
        return F.log_softmax(torch.sparse.mm(adjacency, x @ self.w2), dim=1)


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(100):
    model.train()
    optimizer.zero_grad()
    loss = F.nll_loss(model(words)[labelled], group[labelled])
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        model.eval()
        with torch.no_grad():
            right = (model(words).argmax(1) == group)[~labelled].float().mean().item()
        print(f"Epoch {epoch + 1} loss {loss.item():.4f} accuracy of the unlabelled nodes {right:.3f}")
