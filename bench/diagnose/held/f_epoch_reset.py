# SPDX-License-Identifier: GPL-3.0-or-later
"""Softmax regression on plain parameters, minibatches by hand."""
import torch

torch.manual_seed(64)
K, D, N = 6, 18, 900
centres = torch.randn(K, D)
label = torch.randint(0, K, (N,))
data = centres[label] + 1.5 * torch.randn(N, D)

weight = torch.zeros(D, K, requires_grad=True)
bias = torch.zeros(K, requires_grad=True)
optimizer = torch.optim.SGD([weight, bias], lr=1.0)


def objective(x, y):
    z = x @ weight + bias
    return (torch.logsumexp(z, 1) - z.gather(1, y[:, None]).squeeze(1)).mean()


for epoch in range(4):
    optimizer.zero_grad()
    order = torch.randperm(N)
    for begin in range(0, N, 45):
        rows = order[begin:begin + 45]
        loss = objective(data[rows], label[rows])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = ((data @ weight + bias).argmax(1) == label).float().mean().item()
        print(f"epoch {epoch} loss {objective(data, label).item():.4f} accuracy {right:.3f}")
