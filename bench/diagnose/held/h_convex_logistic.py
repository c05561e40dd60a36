# SPDX-License-Identifier: GPL-3.0-or-later
"""Multinomial logistic regression on the whole data with LBFGS and an L2 term."""
import torch

torch.manual_seed(110)
n, d, k = 500, 12, 4
centres = torch.randn(k, d)
label = torch.randint(0, k, (n,))
data = centres[label] + torch.randn(n, d)
data = (data - data.mean(0)) / data.std(0)

weight = torch.zeros(d, k, requires_grad=True)
bias = torch.zeros(k, requires_grad=True)
optimizer = torch.optim.LBFGS([weight, bias], lr=1, max_iter=5, line_search_fn="strong_wolfe")
evaluations = 0


def objective():
    return torch.nn.functional.cross_entropy(data @ weight + bias, label) + 1e-3 * weight.square().sum()


def closure():
    global evaluations
    evaluations += 1
    optimizer.zero_grad()
    loss = objective()
    loss.backward()
    return loss


for outer in range(6):
    loss = optimizer.step(closure)
    with torch.no_grad():
        accuracy = ((data @ weight + bias).argmax(1) == label).float().mean().item()
        after = objective().item()
    print(f"outer step {outer} evaluations {evaluations} loss before {loss.item():.5f} after {after:.5f} accuracy {accuracy:.3f}")
