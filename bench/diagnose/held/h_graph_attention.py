# SPDX-License-Identifier: GPL-3.0-or-later
"""Graph attention with several heads on a dense adjacency; early stopping on the validation nodes."""
import torch
import torch.nn.functional as F
from torch import nn


class GraphAttention(nn.Module):
    def __init__(self, n_in, n_out, heads, concat):
        super().__init__()
        self.heads, self.n_out, self.concat = heads, n_out, concat
        self.W = nn.Parameter(torch.empty(n_in, heads * n_out))
        self.a = nn.Parameter(torch.empty(2, heads, n_out))
        nn.init.xavier_normal_(self.W)
        nn.init.xavier_normal_(self.a)

    def forward(self, x, link):
        h = (x @ self.W).view(len(x), self.heads, self.n_out)
        left, right = (h * self.a[0]).sum(-1), (h * self.a[1]).sum(-1)
        e = F.leaky_relu(left.unsqueeze(1) + right.unsqueeze(0), 0.2)
        e = torch.where(link.unsqueeze(-1), e, torch.full_like(e, -9e15))
        weight = F.dropout(e.softmax(dim=1), 0.4, self.training)
        out = torch.einsum("ijh,jho->iho", weight, h)
        return out.flatten(1) if self.concat else out.mean(1)


class GAT(nn.Module):
    def __init__(self, n_in, classes):
        super().__init__()
        self.one, self.two = GraphAttention(n_in, 8, 4, True), GraphAttention(32, classes, 1, False)

    def forward(self, x, link):
        x = F.dropout(x, 0.4, self.training)
        x = F.dropout(F.elu(self.one(x, link)), 0.4, self.training)
        return F.log_softmax(self.two(x, link), dim=1)


torch.manual_seed(13)
n = 120
kind = torch.randint(0, 3, (n,))
link = torch.rand(n, n) < torch.where(kind[:, None] == kind, 0.10, 0.01)
link = link | link.t() | torch.eye(n, dtype=torch.bool)
x = 0.5 * F.one_hot(kind, 12).float() + 0.6 * torch.randn(n, 12)
train, valid = torch.arange(n) < 40, torch.arange(n) >= 80
model = GAT(12, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2, weight_decay=5e-4)
best, patience = float("inf"), 0
for epoch in range(60):
    model.train()
    loss = F.nll_loss(model(x, link)[train], kind[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x, link)
        valid_loss = F.nll_loss(out[valid], kind[valid]).item()
        accuracy = (out.argmax(1) == kind)[valid].float().mean().item()
    best, patience = (valid_loss, 0) if valid_loss < best else (best, patience + 1)
    if epoch % 15 == 14:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, valid {valid_loss:.4f}, accuracy {accuracy:.3f}")
    if patience > 20:
        print(f"stopped at epoch {epoch + 1}")
        break
